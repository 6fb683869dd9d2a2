"""One model for all windows, with real processes: whatever becomes of the lender, every search is by meaning."""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack
from random import Random

import pytest

from scrubjay.hooks.asking import ask
from scrubjay.machine.local_sockets import LENDS, exchange
from tests.reliability.lenders import (
    QUESTION,
    another_version,
    ended_at_random,
    filled,
    found,
    imports,
    killed_under_searches,
    lenders,
    search,
    sockets_of,
    stopped,
    window,
)
from tests.reliability.processes import Child
from tests.reliability.rounds import short_and_long, wait_until
from tests.servers.peer import SECONDS


@pytest.fixture
def home(tmp_path):
    return filled(tmp_path / "home")


def test_one_window_loads_the_model_and_the_others_borrow_it(home):
    with ExitStack() as stack:
        lender, other = (stack.enter_context(window(home)) for _ in range(2))
        assert not imports(lender, "numpy"), "nothing is loaded before it is needed"
        assert lenders(home) == []
        assert found(lender)
        assert found(other)
        assert search(home)[0]

        assert lenders(home) == [lender.process.pid]
        assert imports(lender, "onnxruntime")
        assert imports(other, "numpy")
        assert not imports(other, "onnxruntime")

        lender.close_input()
        assert lender.end() == 0
        assert found(other), "the next one loads it"
        assert lenders(home) == [other.process.pid]


def test_a_window_that_borrows_stores_without_a_model_of_its_own(home):
    with window(home) as lender, window(home) as other:
        assert found(lender)
        stored = other.call("store_memory", content="The boat was sold")["structuredContent"]

        assert "embedding_pending" not in stored["created"]
        assert not imports(other, "onnxruntime")


@short_and_long(("windows", "searches"), (3, 6), (10, 40))
def test_every_search_is_answered_by_meaning_while_the_lender_is_killed(home, windows, searches):
    told = killed_under_searches(home, windows, searches)

    assert told.degraded == []
    assert told.answered == searches


def test_windows_that_are_opened_at_once_load_one_model(home):
    with ExitStack() as stack:
        windows = [stack.enter_context(window(home)) for _ in range(5)]
        for peer in windows:
            peer.send("tools/call", {"name": "search_memories", "arguments": {"query": "boat"}}, id=7)
        for peer in windows:
            assert "degraded" not in peer.read()["result"]["structuredContent"]

        assert [imports(peer, "onnxruntime") for peer in windows].count(True) == 1


def test_a_lender_that_is_stopped_keeps_no_one_from_the_model(home):
    with window(home) as lender, window(home) as other:
        assert found(lender)
        assert found(other)
        with stopped([lender]):
            assert found(other)
            assert search(home)[0]
        assert found(lender)
        assert {*lenders(home)} == {lender.process.pid, other.process.pid}


def test_a_hook_asks_past_a_window_that_is_stopped(home):
    """As all are whose client was suspended; here it is the one that would be asked first."""
    question = {"moment": "session-start", "text": "", "space": "default", "folder": str(home)}
    question["store"] = f"sqlite:///{home / 'memories.db'}"
    with window(home) as other, window(home) as lender:
        assert found(lender)
        assert found(other)
        with stopped([lender]):
            reply = ask(home, question, seconds=SECONDS)

    assert reply["how"] == "server"
    assert "boat" in reply["text"]


def test_a_lender_with_a_full_queue_keeps_no_one_from_the_model(home):
    with window(home) as lender, window(home) as other, ExitStack() as stack:
        assert found(lender)
        with stopped([lender]):
            while True:
                waiting = stack.enter_context(socket.socket(socket.AF_UNIX))
                waiting.setblocking(False)
                if waiting.connect_ex(str(home / "run" / f"{lender.process.pid}{LENDS}")):
                    break
            assert found(other)
            assert search(home)[0]


