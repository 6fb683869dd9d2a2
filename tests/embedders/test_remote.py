"""A model behind an address: a real server on this machine answers, and misbehaves in every way that servers do."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.embedders.remote import BATCH, RemoteEmbedder
from scrubjay.engine.parts import engine_on
from scrubjay.errors import EmbeddingError, InvalidInput
from scrubjay.settings import load
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.wiring import open_embedder
from tests.embedders.embedder_contract import EmbedderContract

Answer = Callable[["Handler", dict[str, Any]], None]


class Handler(BaseHTTPRequestHandler):
    """Answers as the test has told it to; keeps what it was asked."""

    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, dict(self.headers), body))
        answers = self.server.answers
        (answers.pop(0) if len(answers) > 1 else answers[0])(self, body)

    def give(self, body: Any, status: int = 200, **headers: str) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.answers: list[Answer] = [vectors]
        self.url = f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, *_: object) -> None:
        """A client that has gone away is what some tests are about."""


MODEL = HashingEmbedder()


def data_of(texts: list[str]) -> list[dict[str, Any]]:
    rows = [{"index": n, "embedding": MODEL.embed_query(text).tolist()} for n, text in enumerate(texts)]
    return rows[::-1]  # in whatever order


def vectors(handler: Handler, body: dict[str, Any]) -> None:
    handler.give({"object": "list", "data": data_of(body["input"]), "model": body["model"]})


def broken(change: Callable[[dict[str, Any]], Any]) -> Answer:
    """An answer like the right one, but for something."""

    def answer(handler: Handler, body: dict[str, Any]) -> None:
        handler.give(change({"data": data_of(body["input"])}))

    return answer


def status(code: int, **headers: str) -> Answer:
    return lambda handler, _: handler.give({"error": {"message": "no"}}, code, **headers)


def cut(handler: Handler, body: dict[str, Any]) -> None:
    """Half of an answer, then the connection is gone."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    handler.wfile.write(b'{"data": [')
    handler.wfile.flush()
    handler.connection.close()


def waiting_for(event: threading.Event) -> Answer:
    def answer(handler: Handler, body: dict[str, Any]) -> None:
        event.wait(60)
        vectors(handler, body)

    return answer


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def embedder(server: Server, pauses: list[float]) -> RemoteEmbedder:
    return RemoteEmbedder(server.url, "mine", pause=pauses.append)


class TestRemoteEmbedder(EmbedderContract):
    @pytest.fixture
    def embedder(self, server):
        embedder = RemoteEmbedder(server.url, "mine")
        embedder.embed(["its dimension is known with the first vector"])
        return embedder

    @pytest.fixture
    def another(self, server):
        return RemoteEmbedder(server.url, "mine")


# --- what goes wrong -------------------------------------------------------------------------------------------------

WRONG = {
    "not a number": lambda body: {"data": [{**row, "embedding": [float("nan")] * 384} for row in body["data"]]},
    "infinite": lambda body: {"data": [{**row, "embedding": [1e39] * 384} for row in body["data"]]},
    "whole and far too large": lambda body: {"data": [{**row, "embedding": [10**400] * 384} for row in body["data"]]},
    "all zero": lambda body: {"data": [{**row, "embedding": [0] * 384} for row in body["data"]]},
    "words": lambda body: {"data": [{**row, "embedding": ["a"] * 384} for row in body["data"]]},
    "a list of lists": lambda body: {"data": [{**row, "embedding": [[1.0]] * 384} for row in body["data"]]},
    "no numbers": lambda body: {"data": [{**row, "embedding": []} for row in body["data"]]},
    "null": lambda body: {"data": [{**row, "embedding": None} for row in body["data"]]},
    "too few": lambda body: {"data": body["data"][1:]},
    "too many": lambda body: {"data": [*body["data"], body["data"][0]]},
    "no data": lambda body: {"error": {"message": "model is loading"}},
    "a list": lambda body: [1, 2],
    "not JSON": lambda body: b"<html>502</html>",
}


@pytest.mark.parametrize("wrong", WRONG)
def test_an_answer_that_is_of_no_use_is_an_error_and_not_asked_for_again(server, embedder, wrong):
    server.answers = [broken(WRONG[wrong])]

    with pytest.raises(EmbeddingError):
        embedder.embed(["Mira lives in Lisbon.", "Ted sold his boat."])

    assert len(server.asked) == 1


def test_vectors_of_another_dimension_than_before_are_refused(server, embedder):
    embedder.embed(["Mira"])
    server.answers = [broken(lambda body: {"data": [{"index": 0, "embedding": [1.0] * 768}]})]

    with pytest.raises(EmbeddingError):
        embedder.embed(["Ted"])

    assert embedder.dimension == 384


@pytest.mark.parametrize("trouble", [status(429), status(500), status(503), cut], ids=["429", "500", "503", "cut off"])
def test_what_fails_for_a_moment_is_tried_again_after_growing_pauses(server, embedder, pauses, trouble):
    server.answers = [trouble, trouble, vectors]

    [vector] = embedder.embed(["Mira"])

    assert np.allclose(vector, MODEL.embed_query("Mira"), atol=1e-6)
    assert len(server.asked) == 3
    assert len(pauses) == 2
    assert pauses[1] > pauses[0]


def test_a_pause_that_the_server_asks_for_is_kept_within_reason(server, embedder, pauses):
    server.answers = [status(429, Retry_After="7"), status(503, Retry_After="86400"), vectors]

    embedder.embed(["Mira"])

    assert 5 < pauses[0] < 9
    assert pauses[1] < 30


