"""A language model's provider on a real port: answers with fixed pieces, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def completion(content: Any) -> bytes:
    return json.dumps({"choices": [{"message": {"role": "assistant", "content": content}}]}).encode()


class Site:
    def __init__(self) -> None:
        self.pieces = ["The harbour ", "master is ", "Ottilie."]
        self.status = 200
        self.headers: dict[str, str] = {}
        self.raw: bytes | None = None  # instead of a proper answer
        self.done = True  # whether the end is told
        self.wait: threading.Event | None = None  # for which an answer waits
        self.asked: list[dict] = []
        self.keys: list[str | None] = []
        self.paths: list[str] = []
        self.url = ""


@contextmanager
def providing() -> Iterator[Site]:
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            with suppress(ConnectionError):  # a client that has heard enough leaves, in some tests on purpose
                self.answer()

        def answer(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            site.asked.append(asked)
            site.keys.append(self.headers.get("authorization"))
            site.paths.append(self.path)
            if site.wait is not None:
                site.wait.wait(60)
            self.send_response(site.status)
            self.send_header("content-type", "text/event-stream" if asked.get("stream") else "application/json")
            for name, value in site.headers.items():
                self.send_header(name, value)
            self.end_headers()
            if site.raw is not None:
                self.wfile.write(site.raw)
            elif asked.get("stream"):
                self.tell_pieces()
            else:
                self.wfile.write(completion(f" {''.join(site.pieces)} "))

        def tell_pieces(self) -> None:
            self.event({"choices": [{"delta": {"role": "assistant"}}]})
            for piece in site.pieces:
                self.wfile.write(b": a comment\n\n")
                self.event({"choices": [{"delta": {"content": piece}}]})
            if site.done:
                self.wfile.write(b"data: [DONE]\n\n")

        def event(self, body: dict) -> None:
            self.wfile.write(b"data: " + json.dumps(body).encode() + b"\n\n")
            self.wfile.flush()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    site.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield site
    finally:
        if site.wait is not None:
            site.wait.set()
        server.shutdown()
        server.server_close()
        thread.join()
