"""Library processes beside the test: each runs one job of `children.py`, says lines of JSON and hears lines of text."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from queue import Queue
from typing import Any

from tests.reliability.rounds import PATIENCE

ROOT = Path(__file__).parents[2]


class Child:
    """One process. What it says also goes to a shared queue, with the child, if one is given."""

    def __init__(self, job: str, *arguments: object, said: Queue[tuple[Child, Any]] | None = None, **env: str) -> None:
        self.said: Queue[tuple[Child, Any]] = said or Queue()
        self.errors = b""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.reliability.children", job, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, **env},
            start_new_session=True,
        )
        self._threads = [threading.Thread(target=work) for work in (self._listen, self._listen_to_errors)]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self.process.wait()
        for thread in self._threads:
            thread.join()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            with suppress(BrokenPipeError):
                pipe.close()

    def hear(self, seconds: float = PATIENCE) -> Any:
        """The next thing it says; None at its end."""
        child, said = self.said.get(timeout=seconds)
        assert child is self
        return said

    def rest(self) -> list[Any]:
        """Everything it still says."""
        lines = []
        while (said := self.hear()) is not None:
            lines.append(said)
        return lines

    def tell(self, line: str = "go") -> None:
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, 9)

    def end(self) -> None:
        """Wait for a good end."""
        self.process.stdin.close()
        assert self.process.wait(timeout=PATIENCE) == 0, self.errors.decode()

    def _listen(self) -> None:
        for line in self.process.stdout:
            with suppress(ValueError):  # a line that a kill has cut
                self.said.put((self, json.loads(line)))
        self.said.put((self, None))

    def _listen_to_errors(self) -> None:
        self.errors = self.process.stderr.read()
