"""One loaded model for all processes of a home: what is borrowed is the same vector, and a bad lender costs little."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import threading
from contextlib import ExitStack, closing, suppress
from itertools import count, repeat
from types import SimpleNamespace

import numpy as np
import pytest

from scrubjay.embedders import lending as lending_module
from scrubjay.embedders.base import NotLoaded
from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.embedders.lending import IDLE_SECONDS, MANY, MINUTE, Lending, Turns, lenders_of
from scrubjay.engine.parts import engine_on
from scrubjay.hooks.listening import ASKERS, listen
from scrubjay.machine.local_sockets import BEGUN, LENDS, address, exchange, remove_dead, sockets
from scrubjay.machine.locks import try_lock
from scrubjay.settings import load
from tests.conftest import sqlite_store
from tests.embedders.embedder_contract import EmbedderContract
from tests.reliability.processes import Child

NO_PROCESS = 2**31 - 1  # more than any system gives
PATIENT = 60.0  # for lenders in tests of other things: a busy machine is no failure


class Counted(HashingEmbedder):
    """Says how often it was loaded and asked, and has a fingerprint of its own."""

    def __init__(self, fingerprint="hashing-1"):
        self.own_fingerprint = fingerprint
        self.loads = self.asked = self.closed = 0

    @property
    def fingerprint(self):
        return self.own_fingerprint

    def load(self, progress=None):
        self.loads += 1

    def embed_query(self, text):  # which `embed` uses
        self.asked += 1
        return super().embed_query(text)

    def close(self):
        self.closed += 1


@pytest.fixture
def window(tmp_path):
    """Opens what a window of an editor has of it: a model that may be lent and, unless it is quiet, a socket."""
    with ExitStack() as stack:

        def open_window(model=None, *, listens=True, patience=PATIENT, now=None):
            lending = Lending(tmp_path, patience=patience, **({} if now is None else {"now": now}))
            lent = lending.shared(model or Counted())
            if listens:
                engine = engine_on(sqlite_store(tmp_path / "memories.db"), lent, lending=lending)
                stack.enter_context(closing(engine))
                end = listen(load(home=tmp_path, embedder="hashing"), engine, lambda: "an editor")
                stack.callback(end)
            return lent

        yield open_window


def names(home):
    return [path.name for path in sockets(home)]


class TestBorrowed(EmbedderContract):
    """A borrowed model keeps every promise of the one that is lent."""

    @pytest.fixture
    def embedder(self, window):
        window().load()
        borrower = window(listens=False)
        borrower.load()
        return borrower

    @pytest.fixture
    def another(self, window):
        return window(listens=False)


class TestLoadedHere(EmbedderContract):
    @pytest.fixture
    def embedder(self, tmp_path):
        return Lending(tmp_path).shared(HashingEmbedder())

    @pytest.fixture
    def another(self):
        return Lending().shared(HashingEmbedder())


def test_who_needs_a_vector_borrows_the_model_that_another_has_loaded(window, tmp_path):
    lender, borrower = window(first := Counted()), window(second := Counted(), listens=False)
    lender.load()
    borrower.load()

    vector = borrower.embed_query("Where is the boat?")

    assert np.array_equal(vector, HashingEmbedder().embed_query("Where is the boat?"))
    assert (first.loads, second.loads, second.asked) == (1, 0, 0)
    assert names(tmp_path) == [f"{os.getpid()}{LENDS}"]


def test_a_window_that_has_loaded_nothing_lends_nothing_and_is_not_asked(window, tmp_path):
    window()
    other = window(model := Counted(), listens=False)

    other.load()

    assert model.loads == 1
    assert names(tmp_path) == [f"{os.getpid()}.sock"]


def test_a_model_of_another_fingerprint_is_not_borrowed(window):
    """Another version, or another setting: its vectors mean something else."""
    window(Counted("hashing-2")).load()
    other = window(model := Counted("hashing-1"), listens=False)
    other.load()

    with pytest.raises(NotLoaded):
        other.embed_query("Where is the boat?")
    other.load()

    assert model.loads == 1, "whoever did not help is not asked again"


def test_a_version_without_lending_is_passed_over(window, tmp_path):
    """It does not know the message, and hangs up."""
    (tmp_path / "run").mkdir(exist_ok=True)
    with older_version(tmp_path / "run" / f"1{LENDS}"):
        other = window(model := Counted(), listens=False)
        other.load()
        with pytest.raises(NotLoaded):
            other.embed_query("Where is the boat?")
        other.load()

        assert model.loads == 1
        assert lenders_of(tmp_path) == []


def older_version(path):
    return answering(path, b"")


def listener(path, backlog=8):
    line = socket.socket(socket.AF_UNIX)
    with address(path) as name:
        line.bind(name)
    line.listen(backlog)
    return line


@pytest.mark.parametrize("many", [1, 3])
def test_lenders_that_take_a_question_and_never_answer_cost_their_patience_once_all_together(window, tmp_path, many):
    """As a stopped process does: the system takes its callers."""
    (tmp_path / "run").mkdir(exist_ok=True)
    with ExitStack() as stack:
        for number in range(many):
            stack.enter_context(listener(tmp_path / "run" / f"{number + 1}{LENDS}"))
        other = window(model := Counted(), listens=False, patience=0.2)
        other.load()
        with pytest.raises(NotLoaded):
            other.embed_query("Where is the boat?")
        other.load()
        other.embed_query("Where is the boat?")

    assert (model.loads, model.asked) == (1, 1)


def test_who_was_kept_waiting_does_not_ask_the_next_lender(window, tmp_path):
    """Else all who were let down by one would go to the next together, which is then as late."""
    (tmp_path / "run").mkdir(exist_ok=True)
    with listener(tmp_path / "run" / f"1{LENDS}"), ExitStack() as stack:
        other = window(model := Counted(), listens=False, patience=0.2)
        other.load()
        with pytest.raises(NotLoaded):
            other.embed_query("Where is the boat?")
        stack.enter_context(listener(tmp_path / "run" / f"2{LENDS}"))
        other.load()

    assert model.loads == 1


def test_texts_of_one_call_are_waited_for_together(window, monkeypatch):
    """A lender that takes its time for each of them costs no more than one that never answers."""
    window().load()
    other = window(model := Counted(), listens=False, patience=0.25)
    other.load()
    times = count()
    monkeypatch.setattr(lending_module, "time", SimpleNamespace(monotonic=lambda: 0.15 * next(times)))

    with pytest.raises(NotLoaded):
        other.embed(["Where is", "the boat?"])

    assert model.asked == 0


def test_a_lender_whose_queue_of_callers_is_full_is_not_waited_for(window, tmp_path):
    (tmp_path / "run").mkdir(exist_ok=True)
    place = tmp_path / "run" / f"1{LENDS}"
    with ExitStack() as stack:
        stack.enter_context(listener(place, backlog=0))
        while True:
            waiting = stack.enter_context(socket.socket(socket.AF_UNIX))
            waiting.setblocking(False)
            with address(place) as name:
                if waiting.connect_ex(name):
                    break
        other = window(model := Counted(), listens=False, patience=PATIENT)
        other.load()
        with pytest.raises(NotLoaded):  # at once: no test waits for so long a patience
            other.embed_query("Where is the boat?")
        other.load()

        assert model.loads == 1
        assert place.exists(), "someone listens there"


def test_what_is_no_answer_is_not_taken_for_one(window, tmp_path):
    (tmp_path / "run").mkdir(exist_ok=True)
    for reply in (
        b"[]\n",
        b"{}\n",
        b'{"vector": "AAAA"}\n',
        b'{"vector": 5}\n',
        b"\xff\n",
        b'{"vector": "AAAAAA=="}\n',
    ):
        with answering(tmp_path / "run" / f"1{LENDS}", reply):
            other = window(listens=False)
            other.load()
            with pytest.raises(NotLoaded):
                other.embed_query("Where is the boat?")
        (tmp_path / "run" / f"1{LENDS}").unlink(missing_ok=True)


def answering(path, reply):
    line = listener(path)

    def serve():
        with suppress(OSError):  # closed
            while True:
                asker, _ = line.accept()
                with asker, suppress(OSError):
                    if asker.recv(100_000):
                        asker.sendall(reply)

    threading.Thread(target=serve, daemon=True).start()
    return line


def test_sockets_of_the_dead_are_removed_by_whoever_looks_for_a_lender(window, tmp_path):
    (tmp_path / "run").mkdir(exist_ok=True)
    for name in ("1.sock", f"2{LENDS}", f"3{LENDS}"):
        listener(tmp_path / "run" / name).close()
    living = listener(tmp_path / "run" / "4.sock")
    gone, beginning = tmp_path / "run" / f"{NO_PROCESS}{BEGUN}", tmp_path / "run" / f"{os.getpid()}{BEGUN}"
    gone.touch()
    beginning.touch()

    window(listens=False).load()

    assert {path.name for path in (tmp_path / "run").iterdir()} == {"4.sock", beginning.name}
    living.close()


def test_who_embeds_much_loads_the_model_itself_and_lends_it(window, tmp_path):
    lender, importer = window(first := Counted()), window(second := Counted(), listens=False)
    lender.load()
    importer.load()

    importer.embed([f"Memory {number}" for number in range(16)])

    assert (first.asked, second.loads, second.asked) == (0, 1, 16)


def test_who_embeds_one_text_after_the_other_borrows_at_first_only(window):
    """As a backlog does, or a folder that is taken in."""
    now = [0.0]
    window(Counted()).load()
    other = window(model := Counted(), listens=False, now=lambda: now[0])
    for number in range(MANY):
        other.embed([f"Memory {number}"])
        now[0] += MINUTE / (MANY - 2)
    assert model.loads == 0, "more than an agent stores or asks"

    for number in range(MANY // 2):
        other.embed([f"Further memory {number}"])
        other.embed_query(f"Question {number}")

    assert model.loads == 1


def test_models_that_are_loaded_at_once_are_loaded_one_after_the_other_and_then_borrowed(window, tmp_path):
    """Ten windows that are opened together load one model."""
    first = window()
    go_on, models = threading.Event(), [Counted() for _ in range(9)]
    first._embedder.load = lambda progress=None: go_on.wait(60)
    others = [window(model, listens=False) for model in models]
    threads = [threading.Thread(target=one.load) for one in (first, *others)]
    threads[0].start()
    while not held(tmp_path / "run"):
        pass
    for thread in threads[1:]:
        thread.start()
    go_on.set()
    for thread in threads:
        thread.join(60)

    assert [model.loads for model in models] == [0] * 9


def held(folder):
    file = os.open(folder, os.O_RDONLY)
    try:
        return not try_lock(file)
    finally:
        os.close(file)


def test_who_waits_in_vain_for_another_that_loads_loads_it_too(window, tmp_path):
    """That one is stopped, perhaps for good. The clock does not stand still for it."""
    (tmp_path / "run").mkdir(exist_ok=True)
    stopped = os.open(tmp_path / "run", os.O_RDONLY)
    assert try_lock(stopped)
    times = iter(range(100))

    window(model := Counted(), listens=False, now=lambda: float(next(times))).load()

    assert model.loads == 1
    os.close(stopped)


@pytest.mark.process
def test_a_process_that_is_stopped_while_it_loads_keeps_no_one_waiting(window, tmp_path):
    """As a window is whose client was suspended at that moment. The clock stands still: no wait would ever end."""
    (tmp_path / "run").mkdir(exist_ok=True)
    with Child("lock", tmp_path / "run") as other:
        other.hear()
        os.kill(other.process.pid, signal.SIGSTOP)
        looks = repeat(0.0, 100)

        window(model := Counted(), listens=False, now=lambda: next(looks)).load()

    assert model.loads == 1


def test_a_lender_gives_its_model_back_after_ten_idle_minutes_and_loads_it_for_the_next_text(window, tmp_path):
    now = [0.0]
    lent = window(model := Counted(), now=lambda: now[0])
    lent.load()
    lent.embed_query("Where is the boat?")
    now[0] = IDLE_SECONDS - 1

    assert not lent.rest()
    now[0] += 1
    assert lent.rest()
    assert not lent.rest(), "once is enough"
    assert (model.closed, names(tmp_path)) == (1, [f"{os.getpid()}.sock"])

    lent.embed_query("Where is the boat?")

    assert (model.loads, names(tmp_path)) == (2, [f"{os.getpid()}{LENDS}"])


def test_texts_of_others_keep_a_lender_from_resting(window):
    now = [0.0]
    lent, other = window(now=lambda: now[0]), window(listens=False)
    lent.load()
    other.load()
    now[0] = IDLE_SECONDS - 1
    other.embed_query("Where is the boat?")
    now[0] += 10

    assert not lent.rest()


def test_a_wall_clock_that_jumps_changes_nothing(window, tmp_path, monkeypatch):
    lent, other = window(), window(model := Counted(), listens=False)
    monkeypatch.setattr(lending_module.time, "time", lambda: -4e9)
    lent.load()
    other.load()
    os.utime(sockets(tmp_path)[0], (4e9, 4e9))
    other.embed_query("Where is the boat?")
    os.utime(sockets(tmp_path)[0], (0, 0))
    other.embed_query("Where is the boat?")

    assert model.loads == 0
    assert not lent.rest()


def test_a_lender_says_whom_it_lends_what(window, tmp_path):
    lent, other = window(), window(listens=False)
    assert lenders_of(tmp_path) == []
    lent.load()
    other.load()
    for _ in range(3):
        other.embed_query("Where is the boat?")

    [told] = lenders_of(tmp_path)

    assert (told.process, told.client, told.askers, told.model) == (os.getpid(), "an editor", 1, "hashing")
    assert told.texts_per_second == pytest.approx(3 / 60, abs=0.01)
    assert told.since.timestamp() == pytest.approx(lent.loaded_at, abs=0.001)


def test_who_listens_only_for_hooks_is_told_of_no_model(window, tmp_path):
    window()
    [place] = sockets(tmp_path)

    assert exchange(place, {"lend": ""}, 60)["models"] == {}


def test_what_an_older_version_says_of_itself_is_not_told(tmp_path):
    (tmp_path / "run").mkdir()
    for number, reply in enumerate((b"{}", b"[]", b'{"process": 1, "client": "x", "models": []}', b"5", b"\xff")):
        with answering(tmp_path / "run" / f"{number}{LENDS}", reply + b"\n"):
            assert lenders_of(tmp_path) == []


def test_a_lender_that_may_open_no_more_files_goes_on_when_it_may(window, tmp_path, monkeypatch):
    resource = pytest.importorskip("resource")
    refused, accept = threading.Event(), socket.socket.accept

    def noted(line):
        try:
            return accept(line)
        except OSError:
            refused.set()
            raise

    monkeypatch.setattr(socket.socket, "accept", noted)
    window().load()
    [place] = sockets(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as stack:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        first, asker = (stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(2))
        spent = []
        with suppress(OSError):
            while True:
                spent.append(os.open(os.devnull, os.O_RDONLY))
        first.connect(str(place))  # for whom the system has kept room
        asker.connect(str(place))
        assert refused.wait(60)
        for file in spent:
            os.close(file)
        asker.sendall(b'{"lend": ""}\n')

        assert json.loads(asker.makefile("rb").readline())["process"] == os.getpid()


def test_who_says_nothing_takes_no_place_for_long(window, tmp_path):
    """Many that stall, in their way or in a message without an end, keep a lender from nobody else."""
    window().load()
    other = window(model := Counted(), listens=False)
    other.load()
    with ExitStack() as stack:
        for number in range(ASKERS + 9):
            asker = stack.enter_context(socket.socket(socket.AF_UNIX))
            with address(sockets(tmp_path)[0]) as name:
                asker.connect(name)
            asker.sendall((b"", b"[" * 10_000, b'{"lend": "x", "text": "')[number % 3])
        other.embed_query("Where is the boat?")

    assert model.loads == 0


@pytest.mark.parametrize(
    "message",
    [
        b"[" * 100_000,
        b"5",
        b'{"lend": 5}',
        b'{"lend": [], "text": "x"}',
        b'{"lend": "hashing-1", "text": 5, "query": true}',
        b'{"lend": "hashing-1", "text": ["../../etc/passwd"], "query": true}',
        b'{"lend": "hashing-1", "text": "' + b"x" * 2_000_000 + b'"}',
        b'{"store": "sqlite:////etc/passwd", "moment": "prompt", "text": "x y"}',
        b"\xff\xfe",
    ],
)
def test_no_message_makes_a_lender_do_anything_but_hang_up(window, tmp_path, message):
    lent = window(model := Counted())
    lent.load()
    before = sorted(tmp_path.rglob("*"))
    with socket.socket(socket.AF_UNIX) as asker:
        with address(sockets(tmp_path)[0]) as name:
            asker.connect(name)
        with suppress(OSError):
            asker.sendall(message + b"\n")
        with suppress(ConnectionResetError):
            told = asker.makefile("rb").readline()
            assert told == b"" or "vector" not in json.loads(told)

    assert model.asked == 0
    assert sorted(tmp_path.rglob("*")) == before
    assert len(lenders_of(tmp_path)) == 1


def test_a_disk_that_is_full_leaves_each_to_itself(window, tmp_path, monkeypatch, caplog):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(socket.socket, "bind", full)
    lent, other = window(first := Counted()), window(second := Counted())
    for one in (lent, other):
        one.load()
        one.embed_query("Where is the boat?")

    assert (first.loads, second.loads) == (1, 1)
    assert "No space left" in caplog.text
    assert os.listdir(tmp_path / "run") == []


def test_a_folder_that_cannot_be_written_leaves_each_to_itself(tmp_path):
    """A read-only home: nobody listens there, and nothing is locked."""
    lent = Lending(tmp_path / "no" / "such" / "home").shared(model := Counted())

    lent.load()
    lent.embed_query("Where is the boat?")

    assert model.loads == 1
    assert not (tmp_path / "no").exists()


def test_a_socket_with_a_long_path_is_lent_over(window, tmp_path):
    home = tmp_path / ("a" * 60) / ("b" * 60)
    home.mkdir(parents=True)
    lending = Lending(home, patience=PATIENT)
    with closing(
        engine_on(sqlite_store(home / "memories.db"), lent := lending.shared(Counted()), lending=lending)
    ) as jay:
        end = listen(load(home=home, embedder="hashing"), jay)
        lent.load()
        other = Lending(home, patience=PATIENT).shared(model := Counted())
        other.load()
        other.embed_query("Where is the boat?")
        end()

    assert len(str(home / "run")) > 100
    assert model.loads == 0
    assert os.listdir(home / "run") == []


def test_a_long_path_in_a_container_without_proc_leaves_each_to_itself(tmp_path, monkeypatch, caplog):
    home = tmp_path / ("a" * 60) / ("b" * 60)
    home.mkdir(parents=True)
    monkeypatch.setattr("scrubjay.machine.local_sockets.os.path.isdir", lambda path: path != "/proc/self/fd")
    lending = Lending(home)
    with closing(
        engine_on(sqlite_store(home / "memories.db"), lent := lending.shared(Counted()), lending=lending)
    ) as jay:
        listen(load(home=home, embedder="hashing"), jay)()
        lent.load()
        remove_dead(home)
        other = Lending(home).shared(model := Counted())
        other.load()
        other.embed_query("Where is the boat?")

    assert model.loads == 1
    assert "cannot ask this server" in caplog.text
    assert os.listdir(home / "run") == []


def test_the_shortest_of_those_who_wait_is_next():
    turns, order, begun = Turns(), [], threading.Event()
    waiting = [30, 10, 20]

    def ask(size):
        with turns.turn(size, 60):
            order.append(size)

    with turns.turn(1, 60):
        threads = [threading.Thread(target=ask, args=(size,)) for size in waiting]
        for thread in threads:
            thread.start()
        while len(turns._waiting) < len(waiting):
            begun.wait(0.01)
    for thread in threads:
        thread.join(60)

    assert order == sorted(waiting)


def test_who_has_waited_too_long_gives_its_place_up():
    turns = Turns()
    with turns.turn(1, 60), pytest.raises(TimeoutError), turns.turn(2, 0):
        pass

    with turns.turn(3, 0):
        assert turns._waiting == []


def test_off_means_that_nothing_is_shared(tmp_path):
    home = load(home=tmp_path, lend_model=False)

    from scrubjay.wiring import open_engine

    with open_engine(home) as jay:
        listen(home, jay)()
        assert jay.parts.lending.lenders() == []
        assert jay.parts.lending.home is None
