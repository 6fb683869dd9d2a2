"""`scrubjay spaces`"""

from __future__ import annotations

import click

from scrubjay.cli.command import Family
from scrubjay.cli.output import note, print_json, show_note, show_table
from scrubjay.cli.session import CommandSession


@click.group(
    cls=Family,
    without=("--space",),
    examples="""
    scrubjay spaces list
    scrubjay spaces create work --description "What the team knows"
    scrubjay spaces grant work alice
    scrubjay store "Releases are cut on Tuesdays" --space work
    """,
)
def spaces() -> None:
    """List, create or grant spaces, one per project or purpose.

    A memory belongs to one space: that of the current repository, or `default` outside of one. A search looks in every
    space, the current one first; with --space NAME in that one only.
    """


@spaces.command("list", examples="scrubjay spaces list")
@click.pass_obj
def list_spaces(session: CommandSession) -> None:
    """List spaces and how many memories each has."""
    with session.engine(meaning=False) as engine:
        found = engine.known_spaces.list()
    rows = [(one.name, f"{one.memories:,}", one.created_at, one.description or "") for one in found]
    show_table(list(found), ("space", "memories", "created", "description"), rows, session)


@spaces.command(examples="scrubjay spaces create work --description 'What the team knows'")
@click.argument("name")
@click.option("--description", help="What belongs there.")
@click.pass_obj
def create(session: CommandSession, name: str, description: str | None) -> None:
    """Create a space; an existing one does not change.

    Storing a memory in a space also creates it.
    """
    with session.engine(meaning=False) as engine:
        new = engine.known_spaces.create(name, description=description)
    if session.as_json:
        print_json({"space": name, "created": new})
    elif new:
        click.echo(name)
    else:
        note(f"Space {name} already exists.", session)


@spaces.command(examples="scrubjay spaces grants")
@click.pass_obj
def grants(session: CommandSession) -> None:
    """List who can access which space over HTTP."""
    with session.engine(meaning=False) as engine:
        found = engine.callers.grants()
    rows = [(one.space, one.user, one.at, one.by) for one in found]
    show_table(list(found), ("space", "user", "since", "by"), rows, session)


@spaces.command(examples="scrubjay spaces grant work alice")
@click.argument("name")
@click.argument("user")
@click.pass_obj
def grant(session: CommandSession, name: str, user: str) -> None:
    """Give a user access to a space over HTTP; * means every space.

    The role of the user's key says what it may do there. Keys created for named spaces stay limited to those.
    """
    with session.engine(meaning=False) as engine:
        engine.callers.grant(name, user)
    show_note({"space": name, "user": user, "granted": True}, f"{user} can access {name}.", session)


@spaces.command(examples="scrubjay spaces revoke work alice")
@click.argument("name")
@click.argument("user")
@click.pass_obj
def revoke(session: CommandSession, name: str, user: str) -> None:
    """Revoke a grant: none of the user's keys can access the space any more."""
    with session.engine(meaning=False) as engine:
        engine.callers.withdraw(name, user)
    show_note({"space": name, "user": user, "granted": False}, f"{user} can no longer access {name}.", session)
