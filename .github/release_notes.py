"""Print the changelog's section for a tag: python .github/release_notes.py v1.2.3

Fails if the tag is not the package's version, or if the changelog has no dated section for it. Uses the standard
library only, so that it runs before anything is installed.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def package_version(source: str) -> str:
    [version] = re.findall(r'^__version__ = "(.+)"$', source, re.MULTILINE)
    return str(version)


def notes(changelog: str, version: str) -> str:
    """What stands below `## [version] - date`, up to the next version."""
    heading = rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d\n"
    section = re.search(heading + r"(.*?)(?=^## \[|^\[|\Z)", changelog, re.DOTALL | re.MULTILINE)
    if section is None or not section[1].strip():
        sys.exit(f"CHANGELOG.md has no dated section [{version}].")
    return section[1].strip() + "\n"


def main(tag: str) -> None:
    version = tag.removeprefix("v")
    known = package_version((ROOT / "src" / "scrubjay" / "__init__.py").read_text("utf-8"))
    if version != known:
        sys.exit(f"The tag says {version}, the package says {known}.")
    sys.stdout.write(notes((ROOT / "CHANGELOG.md").read_text("utf-8"), version))


if __name__ == "__main__":
    main(sys.argv[1])
