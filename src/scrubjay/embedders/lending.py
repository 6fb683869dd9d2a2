"""One loaded model for all processes of a user and a home: the process that has it loaded lends it to the others.

    a text ──> the model is loaded here ────────────────────────────> its vector
               another process has it: asked over its socket ───────> its vector
               no one has: under a lock in the home, loaded here, and lent from then on

No process is ever started for this, and nothing outlives the client that started its process. Lenders that do not
answer cost a call `PATIENCE_SECONDS`, all of them together; then they are not asked again until the model that is
loaded here instead is given back. A request names the model by its fingerprint, so versions and settings never mix.
"""

from __future__ import annotations

import base64
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrubjay.embedders.base import Embedder, NotLoaded
from scrubjay.lazy import ctypes
from scrubjay.lazy import numpy as np
from scrubjay.machine.local_sockets import LENDS, exchange, is_stopped, remove_dead, sockets
from scrubjay.machine.locks import lock_holder, try_lock
from scrubjay.values.frozen import dataclass

if TYPE_CHECKING:
    from scrubjay.values.vectors import Vector

PATIENCE_SECONDS = 0.25  # for all lenders of a call together
LOADING_SECONDS = 5.0  # to wait for another process that loads the model; then it is loaded here, too
IDLE_SECONDS = 600.0  # without a text, after which a model is given back
FEW = 2  # texts that are embedded by a lender at once …
MANY = 120  # … and within a minute, one after the other; for more the model is loaded here
MINUTE = 60.0


