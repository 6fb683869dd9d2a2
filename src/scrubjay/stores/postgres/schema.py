"""A store's place in a database: a schema of its own, made, recognised, brought up to date.

    postgresql://USER:PASSWORD@HOST:5432/DATABASE            the store is the schema `scrubjay` of that database
    postgresql://…/DATABASE?schema=team                      another one; everything else is as libpq reads it

Its version is the fact `schema`. A program that knows less refuses the store (docs/decisions/backends.md).
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import psycopg
from psycopg import errors, sql
from psycopg.types import TypeInfo

from scrubjay.errors import InvalidInput, StorageBusy, StorageDamaged, StorageError
from scrubjay.stores.postgres.errors import READ_ONLY
from scrubjay.stores.scripts import SCHEMA_VERSION, check_version, script_for

DEFAULT_SCHEMA = "scrubjay"
LEAST_SERVER = 160_000
LEAST_VECTOR = (0, 8)  # iterative index scans: earlier ones lose answers behind a filter
WRITERS = 0x4A617931  # "Jay1": the class of the lock of the one who writes; the second number tells stores apart
MIGRATIONS = 0x4A617932  # "Jay2": the class of the advisory lock that one migrating process holds
TENDING = 0x4A617933  # "Jay3": the class of the lock of whoever makes an index
LOCK_MILLISECONDS = 500  # less than the server waits before it looks for deadlocks, and ends one of those involved
PAUSE_SECONDS = 0.5  # for those who had to wait meanwhile
PATIENCE_SECONDS = 60.0

MISSING_EXTENSION = "The database server has no pgvector."
EXTENSION_HINT = "Install pgvector 0.8 or newer on the server, then `CREATE EXTENSION vector` in the database."


def address(url: str) -> tuple[str, str]:
    """What libpq is given, and the name of the schema.

    :raises InvalidInput: if it is not the address of a database
    """
    try:
        parts = urlsplit(url)
        for host in parts.netloc.rpartition("@")[2].split(","):  # a primary, and those that may become one
            if not re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[^:\[\]]*)(:\d*)?", host):
                raise ValueError
        options = parse_qsl(parts.query, keep_blank_values=True)
        schema = dict(options).get("schema") or DEFAULT_SCHEMA
        query = urlencode([one for one in options if one[0] != "schema"])
        conninfo = f"{parts.scheme}://{parts.netloc}{parts.path}?{query}"  # urlunsplit drops an empty host
        psycopg.conninfo.conninfo_to_dict(conninfo)
    except (ValueError, psycopg.Error):  # their words may hold the password
        raise InvalidInput(
            "Invalid database address.",
            hint="Use postgresql://USER:PASSWORD@HOST/DATABASE, with special characters percent-encoded.",
            field="store",
        ) from None
    if not re.fullmatch("[a-z_][a-z0-9_]{0,62}", schema):
        raise InvalidInput("A schema's name may only have lower-case letters, digits and _.", field="store")
    return conninfo, schema


def make_sure(con: psycopg.Connection[tuple[Any, ...]], schema: str, *, for_copy: bool = False) -> TypeInfo:
    """Bring the store to the newest schema, or make it (`for_copy`, as a copy that is not finished); pgvector's type as
    this database numbers it.

    :raises StorageTooNew: if a newer scrubjay has written the store
    :raises StorageError: if the server is too old, read-only or without pgvector, or its user may not make the store
    """
    _check_server(con)
    if version(con) < SCHEMA_VERSION:
        [(replica, read_only)] = con.execute("SELECT pg_is_in_recovery(), current_setting('transaction_read_only')")
        if replica or read_only == "on":
            raise StorageError(
                f"{READ_ONLY[0]} It has no store of this version yet.",
                hint="Start scrubjay on the primary once, then here.",
            )
        _migrate(con, schema, for_copy=for_copy)
    _check_vector(con)
    info = TypeInfo.fetch(con, "vector")
    if info is None:
        raise StorageError(
            "pgvector is installed in a schema that the store does not use.",
            hint="Move it: `ALTER EXTENSION vector SET SCHEMA public`.",
        )
    return info


def version(con: psycopg.Connection[tuple[Any, ...]]) -> int:
    """Read the schema's version; 0 if there is no store.

    :raises StorageTooNew: if a newer scrubjay has written the store
    """
    [(there, steps)] = con.execute("SELECT to_regclass('facts') IS NOT NULL, to_regclass('schema_steps') IS NOT NULL")
    if not there:
        return 0
    row = con.execute("SELECT value FROM facts WHERE key = 'schema'").fetchone()
    if row is None:
        raise StorageDamaged(
            "Something else is already in the store's schema.", hint="Name another schema: …?schema=NAME."
        )
    if steps:  # where stores of 465e9b5 say it
        try:
            row = con.execute("SELECT max(number) FROM schema_steps").fetchone() or row
        except errors.UndefinedTable:  # another process has just brought the store up to date
            return version(con)
    return check_version(int(row[0]))


def alone(con: psycopg.Connection[tuple[Any, ...]], schema: str) -> bool:
    """Whether no other connection tends this store; holds until the connection closes."""
    row = con.execute("SELECT pg_try_advisory_lock(%s, hashtext(%s))", (TENDING, schema)).fetchone()
    return row == (True,)


def _check_server(con: psycopg.Connection[tuple[Any, ...]]) -> None:
    if con.info.server_version < LEAST_SERVER:
        raise StorageError(
            f"PostgreSQL {con.info.server_version // 10_000} is too old.", hint="Use PostgreSQL 16 or newer."
        )
    if con.info.parameter_status("server_encoding") not in ("UTF8", None):
        raise StorageError(
            "The database does not store text as UTF-8.", hint="Create one with `createdb --encoding=UTF8`."
        )


def _check_vector(con: psycopg.Connection[tuple[Any, ...]]) -> None:
    row = con.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()
    if row is None:
        raise StorageError(MISSING_EXTENSION, hint=EXTENSION_HINT)
    if tuple(int(part) for part in row[0].split(".")[:2]) < LEAST_VECTOR:
        raise StorageError(
            f"pgvector {row[0]} is too old.",
            hint="Install 0.8 or newer on the server, then `ALTER EXTENSION vector UPDATE`.",
        )


def _migrate(con: psycopg.Connection[tuple[Any, ...]], schema: str, *, for_copy: bool) -> None:
    """Make or upgrade the schema. Of several processes that find an old one, one does it and the others wait."""
    with _waited_for(con, schema):
        if (known := version(con)) < SCHEMA_VERSION:
            script = script_for("postgres", known)
            if for_copy and not known:  # with the first table: a copy that is killed now is not a store
                script += "\nINSERT INTO facts (key, value) VALUES ('copy', '');\n"
            run(con, schema, script, SCHEMA_VERSION)


def run(con: psycopg.Connection[tuple[Any, ...]], schema: str, script: str, number: int) -> None:
    """Run a script, whole or not at all, and note its version. Servers that are at work are not kept waiting: what they
    hold is not waited for while others wait behind us.

    :raises StorageBusy: if something holds a table all the time
    """
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            with con.transaction():
                _make_room(con, schema)
                _take_turn(con, schema)
                for statement in statements_in(script):
                    con.execute(statement)
                con.execute(
                    """
                    INSERT INTO facts (key, value) VALUES ('schema', %s)
                    ON CONFLICT (key) DO UPDATE SET value = excluded.value
                    """,
                    (str(number),),
                )
            return
        except (errors.LockNotAvailable, errors.QueryCanceled, errors.DeadlockDetected):
            if time.monotonic() > until:
                raise StorageBusy(
                    "The schema cannot be brought up to date: something holds the store's tables.",
                    hint="Wait for long work on the database, such as a backup, to end; then start scrubjay again.",
                ) from None
        time.sleep(PAUSE_SECONDS)


def statements_in(script: str) -> list[str]:
    """One by one: Citus refuses some of them beside others. A semicolon in a comment, a text or a function's body ends
    none."""
    found = re.findall(r"(?:--[^\n]*|\$\$.*?\$\$|'[^']*'|[^;])+", script, re.DOTALL)
    return [one for one in found if re.sub(r"--[^\n]*", "", one).strip()]


def _take_turn(con: psycopg.Connection[tuple[Any, ...]], schema: str) -> None:
    """Take a writer's turn, so that no writer is between two tables; then all tables at once, for the same reason with
    readers. Whoever asks for a table that we wait for waits as well, hence not for long."""
    con.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (WRITERS, schema))
    con.execute(f"SET LOCAL lock_timeout = {LOCK_MILLISECONDS}")
    found = con.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s ORDER BY tablename", (schema,))
    if tables := [sql.Identifier(name) for (name,) in found]:
        con.execute(f"SET LOCAL statement_timeout = {LOCK_MILLISECONDS}")
        con.execute(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(sql.SQL(", ").join(tables)))
        con.execute("SET LOCAL statement_timeout = 0")


@contextmanager
def _waited_for(con: psycopg.Connection[tuple[Any, ...]], schema: str) -> Iterator[None]:
    """A turn at this schema, however long it takes. No transaction is open while it waits: one that was would go on
    believing that tables which were made meanwhile are not there."""
    lock = (MIGRATIONS, schema)
    [(patience,)] = con.execute("SHOW statement_timeout")
    con.execute("SET statement_timeout = 0")
    con.execute("SELECT pg_advisory_lock(%s, hashtext(%s))", lock)
    try:
        yield
    finally:
        con.execute("SELECT pg_advisory_unlock(%s, hashtext(%s))", lock)
        con.execute("SELECT set_config('statement_timeout', %s, FALSE)", (patience,))


def _make_room(con: psycopg.Connection[tuple[Any, ...]], schema: str) -> None:
    try:
        if con.execute("SELECT to_regnamespace(%s)", (schema,)).fetchone() == (None,):
            con.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
    except errors.InsufficientPrivilege:
        raise StorageError(
            f"This user is not allowed to create the schema {schema}.",
            hint=f"As an administrator: `CREATE SCHEMA {schema} AUTHORIZATION` that user.",
        ) from None
    try:
        if con.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'").fetchone() is None:
            con.execute("CREATE EXTENSION vector SCHEMA public")
    except errors.InsufficientPrivilege:
        raise StorageError(
            "This user is not allowed to install pgvector in the database.",
            hint="As an administrator: `CREATE EXTENSION vector` in this database.",
        ) from None
    except (errors.FeatureNotSupported, errors.UndefinedFile):
        raise StorageError(MISSING_EXTENSION, hint=EXTENSION_HINT) from None
    _check_vector(con)
