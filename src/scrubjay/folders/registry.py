"""Which spaces have a folder, and where: `stores.yaml`, written by `scrubjay folders`, by `create_store` and by people.

    stores:
      "notes":
        path: "/home/ada/notes"
        description: "What I learn"
        read_only: true         nothing is ever written to the folder

A path may begin with ~ or be relative to the registry's own folder. `default` is registered from the start. A file that
people have broken is never overwritten.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from scrubjay.errors import InvalidInput, RegistryDamaged
from scrubjay.folders.folder import Folder, failures
from scrubjay.folders.lock import FolderLock
from scrubjay.folders.paths import SLUG
from scrubjay.lazy import logging, yaml
from scrubjay.machine.paths import expand_home, replace_file
from scrubjay.values.callers import DEFAULT_SPACE
from scrubjay.values.frozen import dataclass

FILE = "stores.yaml"
MAX_BYTES = 1_000_000
HINT = "Fix or remove it; scrubjay does not change it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """A space with a folder."""

    name: str
    path: Path
    description: str | None = None
    read_only: bool = False
    more: Mapping[str, Any] = field(default_factory=dict)  # other keys written about it
    written: bool = True  # it is in the file


class Registry:
    """The stores of one home. Safe to share between threads; every read sees what others wrote."""

    def __init__(
        self,
        folder: Path,
        home: Path,
        *,
        auto_register: bool = True,
        strict_sections: bool = False,
        project: Registered | None = None,
        walk_seconds: float = 1.0,
    ) -> None:
        self.auto_register = auto_register
        self.strict_sections = strict_sections
        self.walk_seconds = walk_seconds
        self.lock = FolderLock(home / "folders.lock")
        self._file = folder / FILE
        self._home = Path(os.path.realpath(home))
        self._base = home / "stores"
        self._project = project
        self._seen: tuple[str, dict[str, Registered]] | None = None

    def stores(self) -> dict[str, Registered]:
        """All of them by name: those in the file, the default one, and the current project's.

        :raises RegistryDamaged: naming line and column
        """
        found = dict(self._read())
        if self._project is not None and all(self._project.path != one.path for one in found.values()):
            found.setdefault(self._project.name, self._project)
        found.setdefault(DEFAULT_SPACE, self.usual(DEFAULT_SPACE))
        return dict(sorted(found.items()))

    def folder_of(self, store: Registered) -> Folder:
        """Its files; those under our own home are for this user only, as the store in one file is."""
        return Folder(store.path, private=Path(os.path.realpath(store.path)).is_relative_to(self._home))

    def there(self) -> list[str]:
        """The spaces that have a folder on disk; fast, and none if the registry cannot be read."""
        try:
            found = self.stores()
        except RegistryDamaged as error:  # other dialects do not need it
            logging.getLogger(__name__).warning("%s", error.message)
            return []
        return [name for name, store in found.items() if store.path.is_dir()]

    def read_only(self) -> frozenset[str]:
        """The read-only stores; fast, and empty if the registry cannot be read."""
        try:
            return frozenset(name for name, store in self._read().items() if store.read_only)
        except RegistryDamaged:
            return frozenset()

    def find(self, name: str) -> Registered | None:
        return self.stores().get(name)

    def usual(self, name: str) -> Registered:
        """Where a store is created by default."""
        return Registered(name=name, path=self._base / name, written=False)

    def project(self) -> Registered | None:
        """The current project's store, by the name it is registered under."""
        if self._project is None:
            return None
        return next((one for one in self.stores().values() if one.path == self._project.path), None)

    def add(self, store: Registered) -> None:
        """Write a store to the file; the caller makes sure that no one else does at the same time.

        :raises InvalidInput: if its folder is inside another store's, or the other way round
        """
        mine = Folder(store.path).root
        for other in self.stores().values():
            theirs = Folder(other.path).root
            if not other.written and mine == theirs:  # the project's, which gets another name now
                continue
            if other.name != store.name and (mine.is_relative_to(theirs) or theirs.is_relative_to(mine)):
                raise InvalidInput(
                    f"Its folder overlaps with that of store {other.name}.",
                    hint="Choose a separate folder.",
                    field="path",
                )
        self._write({**self._read(), store.name: store})

    def remove(self, name: str) -> None:
        self._write({key: store for key, store in self._read().items() if key != name})

    # --- the file ---

    def _read(self) -> dict[str, Registered]:
        try:
            about = os.stat(self._file)
        except FileNotFoundError:
            return {}
        except OSError:
            raise RegistryDamaged("stores.yaml cannot be read.", hint="Check its permissions.") from None
        stamp = f"{about.st_mtime_ns}.{about.st_size}.{about.st_ino}"
        if self._seen is None or self._seen[0] != stamp:
            self._seen = stamp, self._parse()
        return self._seen[1]

    def _parse(self) -> dict[str, Registered]:
        try:
            text = self._file.read_text("utf-8-sig")
            if len(text) > MAX_BYTES:
                raise RegistryDamaged("stores.yaml is too large.", hint=HINT)
            value = yaml.load(text, Loader=_one_of_each(yaml))
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark
            where = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
            raise RegistryDamaged(f"stores.yaml cannot be read: {error.problem}{where}.", hint=HINT) from None
        except (yaml.YAMLError, ValueError, RecursionError):
            raise RegistryDamaged("stores.yaml cannot be read: it is not YAML in UTF-8.", hint=HINT) from None
        except OSError:
            raise RegistryDamaged("stores.yaml cannot be read.", hint="Check its permissions.") from None
        if isinstance(value, dict) and "stores" in value:
            value = value["stores"]
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise RegistryDamaged("stores.yaml must be a list of names, each with a path.", hint=HINT)
        return {str(name): self._entry(str(name), entry) for name, entry in value.items()}

    def _entry(self, name: str, entry: Any) -> Registered:
        if not SLUG.fullmatch(name) or len(name) > 100:
            raise RegistryDamaged(
                f"stores.yaml: invalid store name {name[:40]!r}: use lower-case letters, digits, single hyphens.",
                hint=HINT,
            )
        path = entry.get("path") if isinstance(entry, dict) else None
        if not isinstance(path, str) or not path.strip() or "\0" in path:
            raise RegistryDamaged(f"stores.yaml: store {name} has no path.", hint=HINT)
        try:
            place = expand_home(path, field=f"stores.yaml: the path of store {name}")
        except InvalidInput as error:
            raise RegistryDamaged(error.message, hint=HINT) from None
        description = entry.get("description")
        return Registered(
            name=name,
            path=self._file.parent / place,
            description=None if description is None else str(description),
            read_only=entry.get("read_only") is True,
            more={key: value for key, value in entry.items() if key not in ("path", "description", "read_only")},
        )

    def _write(self, stores: Mapping[str, Registered]) -> None:
        lines = ["stores:" if stores else "stores: {}"]
        for name, store in sorted(stores.items()):
            lines += [f"  {json.dumps(name)}:", f"    path: {_quote(str(store.path))}"]
            if store.description is not None:
                lines.append(f"    description: {_quote(store.description)}")
            if store.read_only:
                lines.append("    read_only: true")
            lines += [f"    {_quote(str(key))}: {json.dumps(value, default=str)}" for key, value in store.more.items()]
        with failures():
            self._file.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self._file, "\n".join([*lines, ""]).encode())
        self._seen = None


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _one_of_each(yaml: Any) -> Any:
    """A safe loader that refuses duplicate keys: the second would hide the first."""

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = [key.value for key, _ in node.value]
            for key, _ in node.value:
                if keys.count(key.value) > 1:
                    raise yaml.constructor.ConstructorError(None, None, f"duplicate key {key.value}", key.start_mark)
            return super().construct_mapping(node, deep)

    return Loader
