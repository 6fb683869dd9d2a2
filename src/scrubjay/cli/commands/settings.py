"""`scrubjay settings`"""

from __future__ import annotations

import os
from dataclasses import fields

import click

from scrubjay.cli.command import Command
from scrubjay.cli.output import show_table
from scrubjay.cli.session import CommandSession
from scrubjay.machine.outgoing import without_password
from scrubjay.settings import Settings, environment_name, read_config


@click.command(
    cls=Command,
    examples="""
    scrubjay settings
    scrubjay settings --home ./memories --json
    """,
)
@click.pass_obj
def settings(session: CommandSession) -> None:
    """Show every setting, its value and where it comes from.

    A flag wins over the environment (SCRUBJAY_HOME …), which wins over config.toml in the home, which wins over the
    default.
    """
    loaded = session.settings()
    config = read_config(loaded.home / "config.toml")
    flags = {"home": session.home, "space": session.space}
    shown = [
        {
            "name": entry.name,
            "value": shown_value(entry.name, getattr(loaded, entry.name)),
            "from": origin(entry.name, flags, config),
            "environment": environment_name(entry.name),
            "help": str(entry.metadata["help"]),
        }
        for entry in fields(Settings)
    ]
    show_table(shown, ("setting", "value", "from", "meaning"), [[one[key] for key in KEYS] for one in shown], session)


KEYS = ("name", "value", "from", "help")


def shown_value(name: str, value: object) -> str:
    """The value; for secrets, only whether it is set."""
    if name.endswith(("_key", "_token")):
        return "…" if value else ""
    return without_password(str(value))


def origin(name: str, flags: dict[str, str | None], config: dict[str, object]) -> str:
    """Where a value came from; the order is that of `settings.load`."""
    if flags.get(name):
        return "flag"
    if os.environ.get(environment_name(name)):
        return "environment"
    return "config.toml" if name in config and name != "home" else "default"
