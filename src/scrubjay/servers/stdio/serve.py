"""The slow half of a stdio server: the engine and, once it is needed, the protocol's library."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from scrubjay.dialects.table import find
from scrubjay.engine.engine import Engine
from scrubjay.errors import Error
from scrubjay.hooks.listening import listen
from scrubjay.servers.calls import Opening, offered_dialect
from scrubjay.servers.stdio.options import Options
from scrubjay.servers.stdio.plain import Plain
from scrubjay.servers.stdio.profile import offers_also
from scrubjay.settings import Settings, load
from scrubjay.wiring import open_engine

if TYPE_CHECKING:
    from scrubjay.servers.http.rate_limits import Limits

log = logging.getLogger(__name__)


def serve(
    options: Options,
    inbox: SimpleQueue[dict[str, Any] | None],
    deliver: Callable[[int | str | None, bytes], None],
    serving: threading.Event,
) -> None:
    """Answer what arrives in the inbox until it yields None; returns when everything is closed."""
    logging.basicConfig(stream=sys.stderr, level="WARNING", format="%(levelname)s %(name)s: %(message)s")
    closing: list[Callable[[], None]] = []
    opening = Opening(lambda: _open(options, closing, lambda: plain.client))
    also, asks = offers_also(os.environ), _may_ask(options)
    dialects = [offered_dialect(find(name), also=also, by_client=asks) for name in options.dialects]
    limits = _limits(options)
    plain = Plain(dialects, opening.engine, inbox, deliver)
    threading.Thread(target=_open_ahead, args=(opening,), daemon=True).start()
    left = plain.run(serving) if limits is None else []
    if left is not None:
        from scrubjay.servers.mcp.server import run_streams  # takes most of a second

        rest = Rest(left, inbox)
        run_streams(dialects, opening.engine, rest, deliver, extras=options.extras, limits=limits, serving=serving)
    for close in closing:
        close()
    opening.close()


class Rest:
    """An inbox, and what was taken out of it already."""

    def __init__(self, ahead: list[dict[str, Any]], inbox: SimpleQueue[dict[str, Any] | None]) -> None:
        self._ahead = ahead
        self._inbox = inbox

    def get(self) -> dict[str, Any] | None:
        return self._ahead.pop(0) if self._ahead else self._inbox.get()


def _limits(options: Options) -> Limits | None:
    """None, unless a setting limits the local owner."""
    try:
        settings = _settings(options)
    except Error:  # every call will say so
        return None
    if not settings.limits:
        return None
    from scrubjay.servers.http.rate_limits import Limits  # a tenth of a second that others should not pay

    return Limits(local=True)


def _may_ask(options: Options) -> bool:
    """Whether a client's model may be asked for phrases; not where the settings cannot be read, as every call says."""
    try:
        return _settings(options).also_by_client
    except Error:
        return False


def _settings(options: Options) -> Settings:
    return load(home=options.home, space=options.space, only=options.only, dialects=options.dialects)


def _open(options: Options, closing: list[Callable[[], None]], client: Callable[[], str]) -> Engine:
    """The engine; from now on others of this home may ask this server too."""
    settings = _settings(options)
    logging.getLogger().setLevel(settings.log_level.upper())
    engine = open_engine(settings)
    closing.append(listen(settings, engine, client))
    return engine


def _open_ahead(opening: Opening) -> None:
    try:
        opening.engine()
    except Error as error:  # every call will say so too
        log.error("The memory could not be opened: %s", error.message)
