"""`scrubjay serve --workers`: several processes on one port are one server, also while one of them is killed."""

from __future__ import annotations

import errno
import math
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from scrubjay.errors import InvalidInput
from scrubjay.servers.http import processes
from scrubjay.servers.http.processes import Worker, count_of
from scrubjay.servers.http.sign_in import SignInLink
from tests.reliability.rounds import short_and_long, wait_until
from tests.servers.peer import environment
from tests.servers.several import PATIENCE, Site, killed_under_calls, site
from tests.servers.test_http import JSON, modern


@pytest.fixture(scope="module")
def two(tmp_path_factory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("home")) as found:
        yield found


# --- one server to its clients ---------------------------------------------------------------------------------------


def test_a_session_works_whichever_worker_gets_its_request(two):
    for headers in two.sessions_in_each(2).values():
        assert [two.list_tools(headers) for _ in range(8)] == [200] * 8
        assert two.ask("DELETE", "/mcp/memento", headers=headers).status_code == 200
        assert two.list_tools(headers) == 404


@pytest.mark.parametrize("name", ["7-abc", "0-", "1-abc", "-", "0-1-2", "9" * 5_000 + "-x", "00-x", "²-x", "abc"])
def test_a_session_that_is_none_is_not_found(two, name):
    headers = {**JSON, "mcp-session-id": name.encode("utf-8")}

    assert two.list_tools(headers) in (400, 404)


def test_a_client_cannot_say_that_another_worker_has_brought_its_request(two):
    told = [b"[null]", b'wrong [["10.0.0.1", 1], "https"]']
    for value in told:
        assert two.ask("GET", "/healthz", headers={"x-scrubjay-arrived": value}).json() == {"status": "ok"}


def test_what_workers_count_is_added_up(two):
    def counted() -> float:
        text = two.ask("GET", "/metrics").text
        return sum(map(float, re.findall(r'scrubjay_calls_total\{.*operation="list_recent_memories".*\} (\S+)', text)))

    before = counted()
    for _ in range(16):
        call = modern("list_recent_memories", limit=1)
        assert two.ask("POST", "/mcp/memento", **call).status_code == 200

    assert counted() == before + 16
    assert re.search(r"process_resident_memory_bytes [1-9]", two.ask("GET", "/metrics").text)


def test_what_is_sent_again_to_another_worker_is_done_once(two):
    replies = [
        two.ask("POST", "/api/v1/memories", json={"content": "sent often"}, headers={"idempotency-key": "often"})
        for _ in range(12)
    ]

    assert len({reply.json()["memory"]["id"] for reply in replies}) == 1


def test_what_one_worker_stores_is_found_by_all_at_once(two):
    for number in range(8):
        stored = two.ask("POST", "/api/v1/memories", json={"content": f"found number {number}"}).json()["memory"]["id"]
        assert two.ask("GET", f"/api/v1/memories/{stored}").status_code == 200


def test_a_change_is_told_by_every_worker(two):
    with ExitStack() as stack:
        streams = [
            stack.enter_context(stack.enter_context(two.client()).stream("GET", "/api/v1/events")) for _ in range(4)
        ]
        stored = two.ask("POST", "/api/v1/memories", json={"content": "news"}).json()["memory"]["id"]
        for stream in streams:
            assert any(stored in line for line in stream.iter_lines())


def test_no_other_server_takes_their_port(two, tmp_path):
    port = two.address.rpartition(":")[2]
    for workers in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-m", "scrubjay", "serve", "--port", port, "--workers", workers],
            env=environment(tmp_path),
            capture_output=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 1
        assert b"cannot be used" in done.stderr


@pytest.mark.parametrize("value", ["0", "-1", "65", "two", "", "1.5", "٣"])
def test_a_number_of_workers_that_cannot_be_is_refused(value):
    with pytest.raises(InvalidInput):
        count_of(value)


def test_auto_is_a_worker_for_each_core():
    assert count_of("auto") == len(os.sched_getaffinity(0))
    assert count_of("3") == 3


def test_the_link_that_signs_the_owner_in_works_once_in_all_of_them(tmp_path):
    shared = {"port": 1, "folder": str(tmp_path), "secret": "s", "link": "word", "link_until": math.inf}
    links = [
        SignInLink(worker.link, until=worker.link_until, once=worker.take_link)
        for worker in (Worker(number=number, announces=False, **shared) for number in range(3))
    ]

    assert [link.use("another") for link in links] == [False] * 3
    assert [link.use("word") for link in links] == [True, False, False]
    assert not links[0].use("word")


