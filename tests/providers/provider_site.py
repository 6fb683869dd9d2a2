"""A language model's provider on a real port: answers with fixed pieces, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Site:
    def __init__(self) -> None:
        self.pieces = ["The harbour ", "master is ", "Ottilie."]
        self.status = 200
        self.headers: dict[str, str] = {}
        self.raw: bytes | None = None  # instead of proper events
        self.done = True  # whether the end is told
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
            site.asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            site.keys.append(self.headers.get("authorization"))
            site.paths.append(self.path)
            self.send_response(site.status)
            self.send_header("content-type", "text/event-stream")
            for name, value in site.headers.items():
                self.send_header(name, value)
            self.end_headers()
            if site.raw is not None:
                self.wfile.write(site.raw)
                return
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
        server.shutdown()
        server.server_close()
        thread.join()
