"""A client of a real stdio server, down at the bytes: what it reads must be the protocol and nothing else."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path

SECONDS = 240  # for anything that may wait for the library on a loud machine; never slept, only waited for
CLIENT = {"name": "peer", "version": "1"}
HANDSHAKE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}
ENVELOPE = {
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": CLIENT,
    }
}
COMMAND = [sys.executable, "-m", "scrubjay", "mcp"]


def environment(home: Path, **more: str) -> dict[str, str]:
    """A home of its own, the embedder that only tests use, and patience: a busy machine takes long to import it."""
    ours = {"SCRUBJAY_HOME": str(home), "SCRUBJAY_EMBEDDER": "hashing"}
    return {**os.environ, **ours, "SCRUBJAY_EMBED_WAIT": "60", "SCRUBJAY_JUDGE_WAIT": "0", **more}


class Peer:
    """Starts a server and talks to it; in the dialect memento, unless another is named."""

    def __init__(self, home: Path, *arguments: str, command: Sequence[str] = COMMAND, **env: str) -> None:
        self.process = subprocess.Popen(
            [*command, *(() if "--dialect" in arguments else ("--dialect", "memento")), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(home, **{"PYTHONFAULTHANDLER": "1", **env}),
        )
        self.received: queue.Queue[dict | None] = queue.Queue()
        self.errors = b""
        self._ids = count(1)
        self._threads = [threading.Thread(target=work) for work in (self._collect, self._collect_errors)]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for thread in self._threads:
            thread.join()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            with suppress(BrokenPipeError):
                pipe.close()

    def _collect(self) -> None:
        for line in self.process.stdout:
            try:
                message = json.loads(line)
                assert message["jsonrpc"] == "2.0"
            except (ValueError, KeyError, TypeError, AssertionError):
                message = {"junk on stdout": line}
            self.received.put(message)
        self.received.put(None)

    def _collect_errors(self) -> None:
        self.errors = self.process.stderr.read()

    # --- bytes ---

    def write(self, line: bytes) -> None:
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def read(self) -> dict:
        try:
            message = self.received.get(timeout=SECONDS)
        except queue.Empty:
            raise AssertionError(f"no answer within {SECONDS} s; {self._where()}") from None
        assert message is not None, f"the server is gone: {self.errors.decode()}"
        assert "junk on stdout" not in message, message
        return message

    def _where(self) -> str:
        """Where every thread of a server that does not answer stands; it dies of the question."""
        cpu = Path(f"/proc/{self.process.pid}/stat").read_text().split()[13:15] if Path("/proc").exists() else "?"
        self.process.send_signal(signal.SIGABRT)
        self.process.wait(timeout=SECONDS)
        for thread in self._threads:
            thread.join()
        return f"it had used {cpu} ticks of processor and stood at:\n{self.errors.decode()}"

    # --- messages ---

    def send(self, method: str, params: dict | None = None, **members: object) -> None:
        params = {} if params is None else {"params": params}
        self.write(json.dumps({"jsonrpc": "2.0", "method": method, **params, **members}).encode())

    def ask(self, method: str, params: dict | None = None) -> dict:
        """One request and its reply; nothing else may come in between."""
        request_id = next(self._ids)
        self.send(method, params, id=request_id)
        reply = self.read()
        assert reply["id"] == request_id
        return reply

    def greet(self) -> dict:
        result = self.ask("initialize", HANDSHAKE)["result"]
        self.send("notifications/initialized")
        return result

    def call(self, tool: str, **arguments: object) -> dict:
        return self.ask("tools/call", {"name": tool, "arguments": arguments})["result"]

    def close_input(self) -> None:
        self.process.stdin.close()

    def end(self, seconds: float = SECONDS) -> int:
        """The exit status; fails if it takes longer."""
        status = self.process.wait(timeout=seconds)
        for thread in self._threads:
            thread.join()
        return status
