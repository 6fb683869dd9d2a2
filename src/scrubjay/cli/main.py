"""The program: its commands, its global options and how it ends.

Only click and the standard library are imported here; a command's own file is imported when the command is used, and
the list of commands is a table, so that `scrubjay --help` imports none of them.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from io import TextIOWrapper
from typing import Any

import click

from scrubjay.cli import failures
from scrubjay.cli.command import Examples, global_options
from scrubjay.cli.session import CommandSession
from scrubjay.lazy import difflib

SECTIONS = {
    "Remember": {
        "store": "Store a memory.",
        "update": "Update a memory; the earlier version stays in the history.",
        "edit": "Edit a memory's text in your editor; the earlier version stays in the history.",
        "supersede": "Mark a memory as outdated by a newer one.",
        "suggestions": "List what hooks suggest to remember; accept or drop it.",
        "conflicts": "List memories that a newer one may have outdated, or resolve them.",
        "consolidate": "Merge several related memories into one.",
        "tidy": "Let a language model write phrases to find memories by.",
    },
    "Find": {
        "brief": "Show what an agent should know at the start of a session.",
        "search": "Find memories by meaning and by words, best first.",
        "list": "List memories, newest first.",
        "show": "Show everything about a memory.",
        "tags": "List tags, the most frequent first.",
        "stats": "Show how many memories there are, of which kinds, and how they are used.",
        "history": "Show a memory's earlier versions, or restore one.",
        "duplicates": "List memories that say the same in the same words.",
        "decisions": "Show how decisions evolved, topic by topic.",
    },
    "Forget": {
        "forget": "Forget memories; they can be restored for thirty days.",
        "undo": "Take back the last change to a memory.",
        "prune": "Forget expired memories.",
        "archive": "Move memories to cold storage, or restore them.",
    },
    "Move": {
        "export": "Write every memory of a space as JSON lines.",
        "import": "Import JSON lines: an export, or your own list.",
        "copy": "Copy a whole store into a new one: a file or a postgresql:// address.",
        "sync": "Keep several stores in sync: a second machine, a shared drive.",
        "backup": "Copy the whole store, every space of it, to a new file.",
        "restore": "Restore the store from a backup.",
    },
    "Serve agents": {
        "install": "Connect Claude Code, Cursor, Codex and other clients on this machine.",
        "config": "Print what a client needs to connect, and change nothing.",
        "mcp": "Run an MCP server on standard input and output; your client starts this.",
        "serve": "Serve the memory over HTTP.",
        "hook": "What a client's hooks run; it answers in time, or not at all.",
        "hooks": "Show what hooks gave to agents.",
        "open": "Open the page in your browser, at a memory if you name one.",
        "keys": "Create, list, revoke or rotate credentials for HTTP callers.",
        "audit": "Show who did what, newest first.",
    },
    "Maintain": {
        "doctor": "Check the memory's health and suggest a fix for each finding.",
        "model": "Download, list or check embedding models.",
        "jobs": "List, run or cancel background jobs.",
        "folders": "Keep memories as Markdown files that you can read, edit and commit to git.",
        "reembed": "Rebuild every vector with the configured model.",
        "spaces": "List, create or grant spaces, one per project or purpose.",
        "settings": "Show every setting, its value and where it comes from.",
        "completion": "Print the script that lets your shell complete commands.",
    },
}
FORMER = {"stores": "folders"}  # names that still work, and are listed nowhere
COMMANDS = {name: sentence for section in SECTIONS.values() for name, sentence in section.items()}
SPELT = {
    "import": ("import_", "import_"),
    "list": ("list", "list_"),
    "open": ("open", "open_"),
}  # where Python reserves the plain name
EXAMPLES = """
scrubjay store "User moved to Austin" --tag home
scrubjay search "Where does the user live?"
claude mcp add scrubjay -- scrubjay mcp --dialect scrubjay --space auto
"""


class Program(Examples, click.Group):
    """Finds a command in its file, and turns every way of ending into an exit code."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args[:1] in (["version"], ["help"]):  # what many programs call it
            args = [*args[1:], f"--{args[0]}"]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's
        cmd_name = FORMER.get(cmd_name, cmd_name)
        if cmd_name not in COMMANDS:
            return None
        file, function = SPELT.get(cmd_name, (cmd_name, cmd_name))
        found: click.Command = getattr(import_module(f"scrubjay.cli.commands.{file}"), function)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in (*COMMANDS, *FORMER) and not args[0].startswith("-") and not ctx.resilient_parsing:
            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            more = f"Did you mean {near[0]!r}?" if near else "`scrubjay --help` lists them."
            ctx.fail(f"Unknown command {args[0]!r}. {more}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        for section, commands in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name.ljust(10), sentence) for name, sentence in commands.items()])

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run, and exit with a code; click's own handling would show tracebacks and has no 3 or 130."""
        session, as_program = CommandSession(), not args and extra.get("args") is None
        if as_program:
            gc.set_threshold(10_000)  # imports make hardly any garbage, and looking for it takes time
            sys.argv[1:] = map(decode_argument, sys.argv[1:])
            if isinstance(sys.stdout, TextIOWrapper):
                sys.stdout.reconfigure(errors="backslashreplace")  # a terminal may lack letters that a memory has
        extra |= {"prog_name": "scrubjay", "standalone_mode": False, "obj": session}
        try:
            code = super().main(*args, **extra) or failures.DONE
            if sys.stdout is not None:
                sys.stdout.flush()
        except BaseException as error:  # noqa: BLE001 - the one place where every failure becomes a line and a code
            typed = sys.argv[1:] if as_program else [*(args[0] if args else extra.get("args") or ())]
            session.as_json |= "--json" in typed[: typed.index("--") if "--" in typed else None]  # not parsed so far
            code = failures.report(error, session)
        if as_program:
            failures.leave(code)
        sys.exit(code)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise failures.OutputClosed from error  # click would make it exit code 1


def decode_argument(argument: str) -> str:
    """An argument whose bytes the locale could not decode, read as UTF-8, which terminals nearly always send."""
    try:
        return os.fsencode(argument).decode("utf-8") if not argument.isascii() else argument
    except UnicodeError:
        return argument


def show_version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from scrubjay import __version__

        click.echo(f"scrubjay {__version__}")
        ctx.exit()


@click.group(
    cls=Program,
    examples=EXAMPLES,
    params=[
        *global_options(),
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=show_version,
            help="Show the version and exit.",
        ),
    ],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
def main() -> None:
    """Long-term memory for AI agents: one memory, no cloud.

    Wherever a memory's id is expected, its beginning is enough (mem_4x1k, or 4x1k), and @1 is the first memory of the
    last list in this terminal.

    Results go to standard output, everything else to standard error. Exit codes: 0 done, 1 an error, 2 wrong usage,
    3 no such memory or space, 130 interrupted.
    """
