"""What is recorded about every request: an id, a line in the log, the metrics. The outermost layer of the site.

A request keeps its client's id (`X-Request-Id`) if that is a plain word, and gets a new one otherwise; the id is in the
reply, in the log, and in the error bodies of dialects that show one. Nothing else of a request is logged: addresses may
contain ids, and bodies and headers contain texts and secrets.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from time import perf_counter

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from scrubjay.dialects.base import name_request
from scrubjay.servers.http.metrics import Metrics
from scrubjay.values.memory import random_suffix
from scrubjay.values.times import iso, utc_now

log = logging.getLogger("scrubjay.requests")

NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
ALWAYS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cache-control": "no-store",  # answers are of one caller; files of the page say otherwise themselves
}


class Journal:
    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        begun, statuses = perf_counter(), list[int]()
        asked = Headers(scope=scope).get("x-request-id", "")
        id = asked if NAME.fullmatch(asked) else f"req_{random_suffix()}"  # noqa: A001
        state = scope.setdefault("state", {})
        state["request_id"] = id
        name_request(id)

        async def send_and_note(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
                headers = MutableHeaders(scope=message)
                headers["x-request-id"] = id
                for name, value in ALWAYS.items():
                    headers.setdefault(name, value)
                self._note(scope, message["status"], perf_counter() - begun)
            await send(message)

        try:
            await self._app(scope, receive, send_and_note)
        finally:
            if not statuses:  # the client left, or something broke before the answer began
                self._note(scope, 499, perf_counter() - begun)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        state, method = scope["state"], scope["method"]
        route = state.get("route", "other")
        self._metrics.count_request(method, route, status, seconds)
        engine = state.get("engine")
        fields = {
            "request_id": state["request_id"],
            "method": method,
            "route": route,
            "status": status,
            "ms": round(seconds * 1000, 2),
            "user": engine.caller.user if engine is not None else None,
            "credential": engine.caller.credential if engine is not None else None,
        }
        log.info("%s %s %d", method, route, status, extra={"fields": fields})


class JsonLines(logging.Formatter):
    """Each line of the log as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": iso(utc_now()),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps({name: value for name, value in line.items() if value is not None}, ensure_ascii=False)


class Text(logging.Formatter):
    """A line for people."""

    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, "fields", {})
        more = "".join(f" {name}={fields[name]}" for name in ("ms", "user", "request_id") if fields.get(name))
        return super().format(record) + more


def set_up_logs(level: str, form: str) -> None:
    """Send the log to standard error: text for people, or JSON for programs."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else Text("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler])