def test_a_server_that_never_recovers_is_given_up(server, embedder, pauses):
    server.answers = [status(503)]

    with pytest.raises(EmbeddingError, match="503"):
        embedder.embed(["Mira"])

    assert len(server.asked) == len(pauses) + 1 == 4


@pytest.mark.parametrize("code", [400, 401, 403, 404, 413, 422])
def test_a_refusal_is_final_and_names_its_status(server, embedder, pauses, code):
    server.answers = [status(code)]

    with pytest.raises(EmbeddingError, match=str(code)):
        embedder.embed(["Mira"])

    assert pauses == []


def test_a_redirect_is_not_followed(server, embedder):
    """The texts and the key go nowhere else."""
    server.answers = [status(307, Location=f"{server.url}/elsewhere")]

    with pytest.raises(EmbeddingError):
        embedder.embed(["Mira"])

    assert len(server.asked) == 1


def test_a_server_that_is_too_slow_is_given_up_in_time(server, pauses):
    given_up = threading.Event()
    server.answers = [waiting_for(given_up)]
    embedder = RemoteEmbedder(server.url, "mine", timeout_seconds=0.1, pause=pauses.append)

    with pytest.raises(EmbeddingError):
        embedder.embed(["Mira"])

    given_up.set()


def test_a_server_that_is_not_there_is_an_error_without_its_address(pauses):
    embedder = RemoteEmbedder("http://127.0.0.1:1/v1", "mine", key="sk-secret", pause=pauses.append)

    with pytest.raises(EmbeddingError) as caught:
        embedder.embed_query("Mira")

    said = f"{caught.value.message} {caught.value.hint}"
    assert "127.0.0.1" not in said
    assert "sk-secret" not in said


@pytest.mark.parametrize(
    "url",
    ["", "ftp://host/v1", "host/v1", "https://", "https://u:p@host/v1", "https://host/v1?k=1", "file:///etc/passwd"],
)
def test_an_address_that_cannot_be_used_is_refused(url):
    with pytest.raises(InvalidInput):
        RemoteEmbedder(url, "mine")


def test_a_key_does_not_travel_in_the_clear():
    with pytest.raises(InvalidInput):
        RemoteEmbedder("http://embeddings.example/v1", "mine", key="sk-secret")


# --- what goes well --------------------------------------------------------------------------------------------------


def test_texts_are_sent_in_batches_with_model_and_key(server):
    embedder = RemoteEmbedder(f"{server.url}/", "mine", key="sk-secret")

    made = embedder.embed([f"text {n}" for n in range(2 * BATCH + 1)])

    assert [len(body["input"]) for _, _, body in server.asked] == [BATCH, BATCH, 1]
    assert {path for path, _, _ in server.asked} == {"/v1/embeddings"}
    assert {body["model"] for _, _, body in server.asked} == {"mine"}
    assert {headers["Authorization"] for _, headers, _ in server.asked} == {"Bearer sk-secret"}
    assert all(np.allclose(vector, MODEL.embed_query(f"text {n}"), atol=1e-6) for n, vector in enumerate(made))


def test_another_model_or_server_has_another_fingerprint(server):
    one = RemoteEmbedder(server.url, "mine")

    assert one.fingerprint == RemoteEmbedder(f"{server.url}/embeddings", "mine").fingerprint
    assert one.fingerprint != RemoteEmbedder(server.url, "other").fingerprint
    assert one.fingerprint != RemoteEmbedder("https://elsewhere.example/v1", "mine").fingerprint


def test_the_settings_open_it(server):
    settings = load({"SCRUBJAY_EMBEDDER": "remote", "SCRUBJAY_REMOTE_URL": server.url, "SCRUBJAY_REMOTE_MODEL": "mine"})

    assert open_embedder(settings).embed_query("Mira").shape == (384,)


def test_without_an_address_the_settings_say_what_is_missing():
    with pytest.raises(InvalidInput, match="remote_url"):
        open_embedder(load({"SCRUBJAY_EMBEDDER": "remote"}))


def test_a_memory_stored_while_the_server_is_down_is_found_by_words_and_later_by_meaning(server, tmp_path):
    server.answers = [status(400)]
    with engine_on(SqliteStore(tmp_path / "memories.db"), RemoteEmbedder(server.url, "mine")) as jay:
        stored = jay.store("Ottilie keeps bees in the greenhouse")
        assert stored.degraded
        assert [hit.memory.id for hit in jay.search("greenhouse")] == [stored.memory.id]

        server.answers = [vectors]
        jay.parts.backlog.finish()
        assert jay.upkeep.check().with_vectors == 1


def test_a_server_that_dies_while_a_model_takes_over_is_an_error_and_the_next_run_goes_on(server, tmp_path):
    path = tmp_path / "memories.db"
    with engine_on(SqliteStore(path), HashingEmbedder()) as jay:
        ids = jay.store_many({"content": f"fact {number} about harbours"} for number in range(3 * BATCH))
    server.answers = [vectors, vectors, status(503)]  # the question whether it is there, one batch, and no more
    with engine_on(SqliteStore(path), RemoteEmbedder(server.url, "mine", pause=lambda _: None)) as jay:
        with pytest.raises(EmbeddingError) as caught:
            jay.upkeep.reembed()

        assert "again" in caught.value.hint
        assert jay.upkeep.check().with_vectors == BATCH
        assert [hit.memory.content for hit in jay.search("fact 7", limit=1)] == ["fact 7 about harbours"]
        jay.forget(ids[0], hard=True)
        server.answers = [vectors]
        result = jay.upkeep.reembed()

        assert (result.memories, result.failed) == (2 * BATCH, 0)
        assert jay.upkeep.check().with_vectors == 3 * BATCH - 1
        assert not jay.search("harbours").degraded
