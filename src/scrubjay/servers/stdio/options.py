"""What `scrubjay mcp` understands on its command line. Parsed by hand, because importing click would take too long."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

HELP = """\
Usage: scrubjay mcp [OPTIONS]

  Give an agent its long-term memory: an MCP server on standard input and output.

  You rarely run this yourself; your client starts one per window.

Options:
  --dialect NAME  The set of tools to serve. Default: scrubjay, made for
                  agents; others: memento, cortex, system, mama, chimera.
                  Repeat it to serve several; tool names are then prefixed
                  with the dialect, such as memento_store_memory.
  --space NAME    The space that is written to, and the first among those
                  that are read. auto names it after the repository that the
                  server is started in. Default: default.
  --only          Read that space only, instead of every space.
  --extras        Also list the tools that are rarely needed.
  --home FOLDER   Where memories are kept. Default: your data folder.
  --help          Show this message.

Examples:
  claude mcp add scrubjay -- scrubjay mcp --dialect scrubjay --space auto
  scrubjay mcp --home ./memories

Environment: SCRUBJAY_HOME, SCRUBJAY_SPACE, SCRUBJAY_LOG_LEVEL (debug, info, warning, error) and more:
see `scrubjay settings`.
"""


class UsageError(Exception):
    """The command line is invalid."""


class Options:
    """One command line of `scrubjay mcp`; options not given are None and left to the settings."""

    def __init__(self) -> None:
        self.dialects: list[str] = []
        self.space: str | None = None
        self.home: str | None = None
        self.extras = False
        self.only: bool | None = None
        self.help = False


def parse(arguments: Sequence[str]) -> Options:
    """:raises UsageError: naming what is wrong"""
    options = Options()
    rest = list(arguments)
    while rest:
        flag, equals, value = rest.pop(0).partition("=")
        if flag in ("--help", "-h") and not equals:
            options.help = True
        elif flag == "--extras" and not equals:
            options.extras = True
        elif flag == "--only" and not equals:
            options.only = True
        elif flag in ("--dialect", "--space", "--home"):
            if not equals and rest and not rest[0].startswith("--"):
                value = rest.pop(0)
            if not value:
                raise UsageError(f"{flag} needs a value.")
            _set(options, flag, value)
        else:
            raise UsageError(f"Unknown option {flag}.")
    options.dialects = options.dialects or ["scrubjay"]
    return options


def _set(options: Options, flag: str, value: str) -> None:
    if flag == "--space":
        options.space = value
    elif flag == "--home":
        options.home = value
    elif value not in options.dialects:
        options.dialects.append(value)
