"""`python -m scrubjay`, and the command `scrubjay`.

`scrubjay mcp` and `scrubjay hook` go their own way, before the command line's library is imported: every window of an
editor starts the one, and every prompt the other.
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    if sys.argv[1:2] == ["mcp"]:
        end_quietly_on_signals()
        incoming, outgoing = private_pipes()
        from scrubjay.servers.stdio.front import run_stdio  # after the pipes are safe

        sys.exit(run_stdio(sys.argv[2:], incoming, outgoing))
    if sys.argv[1:2] == ["hook"]:
        from scrubjay.hooks.run import main as run_hook  # every prompt waits for it

        run_hook(sys.argv[2:])
    try:
        from scrubjay.cli.main import main as run
    except KeyboardInterrupt:  # later ones are the command line's own
        sys.exit(130)
    run()


def end_quietly_on_signals() -> None:
    """Until the server has its own handlers: a client that changes its mind at once must not see a failure. What the
    parent has set to be ignored (`nohup`, a shell's background) stays so."""
    import signal

    for name in ("SIGTERM", "SIGINT", "SIGHUP"):
        if (number := getattr(signal, name, None)) and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda _number, _frame: os._exit(0))


def private_pipes() -> tuple[int, int]:
    """Standard input and output for the protocol alone.

    Any other code that reads 0 finds it empty, and whatever else is written to 1 goes to the log: one stray `print` in
    some library would otherwise end the conversation.
    """
    try:
        incoming, outgoing = os.dup(0), os.dup(1)
    except OSError:
        sys.exit("scrubjay mcp needs standard input and output, and one of them is closed.")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    try:
        os.dup2(2, 1)
    except OSError:  # no log either
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return incoming, outgoing


if __name__ == "__main__":
    main()
