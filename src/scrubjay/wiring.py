"""Settings to an engine: the only place that picks concrete parts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from scrubjay.errors import InvalidInput, ModelMissing
from scrubjay.lazy import logging, modules
from scrubjay.machine.paths import SQLITE, full_path, store_address
from scrubjay.machine.projects import project_space, project_store
from scrubjay.machine.suggestions import Suggestions
from scrubjay.settings import AUTO, DATABASE, Settings, load
from scrubjay.values.callers import DEFAULT_SPACE, Caller
from scrubjay.values.times import utc_now

if TYPE_CHECKING:
    from scrubjay.archives import folder as archives
    from scrubjay.archives.base import Objects
    from scrubjay.embedders import catalogue, download, hashing, remote
    from scrubjay.embedders import lending as lenders
    from scrubjay.embedders import local as models
    from scrubjay.embedders.base import Embedder
    from scrubjay.embedders.lending import Lending
    from scrubjay.engine import parts
    from scrubjay.engine.archive import prices
    from scrubjay.engine.engine import Engine
    from scrubjay.engine.store import models as further_model
    from scrubjay.engine.store.models import FurtherModel
    from scrubjay.engine.sync import local
    from scrubjay.engine.sync.peer import Peer
    from scrubjay.folders import registry
    from scrubjay.providers import openai
    from scrubjay.providers.base import Provider
    from scrubjay.remote import keys as remote_keys
    from scrubjay.remote import peer
    from scrubjay.stores.copying import Copyable
    from scrubjay.stores.postgres import copying as postgres_copying
    from scrubjay.stores.postgres import store as postgres_store
    from scrubjay.stores.promises.memories import Store
    from scrubjay.stores.promises.sync import Endpoint
    from scrubjay.stores.sqlite import backup as backups
    from scrubjay.stores.sqlite import copying as sqlite_copying
    from scrubjay.stores.sqlite import salvage
    from scrubjay.stores.sqlite import store as sqlite_store
    from scrubjay.values.store import Prompt
else:
    archives, openai, registry = modules("scrubjay", "archives.folder providers.openai folders.registry")
    catalogue, download, hashing, lenders, models, remote = modules(
        "scrubjay.embedders", "catalogue download hashing lending local remote"
    )
    parts, prices, local, further_model = modules("scrubjay.engine", "parts archive.prices sync.local store.models")
    remote_keys, peer = modules("scrubjay.remote", "keys peer")
    postgres_copying, postgres_store = modules("scrubjay.stores.postgres", "copying store")
    backups, sqlite_copying, salvage, sqlite_store = modules("scrubjay.stores.sqlite", "backup copying salvage store")


def open_engine(settings: Settings, *, embedder: Embedder | None = None, borrows: bool = True) -> Engine:
    """The engine of these settings, bound to the local owner. Who does not borrow loads the model itself."""
    lending = lenders.Lending(
        settings.home if settings.lend_model and sys.platform != "win32" else None, borrows=borrows
    )
    shared = parts.Parts(
        open_store(
            settings.store,
            replica=settings.replica or None,
            pool_size=settings.pool_size,
            statement_seconds=settings.statement_timeout,
        ),
        embedder or open_embedder(settings, lending),
        caller=Caller(user=settings.user),
        spaces=(current_space(settings.space, here(settings)),),
        only=settings.only,
        wait_seconds=settings.embed_wait,
        fetch=model_fetcher(settings, settings.embedder),
        further=further_models(settings, lending) if embedder is None else (),
        judge_seconds=settings.judge_wait / 1000,
        strict_embedding=settings.strict_embedding,
        quota=settings.quota,
        provider=open_provider(settings),
        secrets=settings.secrets,
        instructions=settings.instructions,
        connect=lambda endpoint, create: open_peer(
            endpoint,
            create=create,
            user=settings.user,
            keys=open_sync_keys(settings),
            private=settings.sync_private,
        ),
        endpoints=endpoints_of(settings.sync),
        archive=open_archive(settings),
        archive_in_store=archives_in_store(settings),
        archive_quota=settings.archive_quota,
        prices=prices.read(settings.prices),
        model=open_model(settings),
        least_similarity=settings.least_similarity,
        registry=open_registry(settings, here(settings)),
        suggestions=Suggestions(settings.home),
        lending=lending,
    )
    return shared.owner


def open(target: str | Path | None = None, *, embedder: Embedder | None = None) -> Engine:
    """Open a memory: a file, a URL, or None for the default home. Use it in a `with` block."""
    settings = load()
    if target is not None:
        settings = replace(settings, store=store_address(target))
        if "://" not in str(target):  # a separate memory: its folders go next to it, not into the home
            beside = sqlite_file(settings.store).parent
            archive = settings.archive or str(archive_folder(settings))  # the home's, for all memories
            settings = replace(settings, home=beside, stores=beside, archive=archive)
    return open_engine(settings, embedder=embedder)


def open_store(
    url: str,
    *,
    replica: str | None = None,
    pool_size: int = 10,
    statement_seconds: float = 20.0,
    unfinished: bool = False,
) -> Store:
    """:raises CopyUnfinished: for an unfinished copy, unless `unfinished` is set to resume it"""
    scheme = url.partition("://")[0]
    if scheme == "sqlite":
        return sqlite_store.SqliteStore(sqlite_file(url), unfinished=unfinished)
    if scheme in ("postgresql", "postgres"):
        try:
            kind = postgres_store.PostgresStore
        except ImportError as error:
            if (error.name or "").partition(".")[0] != "psycopg":
                raise
            raise InvalidInput(
                "PostgreSQL's driver is not installed.",
                hint="Install it: .venv/bin/python -m pip install 'psycopg[binary]'.",
                field="store",
            ) from None
        return kind(
            url, replica=replica, pool_size=pool_size, statement_seconds=statement_seconds, unfinished=unfinished
        )
    raise not_understood()


def sqlite_file(url: str) -> Path:
    """The file of a store's address.

    :raises InvalidInput: if it is not one, or depends on the working directory
    """
    if not url.startswith(SQLITE):
        raise not_understood()
    try:
        return full_path(url.removeprefix(SQLITE), field="store")
    except InvalidInput:
        raise InvalidInput(
            "The file in a store's address must be a full path or begin with ~.",
            hint="For example sqlite:////home/ada/memories.db.",
            field="store",
        ) from None


def not_understood() -> InvalidInput:
    return InvalidInput(
        "Invalid store address.",
        hint="Use sqlite:///FILE with a full path, or postgresql://USER:PASSWORD@HOST/DATABASE.",
        field="store",
    )


def copyable(store: Store) -> Copyable:
    """A store as one side of a copy."""
    if isinstance(store, sqlite_store.SqliteStore):
        return sqlite_copying.SqliteCopy(store)
    assert isinstance(store, postgres_store.PostgresStore)
    return postgres_copying.PostgresCopy(store)


def open_archive(settings: Settings) -> Objects:
    return archives.FolderObjects(archive_folder(settings))


def archive_folder(settings: Settings) -> Path:
    """Where archived objects are; even where new ones go into the store, older ones may be here."""
    return settings.home / "archive" if settings.archive in ("", DATABASE) else Path(settings.archive)


def archives_in_store(settings: Settings) -> bool:
    """Whether every tier is kept in the store: by default where servers of several machines may share it."""
    return settings.archive == DATABASE or not (settings.archive or settings.store.startswith(SQLITE))


def open_model(settings: Settings) -> Callable[[Prompt], str] | None:
    """The language model that writes consolidated memories, if one is configured.

    :raises InvalidInput: if it is only half configured
    """
    wrong = "synthesis_url must be an http address, and synthesis_model must name the model."
    connect = opener(settings, "synthesis", settings.synthesis_wait, wrong)
    if connect is None:
        return None

    def ask(prompt: Prompt) -> str:
        with closing(connect()) as provider:
            return provider.complete(prompt)

    return ask


def opener(settings: Settings, use: str, seconds: float, wrong: str) -> Callable[[], openai.OpenAiProvider] | None:
    """What connects to a language model: most processes never ask one, and the import is not free."""
    url, model, key = (getattr(settings, f"{use}_{part}") for part in ("url", "model", "key"))
    if not url:
        return None
    if not model or not url.startswith(("http://", "https://")):
        raise InvalidInput(wrong, field=f"{use}_url")

    def connect() -> openai.OpenAiProvider:
        return openai.OpenAiProvider(url, model, key=key, timeout_seconds=seconds)

    return connect


def open_registry(settings: Settings, folder: Path) -> registry.Registry:
    """Which spaces have a folder; the project's own store is found from the working directory."""
    found = project_store(folder)
    return registry.Registry(
        settings.stores,
        settings.home,
        auto_register=settings.auto_register,
        strict_sections=settings.category_mode == "strict",
        project=None if found is None else registry.Registered(name=found[0], path=found[1], written=False),
    )


