"""What a server counts, for Prometheus: requests by route, calls by operation, how long they took.

Labels come from the tables of operations and routes, never from what a client sent, so their number is limited.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Histogram, Metric, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response

from scrubjay.errors import Error
from scrubjay.servers.calls import Call

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """One server's metrics, in its own registry. Workers keep them in files of a folder, and each shows their sums."""

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        counter = partial(Counter, registry=self._registry)
        histogram = partial(Histogram, buckets=SECONDS, registry=self._registry)
        self._requests = counter("scrubjay_http_requests", "Requests answered.", ("method", "route", "status"))
        self._request_seconds = histogram("scrubjay_http_request_seconds", "Time until the answer started.", ("route",))
        self._calls = counter(
            "scrubjay_calls",
            "Calls of operations, over MCP and REST; outcome is ok or the error's code.",
            ("dialect", "operation", "transport", "outcome"),
        )
        self._call_seconds = histogram(
            "scrubjay_call_seconds", "Duration of calls, including the wait for a thread.", ("dialect", "operation")
        )

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests.labels(method if method in METHODS else "other", route, str(status)).inc()
        self._request_seconds.labels(route).observe(seconds)

    def count_call(self, call: Call, error: Error | None, seconds: float) -> None:
        outcome = "ok" if error is None else error.code
        self._calls.labels(call.dialect.name, call.operation, call.transport, outcome).inc()
        self._call_seconds.labels(call.dialect.name, call.operation).observe(seconds)

    async def show(self, _: Request) -> Response:
        registry = self._registry
        if self._folder is not None:
            registry = CollectorRegistry()
            MultiProcessCollector(registry, self._folder)  # type: ignore[no-untyped-call]
            registry.register(ProcessSums(self._folder))
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


class ProcessSums(Collector):
    """What the living workers use of the machine, added up."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def collect(self) -> Iterable[Metric]:
        sums: dict[str, Metric] = {}
        for file in self._folder.glob("counter_*.db"):
            process = partial(str, file.stem.removeprefix("counter_"))
            for one in ProcessCollector(pid=process, registry=None).collect():
                known = sums.setdefault(one.name, one)
                if known is not one:
                    [sample], [more] = known.samples, one.samples
                    known.samples = [sample._replace(value=sample.value + more.value)]
        return [one for name, one in sums.items() if not name.endswith(("start_time_seconds", "max_fds"))]


METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
