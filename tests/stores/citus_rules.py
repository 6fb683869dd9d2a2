"""What Citus refuses of a statement in a schema that it distributes, as its planner says it; checked on every statement
that a store sends, by names and with the server's own list of which functions' values change."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

import psycopg
import pytest
from psycopg import sql

OPERATORS = ("interval", "make_interval")  # added to a time they give what depends on the time zone


class Names(NamedTuple):
    """Of the server."""

    volatile: frozenset[str]  # functions of which any form is
    mutable: frozenset[str]  # these, and those that are constant within a statement only
    schemas: frozenset[str]

    @classmethod
    def of(cls, con: psycopg.Connection[Any]) -> Names:
        functions = con.execute("SELECT proname, provolatile FROM pg_proc WHERE provolatile <> 'i'").fetchall()
        schemas = con.execute("SELECT nspname FROM pg_namespace WHERE nspname <> 'pg_catalog'").fetchall()
        return cls(
            frozenset(name for name, kind in functions if kind == "v") - {"nextval"},  # Citus takes it in an INSERT
            frozenset(name for name, _ in functions) | {*OPERATORS},
            frozenset(name for (name,) in schemas),
        )


def breaches(statement: str, names: Names) -> Iterator[str]:
    """What is wrong with a statement."""
    text = re.sub(r"'[^']*'", "''", re.sub(r"--[^\n]*", "", statement)).lower()
    if re.match(r"\s*create\s+temp", text):
        yield "a temporary table"
    if not re.search(r"\b(select|insert|update|delete)\b", text) or re.match(
        r"\s*(create|alter|drop|set|begin)\b", text
    ):
        return
    for schema in re.findall(r'(?<![\w.])"?(\w+)"?\.\w', text):
        if schema in names.schemas:
            yield f"names the schema {schema}"
    if re.search(r"\bsetval\s*\(", text) and re.search(r"\bfrom\b", text):
        yield "a sequence beside a table"
    if re.search(r"\bts_stat\s*\(", text):
        yield "a query in a text, which a worker would run"
    writes = re.search(r"\b(insert\s+into|update|delete\s+from)\s+\w", text) is not None
    if not writes:
        return
    if re.search(r"\bas\s*\(\s*(insert|update|delete)\b", text):  # it runs one after the other, in whatever order
        for name in re.findall(
            r"\b(\w+)\s+as\s*\(\s*select\b(?=.*\bas\s*\(\s*(?:insert|update|delete)\b)", text, re.DOTALL
        ):
            yield f"{name} is not MATERIALIZED before what is written"
    for clause in re.findall(r"\breturning\b(.*?)(?=$|\breturning\b)", text, re.DOTALL):
        yield from used(clause, names.mutable, "RETURNING")
    for clause in re.findall(r"\bon\s+conflict\b(.*?)(?=$|\breturning\b)", text, re.DOTALL):
        yield from used(clause, names.mutable, "ON CONFLICT")
    if re.search(r"\b(delete\s+from|update)\s+\w|\bwith\b", re.sub(r"\bdo\s+update\b|\bfor\s+update\b", "", text)):
        yield from used(text, names.volatile, "UPDATE, DELETE or WITH")
    for values in re.findall(r"\bvalues\b(.*?)(?=$|\bon\s+conflict\b|\breturning\b)", text, re.DOTALL):
        if "select" in values:
            yield "a subquery within VALUES"


def used(clause: str, functions: Iterable[str], where: str) -> Iterator[str]:
    called = {*re.findall(r"\b([a-z_]\w*)\s*\(", clause), *(word for word in OPERATORS if f"{word} " in clause)}
    return (f"{name} in {where}" for name in sorted(called & {*functions}))


def watch(patch: pytest.MonkeyPatch) -> None:
    """From now on a store's statement that Citus would refuse fails."""
    execute, executemany = psycopg.Cursor.execute, psycopg.Cursor.executemany

    def checked(cursor: psycopg.Cursor[Any], query: Any, *given: Any, **options: Any) -> Any:
        check(cursor.connection, query)
        return execute(cursor, query, *given, **options)

    def each_checked(cursor: psycopg.Cursor[Any], query: Any, *given: Any, **options: Any) -> None:
        check(cursor.connection, query)
        executemany(cursor, query, *given, **options)

    patch.setattr(psycopg.Cursor, "execute", checked)
    patch.setattr(psycopg.Cursor, "executemany", each_checked)


def check(con: psycopg.Connection[Any], query: Any) -> None:
    if con.info.parameter_status("application_name") != "scrubjay":
        return
    if isinstance(query, sql.Composable):
        query = query.as_string(con)
    found = refused(query if isinstance(query, str) else bytes(query).decode(), con.info.dsn)
    assert not found, f"Citus refuses this ({', '.join(found)}):\n{query!r}"


@cache
def refused(statement: str, dsn: str) -> list[str]:
    return list(breaches(statement, names_of(dsn)))


@cache
def names_of(dsn: str) -> Names:
    with psycopg.connect(dsn, application_name="rules") as con:
        return Names.of(con)