def restore(
    settings: Settings, backup: Path, *, replace: bool, progress: Callable[[int, int], None] | None = None
) -> Path | None:
    """Make a backup the store of these settings; return where the former store was moved, if there was one."""
    if not settings.store.startswith(SQLITE):
        raise InvalidInput("Only a store in a file can be restored from one.", field="store")
    aside = backups.restore(backup, sqlite_file(settings.store), replace=replace, progress=progress)
    with closing(open_store(settings.store)) as store, store.writing() as tx:
        tx.sync.renew_origin()  # so that new changes are not mistaken for those made after the backup
    return aside


def salvage_memories(settings: Settings) -> Iterator[salvage.SalvagedMemory]:
    """Every memory that is still readable in these settings' store file, however damaged."""
    if not settings.store.startswith(SQLITE):
        raise InvalidInput("Only a store in a file can be salvaged.", field="store")
    return salvage.salvage_rows(sqlite_file(settings.store))


def open_peer(
    endpoint: Endpoint,
    *,
    create: bool,
    user: str,
    keys: remote_keys.SyncKeys | None = None,
    private: bool = False,
    now: Callable[[], datetime] = utc_now,
) -> Peer:
    """The other side of a sync.

    :raises FileNotFoundError: if it does not exist and may not be created: an unmounted drive is not an empty one
    """
    scheme = endpoint.url.partition("://")[0]
    if scheme in ("http", "https"):
        key = keys.of(endpoint.name, endpoint.url) if keys is not None else ""
        return peer.RemotePeer(endpoint.name, peer.HttpLine(endpoint.url, key=key, private=private))
    objects = None
    if scheme == "sqlite":
        path = sqlite_file(endpoint.url)
        if not (path.parent if create else path).exists():
            raise FileNotFoundError
        objects = archives.FolderObjects(path.parent / "archive")  # as in a home
    return local.StorePeer(open_store(endpoint.url), now=now, user=user, objects=objects)


