"""Windows and commands on one home that lend each other the model, and are stopped, killed and started; for tests and
benches."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import scrubjay
from scrubjay.embedders.catalogue import DEFAULT
from scrubjay.machine.local_sockets import LENDS, is_stopped
from tests.reliability.rounds import wait_until
from tests.servers.peer import COMMAND, HANDSHAKE, SECONDS, Peer, environment

MODEL = {"SCRUBJAY_EMBEDDER": DEFAULT}
# A window that waits for a lender as long as it takes: a busy machine is no failure.
PATIENT = """
from scrubjay.embedders import lending
lending.LOADING_SECONDS = lending.Lending.__init__.__kwdefaults__["patience"] = 240.0
from scrubjay.__main__ import main
main()
"""
QUESTION = "Where does the user keep the boat?"


def filled(home: Path) -> Path:
    """A home with a memory or two, made by this process's own model."""
    home.mkdir(mode=0o700, exist_ok=True)
    with scrubjay.open(home / "memories.db") as jay:
        for text in ("The boat is in the harbour of Split", "User plays the cello"):
            jay.store(text)
    return home


def window(home: Path, *, patient: bool = True, mounts: str = "", **env: str) -> Peer:
    """`mounts`: commands of root's, after which this window sees other files than the rest of the machine."""
    command = [sys.executable, "-c", PATIENT, "mcp"] if patient else COMMAND
    if mounts:
        command = ["unshare", "--mount", "sh", "-c", f'{mounts} && exec "$@"', "sh", *command]
    peer = Peer(home, command=command, **MODEL, **env)
    peer.greet()
    return peer


def another_version(folder: Path) -> dict[str, str]:
    """The environment of an installation whose model's vectors are others, with a store of its own in the same home."""
    shutil.copytree(Path(scrubjay.__file__).parent, folder / "scrubjay")
    catalogue = folder / "scrubjay" / "embedders" / "catalogue.py"
    changed = catalogue.read_text().replace("\nRECIPE = 1\n", "\nRECIPE = 1_000\n")
    assert changed != catalogue.read_text()
    catalogue.write_text(changed)
    return {"PYTHONPATH": str(folder), "SCRUBJAY_STORE": f"sqlite:///{folder}/memories.db"}


def command(home: Path, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "scrubjay", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(home, **MODEL),
    )


def search(home: Path) -> tuple[bool, str]:
    """By the command line: whether it was answered with the model, and what it said beside its result."""
    out, errors = (done := command(home, "search", QUESTION, "--json")).communicate(timeout=SECONDS)
    return done.returncode == 0 and out.startswith(b"[\n") and b"degraded" not in errors, errors.decode()


def found(peer: Peer) -> bool:
    """Whether a window's search was answered with the model."""
    return well(peer.call("search_memories", query=QUESTION))


def well(result: dict) -> bool:
    return not result["isError"] and "degraded" not in result["structuredContent"]


def sockets_of(home: Path) -> list[str]:
    return sorted(os.listdir(home / "run")) if (home / "run").is_dir() else []


def lenders(home: Path) -> list[int]:
    return [int(name.partition(".")[0]) for name in sockets_of(home) if name.endswith(LENDS)]


def imports(peer: Peer, library: str) -> bool:
    return f"/{library}/" in Path(f"/proc/{peer.process.pid}/maps").read_text()


def processes_on(home: Path) -> list[int]:
    """All that were started with this home, wherever they are now."""
    named, ours = f"SCRUBJAY_HOME={home}".encode(), []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if named in (folder / "environ").read_bytes().split(b"\0"):
                ours.append(int(folder.name))
    return ours


def locks_on(home: Path) -> int:
    """Locks on files and folders of a home that some process holds."""
    inodes = {str(place.stat().st_ino) for place in (home, *home.rglob("*"))}
    return sum(line.split()[5].rpartition(":")[2] in inodes for line in Path("/proc/locks").read_text().splitlines())


@dataclass
class Killed:
    """What became of searches whose lender was killed."""

    answered: int = 0
    degraded: list[dict] = field(default_factory=list)


def killed_under_searches(home: Path, windows: int, searches: int, *, patient: bool = True, **env: str) -> Killed:
    """So many searches at once in all windows but one, which lends and is killed meanwhile."""
    told = Killed()
    with ExitStack() as stack:
        lender, *others = (stack.enter_context(window(home, patient=patient, **env)) for _ in range(windows))
        assert all(map(found, (lender, *others)))
        assert lenders(home) == [lender.process.pid]
        for number in range(searches):
            arguments = {"query": f"{QUESTION} {number}"}
            params = {"name": "search_memories", "arguments": arguments}
            others[number % len(others)].send("tools/call", params, id=10_000 + number)
        lender.process.kill()
        for number in range(searches):
            result = others[number % len(others)].read()["result"]
            told.answered += 1
            told.degraded += [] if well(result) else [result]
    return told


@dataclass
class Left:
    """What is left when all have gone; the sockets: before and after the next search."""

    processes: list[int]
    locks: int
    sockets_before: int
    sockets: list[str]


def ended_at_random(home: Path, windows: int, commands: int, chance: Random, at_once: int = 8) -> Left:
    """Windows and commands that are started, used, closed and killed in any order, some while others begin."""
    kinds = ["window"] * windows + ["command"] * commands
    chance.shuffle(kinds)
    places = threading.BoundedSemaphore(at_once)

    def live(kind: str, wait: float, how: str) -> None:
        with places:
            if kind == "command":
                with command(home, "search", QUESTION) as process:
                    end(process, wait, how)
                return
            with Peer(home, **MODEL) as peer:
                peer.send("initialize", HANDSHAKE, id=1)
                peer.send("tools/call", {"name": "search_memories", "arguments": {"query": QUESTION}}, id=2)
                end(peer.process, wait, how)

    def end(process: subprocess.Popen[bytes], wait: float, how: str) -> None:
        with suppress(subprocess.TimeoutExpired):
            process.wait(wait)
        if how == "close" and process.stdin is not None:
            process.stdin.close()
        elif process.poll() is None:
            process.send_signal(signal.SIGKILL if how == "kill" else signal.SIGTERM)
        process.wait(SECONDS)

    threads = [
        threading.Thread(
            target=live, args=(kind, chance.random() * 4, chance.choice(["kill", "kill", "term", "close"]))
        )
        for kind in kinds
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait_until(lambda: not processes_on(home), seconds=60)
    processes, locks, before = processes_on(home), locks_on(home), len(sockets_of(home))
    answered, said = search(home)
    assert answered, said
    return Left(processes, locks, before, sockets_of(home))


def stopped(peers: Sequence[Peer]) -> ExitStack:
    """These processes do nothing until the block ends."""
    stack = ExitStack()
    for peer in peers:
        peer.process.send_signal(signal.SIGSTOP)
        stack.callback(peer.process.send_signal, signal.SIGCONT)
        wait_until(lambda pid=peer.process.pid: is_stopped(pid))
    return stack
