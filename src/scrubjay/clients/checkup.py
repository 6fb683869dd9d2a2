"""What is wrong with the entries that clients have for us."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scrubjay.clients import jsonc, toml_text
from scrubjay.clients.catalogue import CLIENTS, PROJECT, Client
from scrubjay.clients.files import contents
from scrubjay.clients.launch import NAME
from scrubjay.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class ClientEntry:
    """A server of ours in a client's file: the command that starts it, or the address where it is."""

    client: Client
    scope: str
    file: Path
    name: str
    words: list[str]

    @property
    def starts(self) -> bool:
        return bool(self.words)


@dataclass(frozen=True, slots=True)
class Ailment:
    client: Client
    found: str
    do: str


def ailments(folder: Path, version: str) -> Iterator[Ailment | ClientEntry]:
    """Every entry of ours for this user and project, followed by what is wrong with it."""
    for client in CLIENTS.values():
        ours: list[ClientEntry] = []
        files: dict[str, tuple[Path, str]] = {}
        for scope in client.scopes:
            file = client.file(scope, folder)  # in the home folder, a project's is the user's
            files.setdefault(os.path.realpath(file), (file, scope))
        for file, scope in files.values():
            try:
                ours += entries(client, scope, file)
            except (InvalidInput, jsonc.Unreadable) as error:
                where = f"{file}: {error}." if isinstance(error, jsonc.Unreadable) else error.message
                do = f"Correct it, since {client.title} may not read it either; then: {install(client, scope)}"
                yield Ailment(client, where, do)
        for entry in ours:
            yield entry
            yield from find_faults(entry, version)
        if len(ours) > 1:
            named = " and ".join(f"{one.name!r} in {one.file}" for one in ours)
            yield Ailment(client, f"{len(ours)} servers: {named}.", "Keep one: an agent sees every tool twice.")


def entries(client: Client, scope: str, file: Path) -> Iterator[ClientEntry]:
    text = contents(file)
    data = (toml_text if file.suffix == ".toml" else jsonc).read(text) if text and text.strip() else {}
    servers = data.get(client.table, {}) if isinstance(data, dict) else None
    if not isinstance(servers, dict):
        raise jsonc.Unreadable(f"{client.table if isinstance(data, dict) else 'the file'} is not an object")
    for name, server in servers.items():
        words = command_of(server)
        if any(Path(word).stem == NAME for word in words[:3]) and "mcp" in words:
            yield ClientEntry(client, scope, file, name, words)
        elif name == NAME:
            yield ClientEntry(client, scope, file, name, [])


def command_of(server: Any) -> list[str]:
    """The command of an entry and its arguments, whatever the client's shape."""
    if not isinstance(server, dict):
        return []
    command, arguments = server.get("command"), server.get("args")
    words = [
        *(command if isinstance(command, list) else [command]),
        *(arguments if isinstance(arguments, list) else []),
    ]
    return [word for word in words if isinstance(word, str)]


def find_faults(entry: ClientEntry, ours: str) -> Iterator[Ailment]:
    if not entry.starts:
        return
    program = entry.words[0]
    again = install(entry.client, entry.scope)
    if shutil.which(program) is None:
        yield Ailment(entry.client, f"{entry.file} starts {program}, which is gone.", again)
    elif (version := version_of(program)) not in ("", ours):
        yield Ailment(entry.client, f"{entry.file} starts version {version}; this is {ours}.", again)
    if "--dialect" not in entry.words and not any(word.startswith("--dialect=") for word in entry.words):
        found = f"{entry.file} names no dialect; its tools were memento's, and now are scrubjay's."
        yield Ailment(entry.client, found, f"For the new ones: {again}. To keep the old ones, add --dialect memento.")


def install(client: Client, scope: str) -> str:
    return f"scrubjay install {client.name}" + (" --project" if scope == PROJECT else "")


def version_of(program: str) -> str:
    """What `--version` says; nothing if it is not our own command, such as uvx, or does not answer."""
    if Path(program).stem != NAME:
        return ""
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=20, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return said.removeprefix(f"{NAME} ").strip()
