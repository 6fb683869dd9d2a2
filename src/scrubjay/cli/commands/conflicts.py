"""`scrubjay conflicts`"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from scrubjay.cli.command import Command
from scrubjay.cli.ids import remember_list, resolve_id
from scrubjay.cli.output import (
    Cell,
    count_of,
    note,
    on_terminal,
    print_json,
    print_table,
    safe,
    show,
    space_cell,
    tell_empty,
)
from scrubjay.cli.pairs import print_pair
from scrubjay.cli.session import CommandSession
from scrubjay.errors import Error, NotFound
from scrubjay.values.memory import OpenConflict, Relation
from scrubjay.values.search import MAX_LIMIT

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine

KEYS = {"r": Relation.REPLACES, "b": Relation.BOTH_TRUE, "s": Relation.SAME}
SETTLED = {Relation.REPLACES: "superseded", Relation.BOTH_TRUE: "kept", Relation.SAME: "same"}
SAID = {
    Relation.REPLACES: "{old} is outdated by {new}.",
    Relation.BOTH_TRUE: "{old} and {new} are both kept.",
    Relation.SAME: "{old} says the same as {new}, which is shown from now on.",
}
ASKED = "r replace, b both true, s the same, Enter skip, u undo, q quit"


@click.command(
    cls=Command,
    examples="""
    scrubjay conflicts
    scrubjay conflicts --supersede mem_4x1k9c0d2m7q mem_8w3b5n6p1r2t
    scrubjay conflicts --keep @1 @2
    scrubjay conflicts --group mem_8w3b5n6p1r2t --as replaces
    scrubjay conflicts --undo mem_4x1k9c0d2m7q mem_8w3b5n6p1r2t
    """,
)
@click.option("--limit", type=click.IntRange(1, MAX_LIMIT), default=20, help="Maximum number to show. Default: 20.")
@click.option("--supersede", nargs=2, metavar="OLD NEW", help="OLD is outdated: searches show only NEW.")
@click.option("--keep", nargs=2, metavar="OLD NEW", help="Both are true: do not ask again.")
@click.option("--same", nargs=2, metavar="OLD NEW", help="Both say the same: searches show only NEW.")
@click.option("--group", metavar="NEW", help="All that NEW may outdate, at once; what it is, --as says.")
@click.option("--as", "relation", type=click.Choice([str(one) for one in Relation]), help="With --group: the answer.")
@click.option("--undo", nargs=2, metavar="OLD NEW", help="Take such an answer back: the conflict is open again.")
@click.option("--plain", is_flag=True, help="Only list them: ask nothing at a terminal.")
@click.pass_obj
def conflicts(
    session: CommandSession,
    /,
    *,
    limit: int,
    group: str | None,
    relation: str | None,
    undo: tuple[str, str] | None,
    plain: bool,
    **pairs: tuple[str, str] | None,
) -> None:
    """List memories that a newer one may have outdated, or resolve them.

    At a terminal they are shown one after the other, with what differs marked, and you answer for each, or with a
    capital letter for all that the same memory may outdate. Nothing is superseded automatically: a proposal stays open
    until someone decides.
    """
    given = [name for name, value in (*pairs.items(), ("group", group), ("undo", undo)) if value]
    if len(given) > 1 or (group is None) != (relation is None):
        raise click.UsageError("Give one of --supersede, --keep, --same, --undo, or --group together with --as.")
    with session.engine(meaning=False, known_space=True) as engine:
        if undo:
            old, new = engine.conflicts.reopen(
                old=resolve_id(engine, undo[0], session), new=resolve_id(engine, undo[1], session)
            )
            show(
                {"old": old.id, "new": new.id, "settled": None},
                f"{old.id} and {new.id} are no longer settled.",
                session,
            )
        elif group is not None and relation is not None:
            settle_group(engine, resolve_id(engine, group, session), Relation(relation), session)
        elif given:
            answer = {"supersede": "r", "keep": "b", "same": "s"}[given[0]]
            first, second = pairs[given[0]] or ("", "")
            settle_pair(
                engine, (resolve_id(engine, first, session), resolve_id(engine, second, session)), KEYS[answer], session
            )
        else:
            show_open(engine, engine.conflicts.list(limit=limit), session, ask=not plain)


def settle_pair(engine: Engine, pair: tuple[str, str], relation: Relation, session: CommandSession) -> None:
    if relation is Relation.SAME:
        old, new = engine.conflicts.relate(old=pair[0], new=pair[1], relation=relation)
    else:
        old, new = engine.conflicts.settle(old=pair[0], new=pair[1], keep=relation is Relation.BOTH_TRUE)
    said = "Both are kept." if relation is Relation.BOTH_TRUE else SAID[relation].format(old=old.id, new=new.id)
    show({"old": old.id, "new": new.id, "settled": SETTLED[relation]}, safe(said), session)


def settle_group(engine: Engine, new: str, relation: Relation, session: CommandSession) -> None:
    """Everything that one memory may outdate."""
    found = [one for one in engine.conflicts.list(limit=MAX_LIMIT) if one.new.id == new]
    if not found:
        raise NotFound(f"{new} is in no open conflict as the newer memory.", hint="`scrubjay conflicts` lists them.")
    for one in found:
        engine.conflicts.relate(old=one.old.id, new=new, relation=relation)
    done = [{"old": one.old.id, "new": new, "settled": SETTLED[relation]} for one in found]
    show(done, f"{count_of(len(done), 'conflict', 'conflicts')} of {safe(new)} settled: {SETTLED[relation]}.", session)


def show_open(engine: Engine, found: Sequence[OpenConflict], session: CommandSession, *, ask: bool) -> None:
    found = sorted(found, key=lambda one: [other.new.id for other in found].index(one.new.id))  # a group together
    remember_list([memory.id for one in found for memory in (one.old, one.new)], session)
    if session.as_json:
        print_json(tuple(found))
    elif not found:
        tell_empty("No open conflicts.", engine, session)
    elif not on_terminal():
        print_table(("likely", "old", "says", "new", "says", "stored", "space"), [row(one, engine) for one in found])
        note("Resolve one with --supersede OLD NEW, --keep OLD NEW or --same OLD NEW.", session)
    elif ask and sys.stdin is not None and sys.stdin.isatty():
        review(engine, found)
    else:
        for place in range(len(found)):
            print_conflict(found, place)


def review(engine: Engine, found: Sequence[OpenConflict]) -> None:
    """Ask about one after the other; an answer can be taken back."""
    place, done = 0, list[tuple[int, OpenConflict]]()
    while place < len(found):
        one = found[place]
        if any(one is other for _, other in done):  # settled with its group
            place += 1
            continue
        print_conflict(found, place)
        group = [other for other in found[place:] if other.new.id == one.new.id]
        many = f"; R, B or S for all {len(group)} of this group" if len(group) > 1 else ""
        answer = str(click.prompt(f"{ASKED}{many}", default="", show_default=False, prompt_suffix=" > ")).strip()
        if answer == "q":
            break
        if answer == "u" and done:
            back, _ = done[-1]
            while done and done[-1][0] == back:
                engine.conflicts.reopen(old=done[-1][1].old.id, new=done.pop()[1].new.id)
            place = back
        elif answer.lower() in KEYS:
            for other in group if answer.isupper() else [one]:
                try:
                    engine.conflicts.relate(old=other.old.id, new=other.new.id, relation=KEYS[answer.lower()])
                    done.append((place, other))
                    click.echo(SAID[KEYS[answer.lower()]].format(old=other.old.id, new=other.new.id))
                except Error as error:  # it may have been forgotten meanwhile
                    click.echo(safe(error.message))
            place += 1
        elif answer == "u":
            click.echo("There is nothing to undo.")
        elif answer:
            click.echo(f"{safe(answer)}: not one of the answers.")
        else:
            place += 1
    click.echo(f"{count_of(len(done), 'conflict', 'conflicts')} settled, {len(found) - len(done):,} left.")


def print_conflict(found: Sequence[OpenConflict], place: int) -> None:
    one = found[place]
    print_pair(f"{place + 1} of {len(found)}, likely {one.score:.2f}", one.old, one.new, first=2 * place + 1)


def row(one: OpenConflict, engine: Engine) -> tuple[Cell, ...]:
    where = space_cell(engine, one.old, one.new)
    return f"{one.score:.2f}", one.old.id, one.old.text, one.new.id, one.new.text, one.new.created_at, *where