@short_and_long(("windows", "commands"), (4, 6), (50, 100))
def test_whatever_is_started_and_killed_in_any_order_nothing_is_left(home, windows, commands):
    left = ended_at_random(home, windows, commands, Random(windows))

    assert (left.processes, left.locks, left.sockets) == ([], 0, [])


def test_another_user_is_neither_lent_to_nor_borrowed_from(home):
    """Also where the folder's rights keep them from nothing."""
    if os.geteuid() != 0:
        return  # only root can become another
    with window(home) as lender, Child("lend_to_anyone", home) as other:
        assert found(lender)
        [place] = [home / "run" / name for name in sockets_of(home)]
        (home / "run").chmod(0o777)
        place.chmod(0o666)
        assert exchange(place, {"lend": ""}, 60)["process"] == lender.process.pid

        other.tell()
        assert other.hear() == {"told": ""}

        lender.close_input()
        lender.end()
        other.tell()
        assert other.hear() == {"lends": f"1{LENDS}"}
        answered, said = search(home)
        assert answered, said
        other.tell()
        assert other.hear() == {"asked": 0}


def test_each_of_two_versions_lends_to_its_own_kind_only(home, tmp_path):
    """Both are installed and have windows open in one home; their models' vectors mean different things."""
    (tmp_path / "other").mkdir()
    other = another_version(tmp_path / "other")
    with ExitStack() as stack:
        ours, theirs, ours_too, theirs_too = (stack.enter_context(window(home, **env)) for env in ({}, other) * 2)
        assert found(ours)
        stored = theirs.call("store_memory", content="The boat is in the harbour of Hvar")["structuredContent"]
        assert "embedding_pending" not in stored["created"]
        for peer in (theirs, ours_too, theirs_too):
            assert found(peer)

        assert not imports(ours_too, "onnxruntime")
        assert not imports(theirs_too, "onnxruntime")
        assert {*lenders(home)} == {ours.process.pid, theirs.process.pid}
        for peer, place in ((ours_too, "Split"), (theirs_too, "Hvar")):
            assert place in str(peer.call("search_memories", query=QUESTION))


def test_the_home_may_be_read_only_or_have_no_place_for_sockets(home):
    (home / "run").write_text("a file where the folder would be")
    with window(home) as one, window(home) as other:
        assert found(one)
        assert found(other)
        assert search(home)[0]
        assert imports(one, "onnxruntime")
        assert imports(other, "onnxruntime")


def test_in_containers_without_proc_a_model_is_lent_and_its_lender_replaced(home):
    if os.geteuid() != 0:
        return  # only root can take it away
    without = {"mounts": "mount -t tmpfs none /proc"}
    with window(home, **without) as lender, window(home, **without) as other:
        assert found(lender)
        assert found(other)
        assert not imports(other, "onnxruntime")

        lender.process.kill()
        assert found(other)
        assert lenders(home) == [other.process.pid]


def test_who_may_only_read_the_home_borrows_there_and_lends_nothing(home):
    if os.geteuid() != 0:
        return  # who else is not let in by the rights of files
    only_read = {"mounts": f"mount --bind '{home}' '{home}' && mount -o remount,bind,ro '{home}'"}
    with window(home) as lender, window(home, **only_read) as other:
        assert found(lender)
        assert found(other)
        assert not imports(other, "onnxruntime")

        lender.process.kill()
        assert found(other)
        assert imports(other, "onnxruntime")
        assert lenders(home) == [lender.process.pid], "it can remove nothing, either"


def test_a_long_path_is_as_good_as_a_short_one(tmp_path):
    home = filled(tmp_path / ("a" * 120))
    with window(home) as lender, window(home) as other:
        assert found(lender)
        assert found(other)
        assert not imports(other, "onnxruntime")
        wait_until(lambda: len(sockets_of(home)) == 2)


def test_lending_can_be_turned_off(home, monkeypatch):
    monkeypatch.setenv("SCRUBJAY_LEND_MODEL", "off")
    with window(home) as one, window(home) as other:
        assert found(one)
        assert found(other)
        assert imports(other, "onnxruntime")
        assert lenders(home) == []
