"""A stand-in for the services that clients ask for a model: it answers every request with one sentence, in the words of
Anthropic's, OpenAI's or Google's interface, and keeps what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SENTENCE = "It is as you say."


class Canned(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@contextmanager
def canned_model() -> Iterator[Canned]:
    server = Canned()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Canned

    def log_message(self, *_: Any) -> None:
        """Tests do not need it."""

    def do_GET(self) -> None:
        self.answer("application/json", b'{"data": [], "models": []}')

    do_HEAD = do_GET

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode("utf-8", "replace")
        if "/messages" in self.path and "count_tokens" not in self.path:
            self.server.asked.append(body)
            self.answer("text/event-stream", events(*anthropic()))
        elif "/responses" in self.path:
            self.server.asked.append(body)
            self.answer("text/event-stream", events(*openai()))
        elif "streamGenerateContent" in self.path:
            self.server.asked.append(body)
            self.answer("text/event-stream", f"data: {json.dumps(google())}\r\n\r\n".encode())
        else:
            self.answer("application/json", json.dumps({"input_tokens": 10}).encode())

    def answer(self, kind: str, data: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


def events(*all: dict[str, Any]) -> bytes:
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in all).encode()


def anthropic() -> list[dict[str, Any]]:
    usage = {"input_tokens": 10, "output_tokens": 9}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    return [
        {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": SENTENCE}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]


def openai() -> list[dict[str, Any]]:
    said = [{"type": "output_text", "text": SENTENCE, "annotations": []}]
    item = {"type": "message", "role": "assistant", "id": "item_1", "status": "completed", "content": said}
    usage = {"input_tokens": 10, "output_tokens": 9, "total_tokens": 19}
    details = {"input_tokens_details": None, "output_tokens_details": None}
    return [
        {"type": "response.created", "response": {"id": "response_1"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": "response_1", "usage": usage | details}},
    ]


def google() -> dict[str, Any]:
    said = {"content": {"role": "model", "parts": [{"text": SENTENCE}]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 9, "totalTokenCount": 19}
    return {"candidates": [said], "usageMetadata": usage}
