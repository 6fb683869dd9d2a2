"""Writes beside the built page the hash of the sources it was built from; a test compares them."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

WEB = Path(__file__).parent
BUILT = WEB.parent / "src" / "scrubjay" / "web"


def sources() -> list[Path]:
    """What a build depends on."""
    chosen = [WEB / name for name in ("index.html", "package-lock.json", "svelte.config.js", "vite.config.ts")]
    grown = [path for folder in ("src", "public") for path in (WEB / folder).rglob("*") if path.is_file()]
    return sorted([*chosen, *grown])


def digest() -> str:
    total = sha256()
    for path in sources():
        total.update(f"{path.relative_to(WEB).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return total.hexdigest()


if __name__ == "__main__":
    (BUILT / "sources.sha256").write_text(digest() + "\n")
