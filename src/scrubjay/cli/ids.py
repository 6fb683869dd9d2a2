"""Which memory is meant: an id, the beginning of one, or @1 for the first of the last list.

    mem_4x1k9c0d2m7q    an id
    mem_4x1k, 4x1k      a beginning that no other id has
    @1                  the first memory of the list that this terminal showed last

A list's ids are kept in a file of the user's state folder, one per terminal, login and store: never a text.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from scrubjay.errors import InvalidInput

if TYPE_CHECKING:
    from scrubjay.cli.session import CommandSession
    from scrubjay.engine.engine import Engine

WHOLE = re.compile(r"mem_[0-9a-z]{12}")
NAMED = 5  # memories that an ambiguous beginning names
KEPT_SECONDS = 7 * 86_400  # after which another list may remove one


def resolve_id(engine: Engine, typed: str, session: CommandSession) -> str:
    """The id of the memory that is meant; what is not found stays as it is typed.

    :raises InvalidInput: if several are meant, or there is no such place in the last list
    """
    if typed.startswith("@"):
        return recall_id(typed, session)
    if not typed or WHOLE.fullmatch(typed):
        return typed
    found = engine.curation.find_by_id_prefix(typed, limit=NAMED + 1) or engine.curation.find_by_id_prefix(
        f"mem_{typed}", limit=NAMED + 1
    )
    if len(found) == 1 or any(memory.id == typed for memory in found):
        return typed if any(memory.id == typed for memory in found) else found[0].id
    if found:
        some = "; ".join(f"{memory.id} ({memory.title})" for memory in found[:NAMED])
        more = " and others" if len(found) > NAMED else ""
        raise InvalidInput(f"Several ids begin with {typed}: {some}{more}.", hint="Type more of it.", field="id")
    return typed


def resolve_ids(engine: Engine, typed: Iterable[str], session: CommandSession) -> tuple[str, ...]:
    return tuple(resolve_id(engine, one, session) for one in typed)


def remember_list(ids: Sequence[str], session: CommandSession) -> None:
    """Keep a list for @1, @2 …; a list that cannot be kept is shown all the same."""
    file = list_file(session)
    if file is None:
        return
    from scrubjay.machine.paths import replace_file

    with suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for old in file.parent.iterdir():
            if old.stat().st_mtime < time.time() - KEPT_SECONDS:
                old.unlink()
        replace_file(file, json.dumps(ids).encode())


def recall_id(typed: str, session: CommandSession) -> str:
    file = list_file(session)
    ids: object = None
    with suppress(OSError, ValueError):
        ids = json.loads(file.read_bytes()) if file is not None else None
    if not isinstance(ids, list) or not ids:
        raise InvalidInput(f"{typed} is a place in the last list, but this terminal has shown none yet.", field="id")
    place = int(typed[1:]) if re.fullmatch(r"@[0-9]{1,6}", typed) else 0
    if not 0 < place <= len(ids):
        raise InvalidInput(f"The last list goes from @1 to @{len(ids)}.", field="id")
    return str(ids[place - 1])


def list_file(session: CommandSession) -> Path | None:
    """Where this terminal's last list is kept; None without a terminal."""
    name = terminal_name()
    if name is None:
        return None
    from scrubjay.settings import state_folder

    # The login is part of it: a later one that gets the same terminal must not act on the list of another.
    key = sha256(f"{name}\0{os.getsid(0)}\0{session.settings().store}".encode()).hexdigest()[:24]
    return state_folder(os.environ) / "lists" / f"{key}.json"


def terminal_name() -> str | None:
    if sys.platform != "win32":
        for descriptor in (0, 1, 2):
            with suppress(OSError):
                return os.ttyname(descriptor)
    return None