# --- how they begin and end ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("store", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_a_worker_that_is_killed_is_replaced_and_nothing_is_left_in_the_end(tmp_path, store, request):
    env = {} if store == "sqlite" else {"SCRUBJAY_STORE": request.getfixturevalue("postgres_store")("x")}
    long = tmp_path / ("t" * 90)
    long.mkdir()
    with site(tmp_path / "home", TMPDIR=str(long), **env) as ours:
        folder, workers = ours.folder, ours.workers()
        stored = ours.ask("POST", "/api/v1/memories", json={"content": "kept"}).json()["memory"]["id"]
        sessions = ours.sessions_in_each(2)
        for victim in workers:
            os.kill(victim, signal.SIGKILL)
        wait_until(lambda: not {*workers} & {*ours.workers()} and ours.listen(), seconds=PATIENCE)

        assert ours.ask("GET", f"/api/v1/memories/{stored}").status_code == 200
        assert {ours.list_tools(headers) for headers in sessions.values()} == {404}, "a client opens another"
        workers = ours.workers()

    assert ours.process.returncode == 0
    wait_until(lambda: not any(map(alive, workers)), seconds=PATIENCE)
    assert not folder.exists()


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes() != b""
    except OSError:
        return False


def test_a_worker_for_which_there_is_no_room_just_now_is_started_later(tmp_path, monkeypatch):
    """No memory, or too many processes: no reason to end the others."""
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    told = iter([BlockingIOError(errno.EAGAIN, "no process now"), BrokenPipeError("it was killed"), KeyboardInterrupt])

    def start(*_, **__):
        raise next(told)

    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setattr(processes, "AGAIN_SECONDS", 0.0)
    (tmp_path / "0.sock").touch()
    shared = Worker(port=1, folder=str(tmp_path), secret="s", link="", link_until=0.0, number=0, announces=False)

    with pytest.raises(KeyboardInterrupt):  # as a signal ends it
        processes.replace_dead({0: ended}, shared)


def test_workers_end_with_the_process_that_keeps_them(tmp_path):
    with site(tmp_path) as ours:
        folder, workers = ours.folder, ours.workers()
        ours.process.kill()
        wait_until(lambda: not any(map(alive, workers)), seconds=PATIENCE)

    assert not folder.exists()


def test_what_keeps_a_worker_from_beginning_is_said_and_ends_all(tmp_path):
    (tmp_path / "memories.db").write_text("not a store")
    done = subprocess.run(
        [sys.executable, "-m", "scrubjay", "serve", "--port", "0", "--workers", "2"],
        env=environment(tmp_path),
        capture_output=True,
        timeout=PATIENCE,
    )

    assert done.returncode == 1
    assert b"memories.db" in done.stderr or b"store" in done.stderr


def test_a_folder_named_as_the_program_is_not_run(tmp_path):
    """Workers are started where the server was, perhaps in a folder of someone else's."""
    (tmp_path / "scrubjay").mkdir()
    (tmp_path / "scrubjay" / "__init__.py").write_text("")
    (tmp_path / "scrubjay" / "__main__.py").write_text("raise SystemExit('taken over')")
    code = "import sys; sys.path.pop(0); from scrubjay.__main__ import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, "serve", "--port", "0", "--workers", "2"],
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=environment(tmp_path / "home"),
    ) as process:
        said = process.stderr.readline()
        process.terminate()
        process.communicate(timeout=PATIENCE)

    assert b"http://" in said


# --- killed under load -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("store", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
@short_and_long(("calls", "callers", "seconds"), (200, 8, 0.5), (20_000, 64, 5.0))
def test_nothing_acknowledged_is_lost_while_workers_are_killed(tmp_path, calls, callers, seconds, store, request):
    env = {} if store == "sqlite" else {"SCRUBJAY_STORE": request.getfixturevalue("postgres_store")("x")}

    outcome = killed_under_calls(tmp_path, calls, callers, seconds, **env)

    print(outcome)
    assert outcome.unexpected == []
    assert (outcome.calls, outcome.lost, outcome.problems) == (calls, 0, ())
    assert outcome.kills > 0
