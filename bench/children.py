"""Processes of our own: started with compiled bytecode, talked to over stdio, and weighed when they are gone."""

from __future__ import annotations

import compileall
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import scrubjay

PACKAGE = Path(scrubjay.__file__).parent
BARE = [sys.executable, "-c", "pass"]
# What the installed command does, without the package having to be installed.
COMMAND = [sys.executable, "-c", "from scrubjay.__main__ import main; main()"]

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


def compile_package() -> None:
    """Children must never pay for compiling: that is done once, at installation."""
    compileall.compile_dir(str(PACKAGE), quiet=1)


def environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SCRUBJAY_"))}
    if models := os.environ.get("SCRUBJAY_MODELS"):
        kept["SCRUBJAY_MODELS"] = models
    return {**kept, "PYTHONPATH": str(PACKAGE.parent), "SCRUBJAY_HOME": str(home), "SCRUBJAY_MODEL_PULL": "never"}


def run(command: Sequence[str], home: Path, *, check: bool = True) -> tuple[float, float]:
    """Seconds of processor and wall that a command takes from start to end."""
    begun = time.perf_counter()
    with subprocess.Popen(
        command, env=environment(home), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as child:
        errors = child.stderr.read() if child.stderr else b""
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - begun
        child.returncode = os.waitstatus_to_exitcode(status)
    if check and child.returncode:
        raise RuntimeError(f"{' '.join(command[2:])} ended with {child.returncode}: {errors.decode()[-500:]}")
    return usage.ru_utime + usage.ru_stime, wall


def memory_of(pid: int) -> dict[str, float]:
    """Megabytes: resident, its own share of them (pages that n processes share count 1/n), and private ones."""
    fields: dict[str, int] = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, value, *_ = line.split()
        fields[name.rstrip(":")] = int(value)
    private = fields["Private_Clean"] + fields["Private_Dirty"]
    return {"resident": fields["Rss"] / 1000, "share": fields["Pss"] / 1000, "private": private / 1000}


def bare_memory(code: str, home: Path) -> dict[str, float]:
    """What a program holds once it has run this code."""
    with subprocess.Popen(
        [sys.executable, "-c", f"{code}\nprint(flush=True)\ninput()"],
        env=environment(home),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout
        child.stdout.readline()
        weighed = memory_of(child.pid)
        child.communicate(b"\n")
    return weighed


class Server:
    """A `scrubjay mcp` of our own, from its start to its end."""

    def __init__(self, home: Path, program: str | None = None) -> None:
        """`program`: Python that is run instead of the command."""
        self.begun = time.perf_counter()
        self._child = subprocess.Popen(
            [*(COMMAND if program is None else [sys.executable, "-c", program]), "mcp", "--dialect", "memento"],
            env=environment(home),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._asked = 0

    def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self._asked += 1
        self._send({"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params})
        return self._answer(self._asked)

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """:raises RuntimeError: if the tool failed, or did less than it should"""
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments})
        if answer.get("result", {}).get("isError", True) or "degraded" in answer["result"]["structuredContent"]:
            raise RuntimeError(f"{tool} failed: {answer}")
        return answer["result"]["structuredContent"]

    def open(self) -> None:
        """The handshake and the list of tools: what every client asks first."""
        self.ask("initialize", INITIALIZE)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.ask("tools/list", {})

    def memory(self) -> dict[str, float]:
        return memory_of(self._child.pid)

    def end(self) -> tuple[float, float]:
        """Stop it at once; seconds of processor and wall that it had."""
        wall = time.perf_counter() - self.begun
        self._child.send_signal(signal.SIGKILL)
        _, status, usage = os.wait4(self._child.pid, 0)
        self._child.returncode = os.waitstatus_to_exitcode(status)
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe:
                pipe.close()
        return usage.ru_utime + usage.ru_stime, wall

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._child.returncode is None:
            self.end()

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._child.stdin
        self._child.stdin.write(json.dumps(message).encode() + b"\n")
        self._child.stdin.flush()

    def _answer(self, id: int) -> dict[str, Any]:
        assert self._child.stdout
        while line := self._child.stdout.readline():
            message = json.loads(line)
            if message.get("id") == id:
                return message
        raise RuntimeError("the server ended before it answered")
