"""What connecting a client changes: its table of servers, and if wanted its hooks, rules and skill. Nothing is written
here; the result is a list of changes to look at, or to make."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scrubjay.clients import guidance, jsonc, toml_text
from scrubjay.clients.catalogue import INPUT, PROJECT, USER, Client, place
from scrubjay.clients.files import FileEdit, contents, copy_of
from scrubjay.clients.launch import DIALECT, NAME, command, home_arguments
from scrubjay.errors import InvalidInput
from scrubjay.settings import AUTO, Settings
from scrubjay.values.callers import DEFAULT_SPACE

Edit = Callable[[str | None], str | None]
TRANSPORT = {"command", "args", "url", "httpUrl", "serverUrl", "headers", "bearer_token_env_var"}
OUR_HOOK = re.compile(rf"{NAME}(?:\.exe)?[\"']? hook [a-z-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedParts:
    """What to connect a client with."""

    scope: str
    folder: Path  # of the project
    command: str
    arguments: list[str]
    memory: list[str]  # the options that name space and home, for hooks
    hooks: bool = False
    rules: bool = False
    url: str = ""  # of a server that runs; then no command is written
    keyed: bool = False  # whether that wants a key


def find_wanted(
    client: Client, settings: Settings, *, scope: str, folder: Path, space: str | None, **parts: Any
) -> WantedParts:
    """A coding agent works in the space of its repository unless told otherwise; every other space is read as well.

    A project's file is shared, so neither this machine's path of the program nor its home is written there.
    """
    home = [] if scope == PROJECT else home_arguments(settings)
    space = space or settings.space or (AUTO if client.codes else DEFAULT_SPACE)
    arguments = ["mcp", "--dialect", DIALECT, *(["--space", space] if space != DEFAULT_SPACE else []), *home]
    memory = [*(["--space", space] if space != AUTO else []), *home]  # which a hook does by default
    program = NAME if scope == PROJECT else command()
    return WantedParts(scope=scope, folder=folder, command=program, arguments=arguments, memory=memory, **parts)


def plan_install(client: Client, want: WantedParts) -> list[FileEdit]:
    """The changes that connect a client.

    :raises InvalidInput: if a file cannot be read or understood; the message says where
    """
    edits: list[tuple[Path, Edit]] = [(server_file(client, want), lambda text: with_server(client, want, text or ""))]
    if want.hooks:
        edits += [(file, lambda text: with_hooks(client, want, text or "")) for file in hooks_files(client, want)]
    if want.rules:
        edits += [
            (file, lambda text: guidance.with_block(text, client.rules_head)) for file in rules_files(client, want)
        ]
        edits += [(file, lambda _: guidance.skill()) for file in skill_files(client, want)]
    undone = removals(client, want)
    found = []
    for file, before in texts(edits).items():
        after = apply_edits(file, before, edits)
        if before != after:
            rest = apply_edits(file, before, undone)
            found.append(FileEdit(file, before, after, copied=rest == before or not is_bare(rest)))
    return found


def plan_removal(client: Client, want: WantedParts) -> list[FileEdit]:
    """The changes that disconnect it again, hooks, rules and skill included. A file that has nothing but what we wrote
    goes, unless it was there before us: then there is a copy of it."""
    edits = removals(client, want)
    skills = list(skill_files(client, want))
    found = []
    for file, before in texts(edits).items():
        after, original = apply_edits(file, before, edits), contents(copy_of(file))
        if after != before and says_the_same(file, after, original):
            after = original
        changed = file in skills and after is not None and guidance.is_skill(after)  # by the user, but still ours
        restored = original is not None and (after == original or after == apply_edits(file, original, edits))
        change = FileEdit(file, before, None if changed else after, copied=changed, restored=restored and not changed)
        if change.needed or change.restored:
            found.append(change)
    return found


def removals(client: Client, want: WantedParts) -> list[tuple[Path, Edit]]:
    head = client.rules_head
    return [
        (server_file(client, want), lambda text: text and without_server(client, want, text)),
        *((file, lambda text: text and without_hooks(client, want, text)) for file in hooks_files(client, want)),
        *((file, lambda text: text and guidance.without_block(text, head)) for file in rules_files(client, want)),
        *((file, lambda text: None if text == guidance.skill() else text) for file in skill_files(client, want)),
    ]  # fmt: skip


def texts(edits: list[tuple[Path, Edit]]) -> dict[Path, str | None]:
    return {file: contents(file) for file, _ in edits}


def apply_edits(file: Path, text: str | None, edits: list[tuple[Path, Edit]]) -> str | None:
    """The text after all edits of this file: Gemini keeps servers and hooks in the same one."""
    try:
        for one, edit in edits:
            text = edit(text) if one == file else text
    except jsonc.Unreadable as error:
        raise InvalidInput(
            f"{file} cannot be changed safely: {error}. It was left as it is.",
            hint="Correct it, or paste what `scrubjay config` prints.",
        ) from None
    return text


def says_the_same(file: Path, after: str | None, original: str | None) -> bool:
    """Whether a file differs from what it was before us only in space: a final newline, an empty object over two
    lines."""
    if after is None or original is None or (is_bare(after) and is_bare(original)):
        return is_bare(after) and is_bare(original)
    if file.suffix not in (".json", ".jsonc"):
        return after.rstrip() == original.rstrip()
    kept = ["".join(text.split()).removesuffix("{}") for text in (after, original)]
    return kept[0] == kept[1] and jsonc.read(after) == jsonc.read(original)


def is_bare(text: str | None) -> bool:
    """Whether a file says nothing: at most an empty object, or the version that goes before hooks."""
    return "".join((text or "").split()) in ("", "{}", '{"version":1}')


# --- servers ---------------------------------------------------------------------------------------------------------


def server_file(client: Client, want: WantedParts) -> Path:
    return client.file(want.scope, want.folder)


def with_server(client: Client, want: WantedParts, text: str) -> str:
    """Our entry as it should be; what someone added to it, such as variables, stays. One that starts a server does not
    become one that names its address, or the other way round: it is written again."""
    entry, path = entry_for(client, want), (client.table, NAME)
    if server_file(client, want).suffix == ".toml":
        now = toml_text.table(text, path)
        if now.keys() & TRANSPORT - entry.keys():
            text = toml_text.remove(text, path)
        return toml_text.put(text, path, entry)
    if client.address is not None and str(INPUT["id"]) in client.address.key and want.keyed:
        text = jsonc.put_item(text, ("inputs",), INPUT, ours=is_our_input)
    before = entry_of(client, text)
    if before is None or before.keys() & TRANSPORT - entry.keys():
        return jsonc.put(text, path, entry)
    for key, value in entry.items():
        if key != "enabled":  # a user who turned it off did so on purpose
            text = jsonc.put(text, (*path, key), value)
    return text


def entry_for(client: Client, want: WantedParts) -> dict[str, Any]:
    """:raises InvalidInput: if a client takes no address from its file, or only with the key itself"""
    if not want.url:
        return client.entry(want.command, want.arguments)
    if client.address is None:
        hint = "Add it in the client's own settings, or leave out --url."
        raise InvalidInput(f"{client.title} takes no address of a server from its file.", hint=hint)
    if want.keyed and not client.address.takes_keys:
        hint = "Add the server in the client's own settings, or leave out --url."
        raise InvalidInput(f"{client.title} would need the key itself in {server_file(client, want)}.", hint=hint)
    return client.address.entry(want.url, keyed=want.keyed)


def is_our_input(item: Any) -> bool:
    return isinstance(item, dict) and item.get("id") == INPUT["id"]


def entry_of(client: Client, text: str) -> dict[str, Any] | None:
    servers = jsonc.read(text).get(client.table) if isinstance(jsonc.read(text), dict) else None
    entry = servers.get(NAME) if isinstance(servers, dict) else None
    return entry if isinstance(entry, dict) else None


def without_server(client: Client, want: WantedParts, text: str) -> str:
    path, file = (client.table, NAME), server_file(client, want)
    if file.suffix == ".toml":
        return toml_text.remove(text, path)
    if jsonc.is_blank(text):
        return text
    original = contents(copy_of(file))
    text = jsonc.remove_items(text, ("inputs",), ours=is_our_input, kept=jsonc.hollow(original, ("inputs",)))
    return jsonc.remove(text, path, kept=jsonc.hollow(original, path))


def entry_to_paste(client: Client, want: WantedParts) -> str:
    """The entry as a text to paste."""
    return with_server(client, want, "").rstrip("\n")


# --- hooks -----------------------------------------------------------------------------------------------------------


def hooks_files(client: Client, want: WantedParts) -> Iterator[Path]:
    if client.hooks is not None:
        yield place(client.hooks.user if want.scope == USER else client.hooks.project, want.folder)


def with_hooks(client: Client, want: WantedParts, text: str) -> str:
    hooks = client.hooks
    assert hooks is not None
    if hooks.version is not None:
        text = jsonc.put(text, ("version",), hooks.version)
    for moment, event in hooks.events.items():
        words = [want.command, "hook", moment, "--client", client.name, *want.memory]
        line = subprocess.list2cmdline(words) if sys.platform == "win32" else shlex.join(words)
        hook: dict[str, Any] = {"type": "command", "command": line, "timeout": hooks.timeout}
        text = jsonc.put_item(text, ("hooks", event), {"hooks": [hook]} if hooks.grouped else hook, ours=is_ours)
    return text


def without_hooks(client: Client, want: WantedParts, text: str) -> str:
    hooks = client.hooks
    assert hooks is not None
    if jsonc.is_blank(text):
        return text
    [file] = hooks_files(client, want)
    original = contents(copy_of(file))
    for event in hooks.events.values():
        path = ("hooks", event)
        text = jsonc.remove_items(text, path, ours=is_ours, kept=jsonc.hollow(original, path))
    was = jsonc.read(original) if original else {"version": hooks.version}
    if "version" not in was and jsonc.read(text).get("hooks") in (None, {}, was.get("hooks")):
        text = jsonc.remove(text, ("version",))
    return text


def is_ours(hook: Any) -> bool:
    """Whether an entry runs a hook of ours, and nothing else."""
    if not isinstance(hook, dict):
        return False
    if isinstance(inner := hook.get("hooks"), list):
        return bool(inner) and all(is_ours(one) for one in inner)
    return OUR_HOOK.search(str(hook.get("command", ""))) is not None


# --- rules -----------------------------------------------------------------------------------------------------------


def rules_files(client: Client, want: WantedParts) -> Iterator[Path]:
    rules = client.user_rules if want.scope == USER else client.project_rules
    if rules:
        yield place(rules, want.folder)


def skill_files(client: Client, want: WantedParts) -> Iterator[Path]:
    skills = client.user_skills if want.scope == USER else client.project_skills
    if skills:
        yield place(skills, want.folder) / NAME / "SKILL.md"