def open_sync_keys(settings: Settings) -> remote_keys.SyncKeys:
    return remote_keys.SyncKeys(settings.home / "sync_keys.json", remote_keys.keys_in(settings.sync_key))


def endpoints_of(setting: str) -> dict[str, str]:
    """:raises InvalidInput: if the setting is not a list of names and addresses"""
    pairs = [entry.partition("=") for entry in setting.split()]
    if not all(name and url for name, _, url in pairs):
        raise InvalidInput("Invalid value of the setting sync.", hint="Use NAME=URL NAME=URL …", field="sync")
    return {name: url for name, _, url in pairs}


def open_embedder(settings: Settings, lending: Lending | None = None) -> Embedder | None:
    """The chosen model, not yet loaded; None to search by words only. One of this machine may be lent and borrowed."""
    name = settings.embedder
    if name == "none":
        return None
    if name == "hashing":
        return hashing.HashingEmbedder()
    if name == "remote":
        if not settings.remote_url or not settings.remote_model:
            raise InvalidInput(
                "embedder=remote needs remote_url and remote_model.", hint="scrubjay settings", field="remote_url"
            )
        return remote.RemoteEmbedder(settings.remote_url, settings.remote_model, key=settings.remote_key)
    try:
        model = models.LocalEmbedder(catalogue.find(name), settings.models)
    except ModelMissing as error:  # the user's own folder is missing: search by words until it appears
        logging.getLogger(__name__).warning("%s Searching by words only.", error.message)
        return None
    return model if lending is None else lending.shared(model)


def open_provider(settings: Settings) -> Provider | None:
    """What answers in conversations; None if nothing is configured.

    :raises InvalidInput: if its address is invalid
    """
    wrong = "chat_url must be an http or https address, and chat_model must name a model."
    connect = opener(settings, "chat", settings.chat_timeout, wrong)
    return None if connect is None else LazyProvider(connect)


class LazyProvider:
    """Connects when the first message is answered."""

    def __init__(self, connect: Callable[[], Provider]) -> None:
        self._connect = connect
        self._provider: Provider | None = None

    def answer(self, messages: Sequence[Mapping[str, str]]) -> Iterator[str]:
        self._provider = self._provider or self._connect()
        return self._provider.answer(messages)

    def close(self) -> None:
        if self._provider is not None:
            self._provider.close()


def further_models(settings: Settings, lending: Lending | None = None) -> list[FurtherModel]:
    """The models beside the chosen one, none of them loaded: by itself only one for other languages beside an English
    one of ours."""
    if settings.languages == "off" or settings.embedder == "none":
        return []
    name, chosen = catalogue.LANGUAGES, settings.embedder
    if chosen == name or (settings.languages == "auto" and chosen not in catalogue.ENGLISH):
        return []
    model: Embedder = models.LocalEmbedder(catalogue.CATALOGUE[name], settings.models)
    return [
        further_model.FurtherModel(
            embedder=model if lending is None else lending.shared(model),
            fetch=model_fetcher(settings, name),
            always=settings.languages == "on",
        )
    ]


def model_fetcher(settings: Settings, name: str) -> Callable[[], None] | None:
    """A function that downloads a missing model in the background, if that is allowed."""
    if settings.model_pull == "never" or name in ("none", "hashing", "remote"):
        return None

    def fetch() -> None:
        download.pull(catalogue.find(name), settings.models)

    return fetch


def here(settings: Settings) -> Path:
    """The working directory; the home, if that was removed."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return settings.home


def current_space(space: str, folder: Path) -> str:
    """The space that a setting means in this folder; `auto` is the project's, where there is one."""
    return (project_space(folder) if space == AUTO else space) or DEFAULT_SPACE
