"""`scrubjay keys`"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from scrubjay.cli.command import Family
from scrubjay.cli.durations import read_ahead
from scrubjay.cli.output import confirm, note, print_json, show_table, when
from scrubjay.cli.session import CommandSession
from scrubjay.values.callers import Credential, CredentialKind, Role
from scrubjay.values.codec import plain
from scrubjay.values.times import utc_now

if TYPE_CHECKING:
    from scrubjay.engine.callers import Issued


LOCKED = (
    "No valid keys are left. The server stays locked: it refuses every request until you create a key "
    "(`scrubjay keys create --user NAME --role owner`), or turn keys off (`scrubjay keys open`)."
)


@click.group(
    cls=Family,
    without=("--space",),
    examples="""
    scrubjay keys create --user alice --in work --expires 90d
    scrubjay keys list
    scrubjay keys revoke key_4x1k9c0d2m7q
    """,
)
def keys() -> None:
    """Create, list, revoke or rotate credentials for HTTP callers.

    A server without credentials listens on this machine only and requires none. Once the first one is created, every
    request needs one, even after all of them are revoked or expired, until `scrubjay keys open`.
    """


@keys.command(
    meant={"--space": "--in"},
    examples="""
    scrubjay keys create --user alice
    scrubjay keys create --user ci --role reader --in work --name "build server" --expires 90d
    scrubjay keys create --user alice --kind password
    scrubjay keys create --user "auth0|1234" --kind token --in work
    """,
)
@click.option("--user", required=True, help="The user it authenticates; with --kind token, the subject of the tokens.")
@click.option(
    "--role", type=click.Choice([str(role) for role in Role]), default="member", help="Its role. Default: member."
)
@click.option(
    "--in",
    "spaces",
    multiple=True,
    metavar="SPACE",
    help="An existing space it can access; repeat for several, * for all. Default: the user's granted spaces.",
)
@click.option("--name", default="", help="A label for your own list.")
@click.option("--expires", "expires_at", callback=read_ahead, metavar="WHEN", help="When it expires: 90d, 2026-12-01 …")
@click.option(
    "--kind",
    type=click.Choice([str(kind) for kind in CredentialKind]),
    default="key",
    help="A key for programs, a password for the page, or a subject of your token issuer. Default: key.",
)
@click.pass_obj
def create(session: CommandSession, /, *, kind: str, role: str, spaces: tuple[str, ...], **fields: Any) -> None:
    """Create a credential; a key is shown only once.

    An owner can do everything in its spaces, a member writes as itself, a reader reads what is shared. Without --in it
    can access the spaces granted to its user: without grants, the default space; for an owner, every space.
    """
    password = ask_for_password() if kind == CredentialKind.PASSWORD else None
    with session.engine(meaning=False) as engine:
        issued = engine.callers.create(
            **fields, role=Role(role), spaces=spaces or None, kind=CredentialKind(kind), password=password
        )
    show_issued(issued, session)


@keys.command("list", examples="scrubjay keys list")
@click.pass_obj
def list_keys(session: CommandSession) -> None:
    """List credentials, never their secrets."""
    with session.engine(meaning=False) as engine:
        found = engine.callers.credentials()
    rows = [
        (
            one.id,
            one.kind,
            one.user,
            one.role,
            "granted" if one.spaces is None else ", ".join(one.spaces),
            state(one),
            one.created_at,
            one.name,
        )
        for one in found
    ]
    show_table(list(found), ("id", "kind", "user", "role", "spaces", "state", "created", "name"), rows, session)


@keys.command(examples='scrubjay keys revoke key_4x1k9c0d2m7q --reason "laptop lost"')
@click.argument("id")
@click.option("--reason", help="Reason, kept in the audit log.")
@click.pass_obj
def revoke(session: CommandSession, id: str, reason: str | None) -> None:
    """Revoke a credential immediately, with every session it opened."""
    with session.engine(meaning=False) as engine:
        done = engine.callers.revoke(id, reason=reason)
        last = engine.callers.locked() and not engine.callers.in_use()
    if session.as_json:
        print_json({**plain(done), "locked_out": last})
    else:
        note(f"{done.id} of {done.user} revoked.", session)
    if last:
        note(LOCKED, session)


@keys.command("open", examples="scrubjay keys open")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.pass_obj
def open_door(session: CommandSession, *, yes: bool) -> None:
    """Stop requiring keys, after all of them were revoked or have expired.

    Anyone who can reach the server then acts as its owner, as before the first key: every program on this machine, and
    everyone behind a proxy on it. Creating another key locks the server again.
    """
    with session.engine(meaning=False) as engine:
        if engine.callers.locked() and not engine.callers.in_use() and not yes and not ask_agreement():
            note("Nothing changed.", session)
            return
        opened = engine.callers.open_door()
    if session.as_json:
        print_json({"opened": opened})
    elif opened:
        note("Keys are no longer required: anyone who can reach the server acts as its owner.", session)
    else:
        note("Keys were not required.", session)


def ask_agreement() -> bool:
    return confirm(
        "Let anyone who can reach the server act as its owner?",
        otherwise="This lets anyone who can reach the server act as its owner. Pass --yes to confirm.",
    )


@keys.command(examples="scrubjay keys rotate key_4x1k9c0d2m7q")
@click.argument("id")
@click.pass_obj
def rotate(session: CommandSession, id: str) -> None:
    """Replace a key's secret, shown only once; the old one stops working immediately."""
    with session.engine(meaning=False) as engine:
        issued = engine.callers.rotate(id)
    show_issued(issued, session)


def show_issued(issued: Issued, session: CommandSession) -> None:
    credential = issued.credential
    if session.as_json:
        print_json({**plain(credential), "secret": issued.secret})
    elif issued.secret is None:
        click.echo(credential.id)
    else:
        note(f"Key for {credential.user} ({credential.id}), shown only once:", session)
        click.echo(issued.secret)


def ask_for_password() -> str:
    """From a terminal without showing it, or the first line of standard input."""
    if sys.stdin is not None and not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    return str(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))


def state(credential: Credential) -> str:
    if credential.revoked_at is not None:
        return "revoked"
    if not credential.good(utc_now()):
        return "expired"
    return f"until {when(credential.expires_at)}" if credential.expires_at else "good"
