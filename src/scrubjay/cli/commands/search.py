"""`scrubjay search`"""

from __future__ import annotations

import json
import re
from typing import Any

import click

from scrubjay.cli.command import Command
from scrubjay.cli.filters import ALL_STATES, filter_options, read_filter, state_of
from scrubjay.cli.ids import remember_list
from scrubjay.cli.output import (
    LONG,
    Cell,
    Marked,
    count_of,
    find_doubts,
    note,
    on_terminal,
    print_json,
    print_listed,
    safe,
    space_cell,
    tell_empty,
    tell_owed,
    when,
)
from scrubjay.cli.progress import waiting
from scrubjay.cli.session import CommandSession
from scrubjay.text.stems import stems
from scrubjay.text.words import query_words
from scrubjay.values.memory import State
from scrubjay.values.search import MAX_LIMIT, Hit, Query, Verdict


@click.command(
    cls=Command,
    examples="""
    scrubjay search "Where does the user live?"
    scrubjay search --words "port 8080" --since 30d --explain
    scrubjay search "What heats the house?" --also "boiler model" --also "heating"
    scrubjay search deployment --space auto --json
    """,
)
@click.argument("query")
@click.option("--also", multiple=True, metavar="TEXT", help="Another wording of the question; repeat up to four times.")
@click.option("--limit", type=click.IntRange(1, MAX_LIMIT), default=10, help="Maximum number to show. Default: 10.")
@click.option("--words", is_flag=True, help="Search by words only: fast, and without a model.")
@click.option("--explain", is_flag=True, help="Show why each was found.")
@click.option("--all", "all_states", is_flag=True, help="Include outdated, expired and archived memories.")
@filter_options
@click.pass_obj
def search(
    session: CommandSession,
    /,
    *,
    query: str,
    also: tuple[str, ...],
    limit: int,
    words: bool,
    explain: bool,
    all_states: bool,
    **filters: Any,
) -> None:
    """Find memories by meaning and by words, best first.

    The score says how well a memory matches, from 0 to 1, and is comparable between queries.
    """
    which = (
        read_filter(**filters, states=ALL_STATES - {State.DELETED}, expired=None)
        if all_states
        else read_filter(**filters)
    )
    with session.engine(meaning=not words, known_space=True) as engine:
        asked = Query(text=query, also=also, limit=limit, filter=which, words_only=words, explain=explain)
        with waiting("Searching"):
            found = engine.search(asked)
        if found.degraded and session.as_json:  # beside the list, which is all that standard output has
            click.echo(json.dumps({"degraded": found.degraded, "partly": found.partly}, ensure_ascii=False), err=True)
        elif found.degraded:
            note(f"{'' if found.partly else 'Found by words only: '}{found.degraded} See `scrubjay doctor`.", session)
        for period in found.periods if explain else ():
            note(f"Preferred, for {period.words!r}: {when(period.start)} to {when(period.end)}.", session)
        if found.hits and found.verdict is Verdict.NONE:
            note("Nothing here seems to be about that; these are the nearest.", session)
        elif found.hits and found.verdict is Verdict.WEAK:
            note("Perhaps none of these is an answer.", session)
        if found.uncompared:
            some = count_of(len(found.uncompared), "memory", "memories")
            note(f"Not compared yet: {some}; `scrubjay conflicts` says later what they may outdate.", session)
        tell_owed(engine.take_owed(), session)
        remember_list([hit.memory.id for hit in found], session)
        worth = [hit.memory.id for hit in found if hit.verdict is not Verdict.NONE]
        doubts = find_doubts([hit.memory for hit in found], engine, session, worth=worth)
        if session.as_json:
            print_json(found.hits)
        elif found.hits:
            rows = [
                (*row(hit, asked.joined, doubts.get(hit.memory.id)), *space_cell(engine, hit.memory)) for hit in found
            ]
            print_listed(("score", "id", "memory", "tags", "stored", "state", "why", "space"), rows)
        else:
            tell_empty("Nothing found. Try other words, or `scrubjay list`.", engine, session)


def row(hit: Hit, query: str, newer: str | None) -> tuple[Cell, ...]:
    memory = hit.memory
    return (
        f"{hit.score:.2f}",
        memory.id,
        mark_words(memory.shown_text, query),
        ", ".join(memory.tags),
        memory.created_at,
        state_of(memory, newer),
        reason(hit),
    )


def mark_words(text: str, query: str) -> Cell:
    """The text with the words of the query marked, in whatever form it has them."""
    shown = safe(text)
    if not on_terminal():
        return shown

    wanted = stems(query_words(query))
    there = {found[0] for found in re.finditer(r"\w+", shown[:LONG])}
    forms = {word for word, stem in stems(there).items() if stem in wanted.values()}
    forms |= {word for word in wanted if not word.isascii()}  # scripts without spaces: part of a longer run
    spans = [found.span() for word in forms for found in re.finditer(bound_text(word), shown[:LONG])]
    return Marked(shown, spans)


def bound_text(word: str) -> str:
    return rf"\b{re.escape(word)}\b" if word.isascii() else re.escape(word)


MEANT = {
    Verdict.STRONG: "strong: probably an answer",
    Verdict.WEAK: "weak: perhaps an answer",
    Verdict.NONE: "none: near, but probably not about that",
}


def reason(hit: Hit) -> str:
    """Why a memory was found, and what that is worth, in one line."""
    if (explanation := hit.explanation) is None:
        return ""
    words = " ".join(explanation.words) or "none"
    meaning = "" if explanation.cosine is None else f"; meaning {explanation.similarity:.2f}"
    wordings = "".join(f"; also {wording!r}" for wording in explanation.wordings)
    boosts = "".join(f"; {name} {value:+.2f}" for name, value in explanation.boosts.items())
    return f"{MEANT[hit.verdict]}; words: {words} ({explanation.word_score:.2f}){wordings}{meaning}{boosts}"
