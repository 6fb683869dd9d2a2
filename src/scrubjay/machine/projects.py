"""The space of the current repository: the same in every clone and every worktree."""

from __future__ import annotations

import re
from pathlib import Path

from scrubjay.text.letters import slug


def project_space(folder: Path) -> str | None:
    """Named after the repository's remote, otherwise after its root folder; None outside a repository."""
    root = project_root(folder)
    if not (root / ".git").exists():
        return None
    git = shared_git_folder(root / ".git")
    name = remote_name(git / "config") or git.parent.name
    return slug(name)


STORE_FOLDER = ".scrubjay"


def project_root(folder: Path) -> Path:
    """The root of the repository around a folder; outside a repository, the folder itself."""
    return next((place for place in (folder, *folder.parents) if (place / ".git").exists()), folder)


def project_store(folder: Path) -> tuple[str, Path] | None:
    """Name and folder of the project's own store: the nearest `.scrubjay` from here upwards."""
    root = next((place for place in (folder, *folder.parents) if (place / STORE_FOLDER).is_dir()), None)
    return None if root is None else (project_space(root) or slug(root.name), root / STORE_FOLDER)


def shared_git_folder(git: Path) -> Path:
    """A worktree's .git is a file that points into the main clone's folder."""
    if git.is_dir():
        return git
    pointed = git.read_text(encoding="utf-8", errors="replace").removeprefix("gitdir:").strip()
    target = (git.parent / pointed).resolve()
    common = target / "commondir"
    return (target / common.read_text(encoding="utf-8").strip()).resolve() if common.exists() else target


def remote_name(config: Path) -> str | None:
    """`owner-repository` of the remote called origin, otherwise of the first one."""
    try:
        text = config.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    remotes = re.findall(r'\[remote "([^"\n]*)"\][^\[]*?\n\s*url\s*=\s*(\S+)', text)
    if not remotes:
        return None
    url = dict(reversed(remotes)).get("origin", remotes[0][1])
    steps = [step for step in re.split(r"[/:\\]", url.removesuffix("/").removesuffix(".git")) if step]
    return "-".join(steps[-2:])
