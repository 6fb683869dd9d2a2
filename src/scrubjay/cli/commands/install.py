"""`scrubjay install`"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from scrubjay.cli.command import Command
from scrubjay.cli.failures import FAILED
from scrubjay.cli.output import note, print_json
from scrubjay.cli.session import CommandSession
from scrubjay.clients.catalogue import CLIENTS, KEY, PROJECT, USER
from scrubjay.clients.install import find_wanted, plan_install, plan_removal, rules_files
from scrubjay.clients.launch import home_arguments, is_running, left_behind
from scrubjay.clients.trial import try_to_connect
from scrubjay.clients.visit import full_address, visit_server
from scrubjay.engine.store.intake import check_space
from scrubjay.errors import Error
from scrubjay.machine.projects import project_root

if TYPE_CHECKING:
    from scrubjay.clients.catalogue import Client
    from scrubjay.clients.files import FileEdit
    from scrubjay.clients.install import WantedParts

NAMES = ", ".join(CLIENTS)


@click.command(
    cls=Command,
    examples="""
    scrubjay install
    scrubjay install --all --dry-run
    scrubjay install claude-code --hooks --rules
    scrubjay install cursor --project
    scrubjay install gemini --remove
    """,
)
@click.argument("clients", nargs=-1, metavar="[CLIENT]...", type=click.Choice(list(CLIENTS)))
@click.option("--all", "every", is_flag=True, help=f"Every client that is found on this machine, of {NAMES}.")
@click.option("--yes", is_flag=True, help="Ask nothing: every client, and hooks only with --hooks.")
@click.option("--user/--project", "for_user", default=True, help="For all of your projects (default), or this one.")
@click.option(
    "--hooks/--no-hooks", default=None, help="Also add its hooks: a brief at the start, memories for prompts."
)
@click.option("--rules", is_flag=True, help="Also tell the agent in its rules file when to recall and remember.")
@click.option("--url", metavar="ADDRESS", help="Connect to a server that runs there, instead of starting one.")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@click.option("--remove", is_flag=True, help="Remove what install added.")
@click.pass_context
def install(  # noqa: PLR0917 - click passes options by name
    ctx: click.Context,
    clients: tuple[str, ...],
    every: bool,
    yes: bool,
    for_user: bool,
    hooks: bool | None,
    rules: bool,
    url: str | None,
    dry_run: bool,
    remove: bool,
) -> None:
    """Connect Claude Code, Cursor, Codex and other clients on this machine.

    Without a name it lists the clients it finds and asks which. A file is changed only where it has to be, after a copy
    of it was made next to it. With --url, a server that wants a key gets it from the variable SCRUBJAY_KEY: the key
    itself is written nowhere.
    """
    session: CommandSession = ctx.obj
    scope = USER if for_user else PROJECT
    if url and hooks:
        raise click.UsageError("Hooks look at a memory on this machine. Leave out --url or --hooks.")
    if session.narrowed:
        check_space(session.space)  # or the entry's server would start, and fail at every call
    server = find_server(url, session) if url and not remove else {}
    wanted = find_clients(clients, scope, all_of_them=every or yes, unasked=dry_run or remove)
    if hooks is None and has_terminal() and not any((clients, yes, url, dry_run, remove)):
        hooks = ask_for_hooks(wanted)
    parts = {"scope": scope, "hooks": bool(hooks), "rules": rules, **server}
    done = [connect(client, session, parts, dry_run=dry_run, remove=remove) for client in wanted]
    if session.as_json:
        print_json(done)
    if not dry_run and not remove:
        warn(session)
    if any(one.get("problem") for one in done):
        ctx.exit(FAILED)


def has_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def find_clients(names: tuple[str, ...], scope: str, *, all_of_them: bool, unasked: bool) -> list[Client]:
    """The clients that were named, or those found on this machine that the user wants.

    :raises click.UsageError: if there is none, or one that was named has no settings for the scope
    """
    for client in (wanted := [CLIENTS[name] for name in names]):
        if scope not in client.scopes:
            raise click.UsageError(f"{client.title} has no settings for a project. Leave out --project.")
    if wanted:
        return wanted
    found = [client for client in CLIENTS.values() if client.is_on_this_machine() and scope in client.scopes]
    if not found:
        raise click.UsageError(f"No client was found on this machine. Name one: {NAMES}.")
    return found if all_of_them else choose_clients(found, unasked=unasked)


def choose_clients(found: list[Client], *, unasked: bool) -> list[Client]:
    """The clients of this machine that the user names; without a terminal all of them, if nothing is connected."""
    names = [client.name for client in found]
    if not has_terminal():
        if unasked:
            return found
        raise click.UsageError(f"Name the clients, or say --all. Found on this machine: {', '.join(names)}.")
    for number, client in enumerate(found, 1):
        click.echo(f"{number:>3}  {client.title}", err=True)

    def read_choice(answer: str) -> list[Client]:
        words = answer.lower().replace(",", " ").split()
        if words in (["all"], ["none"]):
            return found if words == ["all"] else []
        numbers = {word: client for number, client in enumerate(found, 1) for word in (str(number), client.name)}
        if unknown := [word for word in words if word not in numbers]:
            raise click.UsageError(f"{unknown[0]} is none of them. Give numbers, all or none.")
        return [client for client in found if client in [numbers[word] for word in words]]

    picked: list[Client] = click.prompt("Which of them", default="all", value_proc=read_choice, err=True)
    return picked


def ask_for_hooks(clients: list[Client]) -> bool:
    """Whether the user wants hooks, where a client has them."""
    names = [client.title for client in clients if client.hooks is not None]
    asked = f"Add hooks to {' and '.join(names)}: a brief at the start of a session, memories for prompts?"
    return bool(names) and click.confirm(asked, default=False, err=True)


def connect(
    client: Client, session: CommandSession, parts: dict[str, Any], *, dry_run: bool, remove: bool
) -> dict[str, Any]:
    """Connect one client, or disconnect it; what is wrong with it is said and keeps no other from being connected."""
    try:
        want = find_wanted(client, session.settings(), folder=project_root(Path.cwd()), space=session.space, **parts)
        changes = plan_removal(client, want) if remove else plan_install(client, want)
        if not remove:
            tell_missing(client, want, session)
        if dry_run:
            return show_changes(client, want, changes, session)
        return make_changes(client, want, changes, session, tried=not (remove or want.url))
    except Error as error:
        note(" ".join(filter(None, (f"{client.title}: {error.message}", error.hint))), session)
        return {"client": client.name, "scope": parts["scope"], "changed": [], "problem": error.message}


def tell_missing(client: Client, want: WantedParts, session: CommandSession) -> None:
    """What was asked for and this client does not have."""
    if want.hooks and client.hooks is None:
        note(f"{client.title} has no hooks.", session)
    if want.rules and not list(rules_files(client, want)):
        where = "all of your projects" if want.scope == USER else "a project"
        instead = " Run it with --project in a project." if client.project_rules and PROJECT in client.scopes else ""
        note(f"{client.title} has no rules file for {where}.{instead}", session)
    if want.scope == PROJECT and home_arguments(session.settings()):
        note(f"The project's file is shared, so it does not name {session.settings().home}.", session)


def show_changes(client: Client, want: WantedParts, changes: list[FileEdit], session: CommandSession) -> dict[str, Any]:
    for change in () if session.as_json else changes:
        click.echo(change.diff(), nl=False)
    tell_changes(client, changes, "would change", session)
    return summary(client, want, changes)


def make_changes(
    client: Client, want: WantedParts, changes: list[FileEdit], session: CommandSession, *, tried: bool
) -> dict[str, Any]:
    copies = [change.make() for change in changes]
    tell_changes(client, changes, "changed", session)
    for copy in filter(None, copies):
        note(f"  What the file was before is in {copy}.", session)
    result = summary(client, want, changes)
    if tried:
        result |= try_connection(want, session)
        if want.hooks and client.hooks is not None and client.hooks.trusted:
            note(f"  {client.hooks.trusted}", session)
    if changes and is_running(client):
        note(f"  {client.title} is running: restart it.", session)
    return result


def summary(client: Client, want: WantedParts, changes: list[FileEdit]) -> dict[str, Any]:
    files = [str(change.file) for change in changes if change.needed]
    how = {"url": want.url} if want.url else {"command": [want.command, *want.arguments]}
    return {"client": client.name, "scope": want.scope, "changed": files, **how}


def tell_changes(client: Client, changes: list[FileEdit], what: str, session: CommandSession) -> None:
    files = ", ".join(str(change.file) for change in changes if change.needed)
    note(f"{client.title}: {what} {files}" if files else f"{client.title}: nothing to change.", session)


def find_server(url: str, session: CommandSession) -> dict[str, Any]:
    """The server that runs at an address, as a client finds it.

    :raises EndpointUnreachable: if there is none
    """
    url = full_address(url)
    seen, keyed = visit_server(url, os.environ.get(KEY, ""))
    if seen.tools:
        note(f"{url} is {seen.server}: {len(seen.tools)} tools ({', '.join(seen.tools)}).", session)
    if keyed:
        asks = "VS Code asks for it; other clients take it from" if seen.tools else "Put one into"
        note(f"It wants a key (`scrubjay keys create` makes one there). {asks} the variable {KEY}.", session)
    return {"url": url, "keyed": keyed}


def try_connection(want: WantedParts, session: CommandSession) -> dict[str, Any]:
    """Connect as the client will, and say what it saw."""
    if want.scope == PROJECT and shutil.which(want.command) is None:
        note(f"  It starts `{want.command}`, which is not on this machine's search path yet.", session)
        return {}
    seen = try_to_connect([want.command, *want.arguments], folder=str(want.folder))
    if seen.why_not:
        note(f"  But the server did not start: {seen.why_not} `scrubjay doctor` may say why.", session)
        return {"problem": seen.why_not}
    note(f"  Connected to {seen.server}: {len(seen.tools)} tools ({', '.join(seen.tools)}).", session)
    return {"server": seen.server, "tools": list(seen.tools)}


def warn(session: CommandSession) -> None:
    """Settings that only this shell has."""
    if names := left_behind(os.environ):
        home = session.settings().home
        what = "it" if len(names) == 1 else "them"
        note(f"Clients do not see this shell's {', '.join(names)}. Put {what} into {home / 'config.toml'}.", session)
