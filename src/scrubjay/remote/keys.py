"""Keys for other scrubjay servers, kept for the next sync in a file that only its owner can read.

They are next to the store, not in it: copies and backups of the store do not include them. A key belongs to an address,
so a name that is reused for another server does not get the old key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from scrubjay.errors import InvalidInput, StorageError
from scrubjay.machine.paths import replace_file


class SyncKeys:
    def __init__(self, file: Path, named: Mapping[str, str] | None = None) -> None:
        """`named`: keys by endpoint, from the settings; they take precedence."""
        self._file = file
        self._named = named or {}

    def of(self, name: str, url: str) -> str:
        """The key for an endpoint, or an empty string."""
        return self._named.get(name) or self._read().get(url.rstrip("/"), "")

    def named(self, name: str) -> bool:
        """Whether the settings have a key for this endpoint."""
        return name in self._named

    def keep(self, url: str, key: str) -> None:
        """Remember a key for an address; an empty one removes it."""
        keys = {**self._read(), url.rstrip("/"): key}
        kept = {where: one for where, one in keys.items() if one}
        if kept != self._read():
            self._file.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self._file, json.dumps(kept, indent=1).encode())

    def _read(self) -> dict[str, str]:
        try:
            found = json.loads(self._file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError):
            raise StorageError("sync_keys.json in the home cannot be read.", hint="Fix or remove it.") from None
        if not isinstance(found, dict) or not all(isinstance(key, str) for key in found.values()):
            raise StorageError("sync_keys.json in the home is not a list of keys.", hint="Fix or remove it.")
        return found


def keys_in(setting: str) -> dict[str, str]:
    """:raises InvalidInput: if the setting is not a list of names and keys"""
    pairs = [entry.partition("=") for entry in setting.split()]
    if not all(name and key for name, _, key in pairs):
        told = "Invalid value of the setting sync_key."
        raise InvalidInput(told, hint="Write NAME=KEY NAME=KEY …", field="sync_key")
    return {name: key for name, _, key in pairs}
