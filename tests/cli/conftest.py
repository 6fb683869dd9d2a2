"""The program as its users run it: with a home of its own and the embedder that only tests use."""

from __future__ import annotations

import json
import os
import select
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from scrubjay.cli.main import main
from tests.conftest import sqlite_store


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, str]:
        """What `--json` says of a failure: the last line of standard error."""
        return json.loads(self.err.splitlines()[-1])["error"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def environment(home: Path) -> dict[str, str]:
    """Nothing of the machine's own settings comes in, and nothing is left out because the machine is busy."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SCRUBJAY_", "_SCRUBJAY"))}
    ours = {"SCRUBJAY_HOME": str(home), "SCRUBJAY_EMBEDDER": "hashing", "SCRUBJAY_MODELS": str(home / "models")}
    return {**kept, **ours, "SCRUBJAY_EMBED_WAIT": "60", "SCRUBJAY_JUDGE_WAIT": "0"}


@pytest.fixture
def start(environment: dict[str, str], tmp_path: Path) -> Callable[..., subprocess.Popen[bytes]]:
    """Starts the real program."""

    def start(*args: str | bytes, **options: Any) -> subprocess.Popen[bytes]:
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        env = environment | options.pop("env", {})
        command = [sys.executable, "-W", "error", "-m", "scrubjay", *args]
        return subprocess.Popen(command, cwd=tmp_path, env=env, **pipes | options)

    return start


@pytest.fixture
def run(start: Callable[..., subprocess.Popen[bytes]]) -> Callable[..., Done]:
    """Runs the real program to its end."""

    def run(*args: str | bytes, stdin: bytes = b"", **options: Any) -> Done:
        with start(*args, **options) as process:
            out, err = process.communicate(stdin, timeout=240)
        return Done(process.returncode, out.decode(), err.decode())

    return run


@pytest.fixture
def call(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Done]:
    """Calls a command in this process: the same, and quicker."""
    for name in [name for name in os.environ if name.startswith("SCRUBJAY_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)

    def call(*args: str, stdin: bytes | str = b"", env: dict[str, str] | None = None) -> Done:
        done = CliRunner().invoke(main, args, input=stdin, env=environment | (env or {}))
        assert done.exception is None or isinstance(done.exception, SystemExit)
        return Done(done.exit_code, done.stdout, done.stderr)

    return call


@pytest.fixture
def terminal(environment: dict[str, str], tmp_path: Path) -> Callable[..., Done]:
    """Runs the real program at a terminal of its own; `keys` are typed ahead. All it writes is `out`. Once it has
    written `waits_with`, `go_on` is called."""
    pty, termios, fcntl = map(pytest.importorskip, ("pty", "termios", "fcntl"))
    ours, theirs = pty.openpty()  # one terminal for all that is run: the last list is remembered for each

    def terminal(
        *args: str,
        columns: int = 100,
        keys: str = "",
        waits_with: str = "",
        go_on: Callable[[], object] | None = None,
        **env: str,
    ) -> Done:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        kept = {name: value for name, value in environment.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
        command = [sys.executable, "-m", "scrubjay", *args]
        env = {**kept, "TERM": "xterm-256color", "XDG_STATE_HOME": str(tmp_path / "state"), **env}
        shown = b""
        with subprocess.Popen(command, env=env, cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs) as process:
            os.write(ours, keys.encode())
            while process.poll() is None or select.select([ours], [], [], 0.05)[0]:
                if select.select([ours], [], [], 0.05)[0]:
                    shown += os.read(ours, 65536)
                if go_on is not None and waits_with.encode() in shown:
                    go_on()
                    go_on = None
        return Done(process.returncode, shown.decode().replace("\r\n", "\n"), "")

    yield terminal
    os.close(ours)
    os.close(theirs)


@pytest.fixture
def stored(call: Callable[..., Done], environment: dict[str, str]) -> Callable[..., str]:
    """Stores a text and gives its id."""
    home = Path(environment["SCRUBJAY_HOME"])

    def stored(text: str, *options: str) -> str:
        if not home.exists():  # a copy of an empty store: making one takes ten times as long
            home.mkdir(mode=0o700)
            sqlite_store(home / "memories.db").close()
        done = call("store", text, *options)
        assert done.code == 0, done.err
        return done.out.strip()

    return stored


@pytest.fixture
def filled(call: Callable[..., Done]) -> Callable[..., None]:
    """Stores many texts at once, each about as long as asked."""

    def filled(count: int, length: int) -> None:
        lines = (json.dumps({"content": f"Fact number {number}: " + "x" * length}) for number in range(count))
        assert call("import", "-", stdin="\n".join(lines)).code == 0

    return filled
