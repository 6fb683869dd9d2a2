"""How far a call walks: which files of scrubjay it runs through, and how often it goes from one to another.

    python -m bench.walk            stores and a search through the library, a `store_memory` over stdio
    python -m bench.walk --files    the same, with every file in the order in which it is first entered

Each call is the second of its kind, so what is made once is there. Values, errors and texts are not counted, nor what
runs in the background. A crossing is a call from a function of one file to a function of another; a re-entry is a
crossing back into a file that is still waiting for its own call to return.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from argparse import SUPPRESS, ArgumentParser
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType
from typing import Any

import scrubjay

ROOT = str(Path(scrubjay.__file__).parent) + os.sep
TEXTS = ("User lives in Hamburg", "User prefers tea to coffee", "User moved to Bremen in May")
TALK = ("User plays chess on Sundays", "User learns Portuguese")
CALLERS = ("MainThread", "AnyIO worker thread")  # of a server's threads those that a call runs in, and …
PROTOCOL = "(_serve)"  # … how the name of the one ends that runs the protocol's library


@dataclass
class Walk:
    """What one call ran through."""

    files: list[str] = field(default_factory=list)  # in the order in which they were first entered
    crossings: int = 0
    reentries: int = 0
    readers: int = 0  # connections for reading that were borrowed
    writes: int = 0  # transactions
    bound: int = 0  # how often an engine was bound to a caller, a space, a request

    def as_json(self) -> dict[str, Any]:
        return dict(vars(self))

    def summary(self) -> str:
        return (
            f"{len(self.files)} files, {self.crossings} crossings, {self.reentries} re-entries; "
            f"{self.readers} readers borrowed, {self.writes} transactions, bound {self.bound} times"
        )


class Tracer:
    """Notes every call of a function of scrubjay, while it is on; a resumed generator is not called again."""

    def __init__(self) -> None:
        self.walk = Walk()
        self._names: dict[CodeType, str | None] = {}
        self._frames: dict[int, FrameType] = {}  # kept, so that no id is used twice

    def __call__(self, frame: FrameType, event: str, _arg: object) -> None:
        if event != "call":
            return
        code = frame.f_code
        if code not in self._names:
            self._names[code] = file_of(code)
        name = self._names[code]
        if name is None or id(frame) in self._frames:
            return
        self._frames[id(frame)] = frame
        self._note(name, code.co_name, self._waiting(frame))

    def _waiting(self, frame: FrameType) -> list[str]:
        """The files on the stack, the caller's first."""
        found = []
        above = frame.f_back
        while above is not None:
            name = self._names.get(above.f_code) or file_of(above.f_code)
            if name is not None:
                found.append(name)
            above = above.f_back
        return found

    def _note(self, name: str, function: str, waiting: list[str]) -> None:
        walk = self.walk
        if name not in walk.files:
            walk.files.append(name)
        if not waiting or waiting[0] != name:
            walk.crossings += 1
            walk.reentries += name in waiting
        walk.readers += function == "_borrow" and name.endswith("/connections.py")
        walk.writes += function == "writing" and name.endswith("/connections.py")
        walk.bound += function == "bound_to"


def file_of(code: CodeType) -> str | None:
    if not code.co_filename.startswith(ROOT):
        return None
    name = code.co_filename.removeprefix(ROOT).replace(os.sep, "/")
    return None if name.startswith(("values/", "text/")) or name.endswith(("errors.py", "__init__.py")) else name


def traced(work: Any) -> Walk:
    tracer = Tracer()
    sys.setprofile(tracer)
    try:
        work()
    finally:
        sys.setprofile(None)
    return tracer.walk


def library() -> dict[str, Walk]:
    """Stores and a search through the library, of new memories in a folder of their own."""
    from scrubjay.embedders.hashing import HashingEmbedder

    # A file of its own has its folders beside it: nothing of this machine's home is read.
    with (
        TemporaryDirectory() as folder,
        scrubjay.open(Path(folder) / "memories.db", embedder=HashingEmbedder()) as jay,
    ):
        for text in TEXTS[:2]:
            jay.store(text)
        stored = traced(lambda: jay.store(TEXTS[2]))
        jay.search("Where does the user live?")
        searched = traced(lambda: jay.search("Where does the user live?"))
        jay.store(TALK[0], conversation_id="walk")
        talked = traced(lambda: jay.store(TALK[1], conversation_id="walk"))
    return {"store": stored, "store in a conversation": talked, "search": searched}


def stdio() -> Walk:
    """A `store_memory` in the process of a stdio server."""
    with TemporaryDirectory() as folder:
        environment = {**os.environ, "SCRUBJAY_HOME": folder, "SCRUBJAY_EMBEDDER": "hashing"}
        command = [sys.executable, "-m", "bench.walk", "--serve", str(Path(folder) / "walk.json")]
        with subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as server:
            assert server.stdin is not None
            assert server.stdout is not None

            def ask(id: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
                tell({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
                while True:
                    message: dict[str, Any] = json.loads(server.stdout.readline())  # type: ignore[union-attr]
                    if message.get("id") == id:
                        return message

            def tell(message: dict[str, Any]) -> None:
                server.stdin.write(json.dumps(message) + "\n")  # type: ignore[union-attr]
                server.stdin.flush()  # type: ignore[union-attr]

            client = {"name": "walk", "version": "1"}
            ask(0, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
            tell({"jsonrpc": "2.0", "method": "notifications/initialized"})
            for number, text in enumerate(TEXTS, 1):
                answer = ask(number, "tools/call", {"name": "store_memory", "arguments": {"content": text}})
                assert not answer["result"].get("isError"), answer
            walk = Walk(**json.loads((Path(folder) / "walk.json").read_text()))
            server.stdin.close()
    return walk


class ServerTracer(Tracer):
    """Starts over with every line that the server reads, and writes down what it has before every answer."""

    def __init__(self, target: Path) -> None:
        super().__init__()
        self._target = target

    def __call__(self, frame: FrameType, event: str, arg: object) -> None:
        code = frame.f_code
        if code.co_name == "read" and event == "return" and code.co_filename.endswith("front.py"):
            self.walk, self._frames = Walk(), {}
        thread = threading.current_thread().name
        if not thread.startswith(CALLERS) and not thread.endswith(PROTOCOL):
            return
        if code.co_name == "send" and event == "call" and code.co_filename.endswith("front.py"):
            self._target.write_text(json.dumps(self.walk.as_json()))
        super().__call__(frame, event, arg)


def serve(target: Path) -> int:
    """A stdio server that traces itself."""
    from scrubjay.servers.stdio.front import run_stdio

    tracer = ServerTracer(target)
    threading.setprofile(tracer)
    sys.setprofile(tracer)
    return run_stdio(["--dialect", "memento"], 0, 1)


def main() -> int:
    parser = ArgumentParser(prog="python -m bench.walk", description="How far a call walks through the code.")
    parser.add_argument("--files", action="store_true", help="print the files in the order of the walk")
    parser.add_argument("--serve", type=Path, help=SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options.serve)
    for name, walk in {**library(), "store_memory over stdio": stdio()}.items():
        print(f"{name}: {walk.summary()}")
        if options.files:
            print(*(f"    {file}" for file in walk.files), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