class Lending:
    """What one process lends and borrows. Without a home it does neither."""

    def __init__(
        self,
        home: Path | None = None,
        *,
        borrows: bool = True,
        patience: float = PATIENCE_SECONDS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.home = home
        self.borrows = borrows and home is not None
        self.patience = patience
        self.now = now
        self._models: dict[str, Lent] = {}
        self._lock = threading.Lock()
        self._socket: Path | None = None
        self._client: Callable[[], str] = lambda: "unknown"
        self._turns = Turns()
        self._lent: deque[tuple[float, int]] = deque(maxlen=10_000)  # when, and to which process

    def shared(self, embedder: Embedder) -> Lent:
        """The same model, lent and borrowed."""
        return self._models.setdefault(embedder.fingerprint, Lent(embedder, self))

    # --- lending -----------------------------------------------------------------------------------------------------

    def listens(self, path: Path, client: Callable[[], str]) -> None:
        """From now on others reach this process there."""
        self._socket, self._client = path, client
        self.mark()

    def stop(self) -> None:
        with self._lock:
            path, self._socket = self._socket, None
        if path is not None:
            with suppress(OSError):
                path.unlink()

    def mark(self) -> None:
        """Let the socket's name say whether there is a model to lend: no one else has to be asked for one."""
        with self._lock:
            if self._socket is None or self.home is None:
                return
            named = self._socket.with_name(f"{os.getpid()}{LENDS if self.lends else '.sock'}")
            with suppress(OSError):
                if named != self._socket:
                    self._socket = self._socket.rename(named)

    @property
    def lends(self) -> bool:
        """Whether a model is loaded here."""
        return any(model.loaded_at for model in self._models.values())

    def answer(self, question: dict[str, Any], process: int) -> dict[str, Any]:
        """A text's vector; without a text, who borrows what.

        :raises KeyError: if that model is not loaded here
        :raises TypeError: if there is no text to embed
        :raises TimeoutError: if others take too long: the caller has given up
        """
        if "text" not in question:
            return self.state()
        model, text = self._models[question["lend"]], question["text"]
        if model.loaded_at is None:
            raise KeyError
        if not isinstance(text, str):
            raise TypeError
        with self._turns.turn(len(text), self.patience):
            vector = model.made_here(text, query=question["query"])
        self._lent.append((self.now(), process))
        return {"vector": base64.b64encode(vector.tobytes()).decode()}

    def state(self) -> dict[str, Any]:
        recent = [process for at, process in self._lent.copy() if self.now() - at <= MINUTE]
        return {
            "process": os.getpid(),
            "client": self._client(),
            "models": {model.name: model.loaded_at for model in self._models.values() if model.loaded_at},
            "askers": len(set(recent)),
            "texts_per_second": round(len(recent) / MINUTE, 2),
        }

    # --- borrowing ---------------------------------------------------------------------------------------------------

    def lenders(self) -> list[Path]:
        if not self.borrows or self.home is None:
            return []
        return [path for path in sockets(self.home) if path.name.endswith(LENDS) and path != self._socket]

    def look(self) -> None:
        """Remove what killed processes left."""
        if self.borrows and self.home is not None:
            remove_dead(self.home)

    @contextmanager
    def loading(self) -> Iterator[None]:
        """No other process of this home loads a model meanwhile, unless it is stopped or late or cannot lock.

        Who will not lend what it loads only waits for others.
        """
        if not self.borrows or self.home is None:
            yield
            return
        folder = None
        try:
            with suppress(OSError):
                folder = os.open(self.home / "run", os.O_RDONLY)  # it has no lock of its own that could be left behind
                until = self.now() + LOADING_SECONDS
                while not try_lock(folder) and self.now() < until and not is_stopped(lock_holder(folder)):
                    time.sleep(0.02)
                if self._socket is None:
                    os.close(folder)
                    folder = None
            yield
        finally:
            if folder is not None:
                os.close(folder)


class Lent(Embedder):
    """A model that is borrowed from the process that has it loaded; else it is loaded here, and lent."""

    in_process = True  # a lender is asked for a quarter of a second only

    def __init__(self, embedder: Embedder, lending: Lending) -> None:
        self.name, self.dimension, self.calibration = embedder.name, embedder.dimension, embedder.calibration
        self.loaded_at: float | None = None  # by the wall clock
        self._embedder = embedder
        self._lending = lending
        self._used_at: float | None = None
        self._passed: set[Path] = set()  # lenders that did not help …
        self._late = False  # … because they took too long: so may the next one, of which many ask at once
        self._texts: deque[float] = deque(maxlen=MANY)  # when the last ones came

    @property
    def fingerprint(self) -> str:
        return self._embedder.fingerprint

    def split(self, text: str) -> list[str]:
        return self._embedder.split(text)

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        self._begin(len(texts))
        if self.loaded_at is None:
            return self._borrowed(texts, query=False)
        return self._embedder.embed(texts)

    def embed_query(self, text: str) -> Vector:
        self._begin(1)
        return self.made_here(text, query=True) if self.loaded_at else self._borrowed([text], query=True)[0]

    def made_here(self, text: str, *, query: bool) -> Vector:
        self._used_at = self._lending.now()
        return self._embedder.embed_query(text) if query else self._embedder.embed([text])[0]

    def load(self, progress: Callable[[str], None] | None = None) -> None:
        """See that there is a model: another process's or, if none has it, loaded here."""
        if self.loaded_at is not None:
            return
        self._used_at = self._lending.now()
        self._lending.look()
        if self._late:
            self._load_here(progress)
        elif not self._lenders():
            with self._lending.loading():
                if not self._lenders():  # whoever loaded it meanwhile
                    self._load_here(progress)

    def rest(self) -> bool:
        """Give the model back if no text has needed it for ten minutes; whether that is so."""
        if self._used_at is None or self._lending.now() - self._used_at < IDLE_SECONDS:
            return False
        self._used_at = None
        self.close()
        return True

    def close(self) -> None:
        self.loaded_at = None
        self._lending.mark()
        self._embedder.close()

    def _begin(self, texts: int) -> None:
        """Make sure of a model: here, if enough texts come, at once or one after the other, that it would slow a
        lender."""
        if self._used_at is None:
            self.load()
        self._used_at = now = self._lending.now()
        self._texts.extend([now] * texts)
        often = len(self._texts) == MANY and now - self._texts[0] < MINUTE
        if self.loaded_at is None and (often or texts > FEW):
            self._load_here()

    def _load_here(self, progress: Callable[[str], None] | None = None) -> None:
        self._embedder.load(progress)
        give_back_memory()  # a fifth of a loaded model's: its file as it was read
        self.loaded_at = time.time()
        self._passed.clear()
        self._late = False
        self._lending.mark()

    def _lenders(self) -> list[Path]:
        found = self._lending.lenders()
        self._passed.intersection_update(found)  # the others are gone
        return [path for path in found if path not in self._passed]

    def _borrowed(self, texts: Sequence[str], *, query: bool) -> list[Vector]:
        """:raises NotLoaded: if no one lends it"""
        until = time.monotonic() + self._lending.patience
        lenders = self._lenders()
        for path in lenders:
            with suppress(OSError, ValueError, KeyError, TypeError):
                return [self._borrowed_from(path, text, until, query=query) for text in texts]
        self._passed.update(lenders)
        self._late = self._late or time.monotonic() >= until
        raise NotLoaded

    def _borrowed_from(self, path: Path, text: str, until: float, *, query: bool) -> Vector:
        """:raises OSError: if it does not answer in time :raises Exception: if that is not a vector"""
        if (left := until - time.monotonic()) <= 0:
            raise TimeoutError
        reply = exchange(path, {"lend": self.fingerprint, "text": text, "query": query}, left)
        vector = np.frombuffer(base64.b64decode(reply["vector"]), np.float32)
        if vector.shape != (self.dimension,):
            raise ValueError
        return vector


class Turns:
    """Lets one text at a time through, the shortest of those that wait first: questions before long texts.

    So at most one processor works for others, and a lender's own calls have theirs.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[tuple[int, float]] = []
        self._busy = False

    @contextmanager
    def turn(self, size: int, seconds: float) -> Iterator[None]:
        """:raises TimeoutError: if it does not come in time"""
        with self._changed:
            mine = (size, time.monotonic())
            self._waiting.append(mine)
            came = self._changed.wait_for(lambda: not self._busy and min(self._waiting) == mine, seconds)
            self._waiting.remove(mine)
            if not came:
                self._changed.notify_all()
                raise TimeoutError
            self._busy = True
        try:
            yield
        finally:
            with self._changed:
                self._busy = False
                self._changed.notify_all()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lender:
    """A process that has a model loaded, as it says itself."""

    process: int
    client: str
    model: str
    since: datetime
    askers: int  # processes, in the last minute
    texts_per_second: float  # for them, in the last minute


def lenders_of(home: Path) -> list[Lender]:
    """Who lends which model there."""
    found = []
    for path in sockets(home):
        if path.name.endswith(LENDS):
            with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):  # gone, or of another version
                told = exchange(path, {"lend": ""}, PATIENCE_SECONDS)
                found += [
                    Lender(
                        process=int(told["process"]),
                        client=str(told["client"]),
                        model=name,
                        since=datetime.fromtimestamp(since, UTC),
                        askers=int(told["askers"]),
                        texts_per_second=float(told["texts_per_second"]),
                    )
                    for name, since in told["models"].items()
                ]
    return found


def give_back_memory() -> None:
    """Let the system have what was freed; the C library would keep it for later."""
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
