"""How much code there is: lines of `src` with a statement on them, per package.

Blank lines, comments and docstrings do not count; a statement over four lines counts four.

    python -m bench.lines                       the total, and each package
    python -m bench.lines --files               each file, largest last
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

from bench.children import PACKAGE

SILENT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def main() -> None:
    files = {path.relative_to(PACKAGE): code_lines(path.read_text()) for path in PACKAGE.rglob("*.py")}
    rows: Counter[str] = Counter()
    for path, lines in files.items():
        rows[str(path) if "--files" in sys.argv else room(path)] += lines
    for name, lines in sorted(rows.items(), key=lambda row: row[1]):
        print(f"{lines:8,}  {name}")
    print(f"{sum(files.values()):8,}  total, in {len(files)} files")


def room(path: Path) -> str:
    return str(path.parent) if len(path.parts) > 1 else "."


def code_lines(source: str) -> int:
    """How many lines of this source hold code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in SILENT:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstring_lines(ast.parse(source)))


def docstring_lines(tree: ast.Module) -> set[int]:
    """The lines of every string that stands alone as a statement: docstrings, and texts below a field."""
    return {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


if __name__ == "__main__":
    main()
