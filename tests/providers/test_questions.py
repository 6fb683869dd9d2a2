"""A provider that is asked one question at a time, over real HTTP."""

from __future__ import annotations

import json
import threading
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from scrubjay.engine.lifecycle.consolidation import ConsolidationPlan, Strategy
from scrubjay.errors import InvalidInput, ProviderError, SynthesisFailed
from scrubjay.providers.openai import OpenAiProvider
from scrubjay.settings import load
from scrubjay.values.store import Prompt
from scrubjay.wiring import open_model

PROMPT = Prompt(system="Merge.", text="One. Two.", max_tokens=100)


def said(text):
    return json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}).encode()


class Model:
    """An OpenAI-compatible server on this machine."""

    def __init__(self):
        self.status, self.body, self.wait = 200, said(" Both. "), None
        self.asked = []
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                model.asked.append((self.path, self.headers.get("authorization"), json.loads(body)))
                if model.wait is not None:
                    model.wait.wait(60)
                with suppress(ConnectionError):  # a client whose time is up has gone, in some tests on purpose
                    self.send_response(model.status)
                    self.send_header("content-type", "application/json")
                    self.send_header("content-length", str(len(model.body)))
                    self.end_headers()
                    self.wfile.write(model.body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def close(self):
        if self.wait is not None:
            self.wait.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def model():
    model = Model()
    yield model
    model.close()


def ask(model, **more):
    with closing(OpenAiProvider(model.url, "small", **more)) as provider:
        return provider.complete(PROMPT)


def engine_with(model, open_engine):
    return open_engine(model=open_model(load({}, synthesis_url=model.url, synthesis_model="small")))


def consolidated(jay):
    ids = tuple(jay.store(text).memory.id for text in ("User likes tea", "User likes tea a lot"))
    return jay.consolidation.merge(ConsolidationPlan(ids=ids, strategy=Strategy.AI_SYNTHESIS))


def test_the_question_and_the_key_arrive_and_the_answer_comes_back(model):
    assert ask(model, key="secret") == "Both."

    [(path, key, body)] = model.asked
    assert (path, key) == ("/v1/chat/completions", "Bearer secret")
    assert (body["model"], body["max_tokens"], body["temperature"]) == ("small", 100, 0)
    assert [(one["role"], one["content"]) for one in body["messages"]] == [("system", "Merge."), ("user", "One. Two.")]


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
def test_a_refusal_is_said_by_its_number_alone(model, status):
    model.status, model.body = status, b'{"error": "your key sk-123 is bad"}'

    with pytest.raises(ProviderError) as refused:
        ask(model)

    assert str(status) in refused.value.message
    assert "sk-123" not in refused.value.message
    assert "127.0.0.1" not in refused.value.message


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"{}",
        b"[]",
        b'{"choices": []}',
        b'{"choices": [{"message": {"content": null}}]}',
        said(""),
        said("   "),
        b'{"choices": [{"message": {"content": ["x"]}}]}',
        said("x" * 2_000_001),
    ],
)
def test_an_answer_that_is_not_one_is_refused(model, body):
    model.body = body

    with pytest.raises(ProviderError):
        ask(model)


def test_a_model_that_does_not_answer_in_time_is_given_up(model):
    model.wait = threading.Event()

    with pytest.raises(ProviderError, match="in time"):
        ask(model, timeout_seconds=0.2)


def test_a_model_that_is_not_there_is_said_to_be(model):
    model.url = "http://127.0.0.1:1/v1"

    with pytest.raises(ProviderError, match="reached"):
        ask(model)


def test_it_is_configured_wholly_or_not_at_all():
    assert open_model(load({})) is None
    with pytest.raises(InvalidInput):
        open_model(load({}, synthesis_url="http://localhost/v1"))
    with pytest.raises(InvalidInput):
        open_model(load({}, synthesis_url="localhost", synthesis_model="small"))
    assert open_model(load({}, synthesis_url="http://localhost/v1", synthesis_model="small"))


def test_a_consolidation_is_written_by_it(model, open_engine):
    done = consolidated(engine_with(model, open_engine))

    assert (done.memory.content, done.writer) == ("Both.", "endpoint")
    assert "User likes tea a lot" in model.asked[0][2]["messages"][1]["content"]


def test_a_consolidation_fails_with_it_and_changes_nothing(model, open_engine):
    model.status = 500
    jay = engine_with(model, open_engine)

    with pytest.raises(SynthesisFailed, match="500"):
        consolidated(jay)

    assert len(list(jay.list())) == 2
