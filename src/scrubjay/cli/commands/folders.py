"""`scrubjay folders`"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from scrubjay.cli.command import Family
from scrubjay.cli.output import count_of, note, print_json, print_table, show, show_note
from scrubjay.cli.progress import progress
from scrubjay.cli.session import CommandSession
from scrubjay.errors import Conflict
from scrubjay.machine.projects import STORE_FOLDER, project_root, project_space
from scrubjay.text.letters import slug
from scrubjay.values.codec import plain

if TYPE_CHECKING:
    from scrubjay.engine.files.stores import Indexed

FOLDER = click.Path(path_type=Path, file_okay=False)


@click.group(
    cls=Family,
    without=("--space",),
    examples="""
    scrubjay folders list
    scrubjay folders add notes ~/notes
    scrubjay folders create --project
    scrubjay folders mirror default ~/vault/memories
    """,
)
def folders() -> None:
    """Keep memories as Markdown files that you can read, edit and commit to git.

    A space may have a folder. What is stored at a path is a file there; after `mirror`, every memory of the space is.
    Changes to files are picked up automatically: edits, new files, renames, deletions. A folder called .scrubjay
    belongs to the project around it.
    """


@folders.command("list", examples="scrubjay folders list")
@click.pass_obj
def list_folders(session: CommandSession) -> None:
    """List spaces and their folders."""
    with session.engine(meaning=False) as engine:
        found = engine.folders.list()
    if session.as_json:
        print_json([{**plain(one), "path": None if one.path is None else str(one.path)} for one in found])
        return
    rows = [
        (
            one.name,
            f"{one.memories:,}",
            "" if one.path is None else str(one.path),
            ", ".join(
                word
                for word, holds in (
                    ("project", one.project),
                    ("mirrored", one.mirrored),
                    ("read-only", one.read_only),
                    (f"{one.waiting:,} to write", one.waiting > 0),
                    ("not there: its disk may not be mounted", one.away),
                    ("no folder yet", not one.there and not one.away),
                )
                if holds
            ),
            one.description or "",
        )
        for one in found
    ]
    print_table(("space", "memories", "folder", "state", "description"), rows)


@folders.command(
    examples="""
    scrubjay folders add notes ~/notes --description 'What I learn'
    scrubjay folders add vault ~/obsidian --read-only
    """
)
@click.argument("name")
@click.argument("folder", type=FOLDER)
@click.option("--description", help="What belongs there.")
@click.option("--read-only", is_flag=True, help="Never write to the folder: its memories are changed by editing files.")
@click.pass_obj
def add(session: CommandSession, name: str, folder: Path, description: str | None, read_only: bool) -> None:
    """Register an existing folder and import what is in it.

    Every Markdown file is a memory, with or without front matter. Nothing is written to a file until its memory is
    changed.
    """
    with session.engine() as engine, progress("Reading files", shown=not session.as_json, unit="files") as report:
        done = engine.folders.add(name, folder, description=description, read_only=read_only, progress=report)
    tell(session, name, done)


@folders.command(
    examples="""
    scrubjay folders create notes
    scrubjay folders create notes ~/notes
    scrubjay folders create --project
    """
)
@click.argument("name", required=False)
@click.argument("folder", type=FOLDER, required=False)
@click.option("--project", is_flag=True, help="In .scrubjay, at the root of the current project.")
@click.option("--description", help="What belongs there.")
@click.pass_obj
def create(
    session: CommandSession, name: str | None, folder: Path | None, project: bool, description: str | None
) -> None:
    """Create a space with an empty folder, here or under the home."""
    if project:
        root = project_root(Path.cwd())
        name, folder = name or project_space(root) or slug(root.name), folder or root / STORE_FOLDER
    if name is None:
        raise click.UsageError("Give the space a name, or pass --project.")
    with session.engine(meaning=False) as engine:
        try:
            store = engine.folders.create(name, path=folder, description=description)
        except Conflict as error:
            if error.details.get("space") != name:
                raise
            hint = "Choose another name, or use it: `scrubjay folders list` says where it is."
            raise Conflict(f"Space {name} already has a folder.", hint=hint) from error
    show({"store": name, "path": str(store.path)}, store.path, session)
    note(f"Only memories stored at a path become files. To keep all as files: scrubjay folders mirror {name}", session)


@folders.command(examples="scrubjay folders remove notes")
@click.argument("name")
@click.pass_obj
def remove(session: CommandSession, name: str) -> None:
    """Take a space's folder off the list. Its files and memories stay, but are no longer kept in step."""
    with session.engine(meaning=False) as engine:
        engine.folders.remove(name)
    show_note(
        {"store": name, "removed": True},
        f"The folder of {name} is no longer used. Its files stay, and its memories stay in the space.",
        session,
    )


@folders.command(
    examples="""
    scrubjay folders reindex notes
    scrubjay folders reindex notes --new-folder
    """
)
@click.argument("name")
@click.option("--new-folder", is_flag=True, help="Create the folder again if it is gone for good, and write its files.")
@click.pass_obj
def reindex(session: CommandSession, name: str, new_folder: bool) -> None:
    """Read every file again now, and list those that cannot be read.

    Edits are picked up without it.
    """
    with session.engine() as engine, progress("Reading files", shown=not session.as_json, unit="files") as report:
        done = engine.folders.reindex(name, new_folder=new_folder, progress=report)
    tell(session, name, done)


@folders.command(
    examples="""
    scrubjay folders mirror
    scrubjay folders mirror default ~/vault/memories
    scrubjay folders mirror default --stop
    """
)
@click.argument("name", required=False)
@click.argument("folder", type=FOLDER, required=False)
@click.option("--stop", is_flag=True, help="Stop writing new memories as files; existing files stay.")
@click.pass_obj
def mirror(session: CommandSession, name: str | None, folder: Path | None, stop: bool) -> None:
    """Write every memory of a space as a file from now on, whoever stores it; without a NAME, of this repository's.

    Links between memories are wiki links, so Obsidian shows them.
    """
    with session.engine(meaning=False) as engine:
        name = name or engine.spaces[0]
        engine.known_spaces.check([name])
    if stop:
        with session.engine(meaning=False) as engine:
            engine.folders.stop_mirroring(name)
        show_note(
            {"store": name, "mirrored": False}, f"New memories of {name} are no longer written as files.", session
        )
        return
    with session.engine() as engine, progress("Writing files", shown=not session.as_json, unit="files") as report:
        done = engine.folders.mirror(name, folder, progress=report)
        place = next(one.path for one in engine.folders.list() if one.name == name)
    if not session.as_json:
        note(f"{count_of(done.written, 'file', 'files')} written to {place}; new memories follow.", session)
    tell(session, name, done)


def tell(session: CommandSession, name: str, done: Indexed) -> None:
    """What reading a folder changed, and which files were skipped."""
    if session.as_json:
        print_json({"store": name, **plain(done)})
        return
    read = {"new": done.new, "changed": done.changed, "moved": done.moved, "gone": done.gone}
    if any(read.values()) or not done.written:
        note(f"Read: {', '.join(f'{count:,} {what}' for what, count in read.items())}.", session)
    for problem in done.problems:
        note(f"Skipped: {problem.name}: {problem.why}", session)
