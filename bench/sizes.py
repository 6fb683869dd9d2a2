"""What lies on the disk: the store's file, and the packages of an installation.

python -m bench.sizes memories.db    where a store's bytes go, by table and index
"""

from __future__ import annotations

import argparse
import re
import tomllib
from collections.abc import Sequence
from contextlib import closing
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import apsw

from bench import report
from bench.children import PACKAGE
from bench.report import ROOT
from scrubjay.stores.sqlite.filters import dimension_of

NAME = re.compile(r"[A-Za-z0-9._-]+")


def installation() -> dict[str, float]:
    """Megabytes per package: ours, and all that it needs, bytecode included."""
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    sizes: dict[str, float] = {"scrubjay": tree(PACKAGE)}
    while wanted:
        requirement = wanted.pop()
        name = NAME.match(requirement)[0].lower().replace("_", "-")  # type: ignore[index]
        if name in sizes or "extra ==" in requirement:
            continue
        try:
            package = distribution(name)
        except PackageNotFoundError:  # for another system or version
            continue
        paths = {Path(str(file.locate())) for file in package.files or ()}
        sizes[name] = sum(path.stat().st_size for path in paths if path.is_file()) / 1e6
        wanted += package.requires or []
    return dict(sorted(sizes.items(), key=lambda pair: -pair[1]))


def tree(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def store_file(path: Path) -> float:
    """Megabytes of a closed store."""
    return sum(each.stat().st_size for each in path.parent.glob(path.name + "*")) / 1e6


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.sizes", description="Say where a store's bytes go.")
    parser.add_argument("file", type=Path)
    path = parser.parse_args(arguments).file
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as con:
        [(memories, texts)] = con.execute("SELECT count(*), sum(octet_length(content)) FROM memories")
        vectors = con.execute("SELECT octet_length(vector), count(*) FROM vectors GROUP BY 1")
        floor = texts + sum(4 * dimension_of(each) * count for each, count in vectors)  # as float32
        size, pages = con.pragma("page_size"), con.pragma("page_count")
        parts = con.execute(
            """
            SELECT name, count(*) * :size AS bytes, sum(payload), sum(unused)
            FROM dbstat
            GROUP BY name
            HAVING bytes * 200 >= :all
            ORDER BY bytes DESC
            """,
            {"size": size, "all": size * pages},
        )
        rows = [[name, *(f"{value / memories:.0f}" for value in values)] for name, *values in parts]
        free = con.pragma("freelist_count") * size
    total = size * pages
    report.table(
        f"Bytes a memory, of {memories:,}",
        ["", "on disk", "rows and keys", "unused"],
        [*rows, ["free pages", f"{free / memories:.0f}", "", ""]],
        f"{total / memories:.0f} in all, {total / floor:.2f} × texts and vectors ({floor / memories:.0f})",
    )


if __name__ == "__main__":
    main()
