"""A site of our own making on a real port."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count

import anyio
import httpx
import uvicorn

from scrubjay.servers.http.app import open_listener
from scrubjay.servers.http.connection import config_of

AS_JSON = {"content-type": "application/json"}  # a POST without a key needs it, also one without a body


class Site(uvicorn.Server):
    """Ends when it is told to, not tenths of a second later: some hundred tests wait for that."""

    async def main_loop(self) -> None:
        for tick in count():
            if await self.on_tick(tick):
                return
            await anyio.sleep(0.01)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for closable in (*self.servers, *(sockets or ())):
            closable.close()
        state = self.server_state
        for connection in list(state.connections):
            connection.shutdown()
        with anyio.move_on_after(self.config.timeout_graceful_shutdown):
            while state.connections or state.tasks:
                await anyio.sleep(0.005)
        for task in state.tasks:
            task.cancel()
        await self.lifespan.shutdown()


@contextmanager
def running(app, **options) -> Iterator[str]:
    """The app under uvicorn on a free port: its address."""
    scheme = "https" if "ssl_certfile" in options else "http"
    with open_listener("127.0.0.1", 0) as listener:
        server = Site(config_of(app, timeout_graceful_shutdown=5, **options))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"{scheme}://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def client_of(app, **options) -> Iterator[httpx.Client]:
    """A client of the app, over real HTTP."""
    options = {"headers": AS_JSON, "timeout": 60, "verify": authorities(), **options}
    with running(app) as address, httpx.Client(base_url=address, **options) as client:
        yield client


@cache
def authorities() -> ssl.SSLContext:
    """Whom a client trusts; reading that anew takes longer than most tests."""
    return httpx.create_ssl_context()
