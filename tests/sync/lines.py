"""Ways to reach a store of the simulation that are real: our own site, called in this process or over HTTP."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal
from starlette.types import ASGIApp, Receive, Scope, Send

from scrubjay.dialects.memento import memento
from scrubjay.dialects.table import find
from scrubjay.engine.engine import Engine
from scrubjay.engine.sync.peer import Peer
from scrubjay.machine.http_client import HttpAnswer
from scrubjay.remote.peer import HttpLine, RemotePeer
from scrubjay.servers.http.app import build_app
from tests.servers.sites import running
from tests.sync.world import Line, Site, World


def site_of(engine: Engine) -> ASGIApp:
    return build_app(engine, [memento], only_rest=[find("native")])


class Inside:
    """Asks a site without a socket in between."""

    def __init__(self, portal: BlockingPortal, app: ASGIApp) -> None:
        self._portal, self._app = portal, app

    def ask(self, method: str, path: str, body: bytes | None) -> HttpAnswer:
        return self._portal.call(functools.partial(called, self._app, method, path, body or b""))

    def close(self) -> None:
        pass


async def called(app: ASGIApp, method: str, path: str, body: bytes) -> HttpAnswer:
    sent: list[dict] = []
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict:
        return waiting.pop() if waiting else await anyio.sleep_forever()

    async def send(message: dict) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http", "method": method,
             "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "", "headers": headers,
             "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "state": {}}  # fmt: skip
    await app(scope, receive, send)
    told = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return HttpAnswer(sent[0]["status"], told, b"".join(one.get("body", b"") for one in sent[1:]))


class Village:
    """The sites of all engines on one port, each below a path of its own."""

    def __init__(self) -> None:
        self._sites: dict[str, tuple[Engine, ASGIApp]] = {}

    def path(self, name: str, engine: Engine) -> str:
        if name not in self._sites or self._sites[name][0] is not engine:
            self._sites[name] = (engine, site_of(engine))
        return f"/{name}"

    def app(self, name: str) -> ASGIApp:
        return self._sites[name][1]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            return await send({"type": "lifespan.shutdown.complete"})
        _, name, rest = scope["path"].split("/", 2)
        await self.app(name)({**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode()}, receive, send)


def no_pause(_seconds: float) -> None:
    pass


@contextmanager
def inside() -> Iterator[Line]:
    village = Village()
    with start_blocking_portal() as portal:

        def line(_world: World, site: Site) -> Peer:
            village.path(site.name, site.jay)
            return RemotePeer(site.name, Inside(portal, village.app(site.name)), pause=no_pause)

        yield line


@contextmanager
def over_http() -> Iterator[Line]:
    village = Village()
    with running(village) as address:

        def line(_world: World, site: Site) -> Peer:
            url = f"{address}{village.path(site.name, site.jay)}"
            return RemotePeer(site.name, HttpLine(url, private=True), pause=no_pause)

        yield line
