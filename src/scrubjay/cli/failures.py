"""Errors as people and programs see them: one line, a hint, an exit code; never a traceback unless asked for.

0    done
1    an error; with --json the last line of standard error is {"error": {"code", "message", "hint"}}
2    wrong usage; with --json likewise, with the code "usage"
3    no such memory, no such space
130  interrupted; with --json likewise, with the code "interrupted"
141  the reader of the output has gone (| head), as usual for programs
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

import click

from scrubjay.errors import Error, NotFound
from scrubjay.lazy import json

if TYPE_CHECKING:
    from scrubjay.cli.session import CommandSession

DONE, FAILED, NOT_FOUND, INTERRUPTED, CLOSED_PIPE = 0, 1, 3, 130, 141


class OutputClosed(Exception):
    """The reader of our output has gone away."""


def report(error: BaseException, session: CommandSession) -> int:
    """Print what went wrong and return the exit code."""
    match error:
        case SystemExit():
            return error.code if isinstance(error.code, int) else DONE
        case OutputClosed() | BrokenPipeError():
            silence()
            return CLOSED_PIPE
        case click.Abort() | KeyboardInterrupt():
            report_interrupt(error, session)
            return INTERRUPTED
        case click.ClickException():
            if session.as_json:
                say("usage", usage_message(error), usage_hint(error), session)
            else:
                error.show()
            return error.exit_code
    if session.debug:
        import traceback

        click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
    code, message, hint = describe_failure(error)
    say(code, message, hint, session)
    return NOT_FOUND if isinstance(error, NotFound) else FAILED


def report_interrupt(error: BaseException, session: CommandSession) -> None:
    """Say so, and before it what the command noted on the interrupt, which click hands on as a cause."""
    notes = [*getattr(error, "__notes__", ()), *getattr(error.__cause__, "__notes__", ())]
    if session.as_json:
        say("interrupted", "Interrupted.", " ".join(notes) or None, session)
    else:
        click.echo("\n".join((*notes, "Interrupted.")), err=True)


def usage_message(error: click.ClickException) -> str:
    return "Missing command." if isinstance(error, click.exceptions.NoArgsIsHelpError) else error.format_message()


def usage_hint(error: click.ClickException) -> str | None:
    ctx = getattr(error, "ctx", None)
    return f"See `{ctx.command_path} --help`." if ctx is not None else None


def describe_failure(error: BaseException) -> tuple[str, str, str | None]:
    """Code, message and hint; for unexpected errors, how to learn more."""
    if isinstance(error, Error):
        return error.code, error.message, error.hint
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename else ""
        return "internal", f"{place}{error.strerror}.", "Run it again with --debug to see where."
    return (
        "internal",
        f"Something went wrong inside scrubjay ({type(error).__name__}).",
        "Run it again with --debug and report what it shows.",
    )


def say(code: str, message: str, hint: str | None, session: CommandSession) -> None:
    from scrubjay.cli.output import safe  # a message may quote stored text

    if session.as_json:
        click.echo(json.dumps({"error": {"code": code, "message": message, "hint": hint}}), err=True)
    else:
        click.echo(f"Error: {safe(message)}", err=True)
        if hint:
            click.echo(safe(hint), err=True)


def silence() -> None:
    """Discard what is still in our buffers."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(nowhere, stream.fileno())


def leave(code: int) -> NoReturn:
    """End the process at once. Everything is closed and flushed; taking a hundred modules apart one by one would cost
    as much as a search.
    """
    if sys.stderr is not None:
        with suppress(OSError):
            sys.stderr.flush()
    os._exit(code)
