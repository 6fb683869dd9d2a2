"""Every setting once: type, default, help. The only place that reads the environment.

    flag  >  environment (SCRUBJAY_…)  >  config.toml in the home  >  default

Parts receive what they need (a path, a number), never this object.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping
from dataclasses import field, fields
from pathlib import Path
from typing import Any

from scrubjay.errors import InvalidInput
from scrubjay.machine.paths import expanded, store_address
from scrubjay.values.frozen import dataclass


def setting(default: Any, help: str) -> Any:
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How one process runs."""

    home: Path = setting(Path(), "Folder for the store, settings and archives. Default: the platform's data folder.")
    store: str = setting(
        "", "Where memories are kept: sqlite:///FILE, a full path, or postgresql://…. Default: memories.db in the home."
    )
    replica: str = setting("", "PostgreSQL: the address of a replica that searches by words and by meaning go to.")
    pool_size: int = setting(10, "PostgreSQL: the most connections that one process opens.")
    statement_timeout: float = setting(20.0, "PostgreSQL: seconds that one statement may take.")
    embedder: str = setting(
        "arctic-embed-s", "Embedding model: a name of the catalogue, folder:PATH, remote, none, or hashing (for tests)."
    )
    remote_url: str = setting("", "With embedder=remote: an OpenAI-compatible endpoint, up to /v1.")
    remote_model: str = setting("", "With embedder=remote: the model's name there.")
    remote_key: str = setting("", "With embedder=remote: the key to send, if it asks for one.")
    models: Path = setting(Path(), "Folder for model files, shared by all homes. Default: the user's cache folder.")
    model_pull: str = setting("auto", "Fetch a missing model in the background: auto or never.")
    space: str = setting("default", "The space to work in; auto names it after the repository you stand in.")
    user: str = setting("local", "Whose memories the local owner writes.")
    embed_wait: float = setting(2.0, "Seconds that a call waits for the embedding model before it uses words only.")
    strict_embedding: bool = setting(
        False, "Refuse a store or a search when the model is away, instead of using words only: on or off."
    )
    stores: Path = setting(
        Path(), "Folder of stores.yaml, the list of stores. Default: CORTEX_DATA_PATH, else the home."
    )
    auto_register: bool = setting(True, "Let a first memory make its store; off closes the list of stores: on or off.")
    category_mode: str = setting("free", "Whether a memory's category is made as needed or must exist: free or strict.")
    quota: int = setting(0, "The most memories that one user may keep in a space; 0 means no limit.")
    secrets: str = setting(
        "flag", "What happens to text that holds a secret: flag, mask (store it without the secret), refuse or off."
    )
    instructions: str = setting("flag", "What happens to text that reads like orders to a model: flag, refuse or off.")
    chat_url: str = setting("", "Where a language model answers in conversations, such as http://127.0.0.1:11434/v1.")
    chat_model: str = setting("", "Which model answers there.")
    chat_key: str = setting("", "The key to send there; never shown.")
    chat_timeout: float = setting(60.0, "Seconds that the model may be silent before it is given up.")
    archive: str = setting(
        "",
        "Where memories in glacier and deep_archive are kept: database, or a folder (a full path; servers on one "
        "database must share it). Default: database with PostgreSQL, else archive in the home.",
    )
    archive_quota: int = setting(0, "The most bytes that archived memories may take; 0 means no limit.")
    prices: str = setting("", "What storage costs, for archive replies: hot=0.25 glacier=0.004 glacier.out=0.03, say.")
    synthesis_url: str = setting(
        "", "Address of an OpenAI-compatible model that writes consolidated memories, up to and with /v1."
    )
    synthesis_model: str = setting("", "That model's name.")
    synthesis_key: str = setting("", "The key for that address, if it wants one.")
    synthesis_wait: float = setting(60.0, "Seconds that a consolidation waits for that model.")
    least_similarity: float = setting(0.3, "How alike memories must be on average to be consolidated, from 0 to 1.")
    sync: str = setting("", "Stores to sync with, beside those of `scrubjay sync add`: NAME=URL, separated by spaces.")
    sync_key: str = setting("", "Keys of the scrubjays among them: NAME=KEY, separated by spaces; never shown.")
    sync_private: bool = setting(
        False, "Let a sync reach scrubjays on this machine and in private networks: on or off."
    )
    host: str = setting("127.0.0.1", "Address that the HTTP server listens on.")
    port: int = setting(8377, "Port that the HTTP server listens on.")
    allowed_hosts: str = setting("", "Names that the HTTP server answers to beside this machine's own, with commas.")
    origins: str = setting(
        "", "Other origins whose pages may use the HTTP server, such as https://app.example, with commas."
    )
    proxies: str = setting(
        "", "Addresses or networks of reverse proxies, with commas: what their X-Forwarded-* headers say is believed."
    )
    call_seconds: float = setting(60.0, "Seconds that a call over HTTP may take.")
    limits: bool = setting(False, "Limit the rates of the local owner too, not only of callers with a key: on or off.")
    remote_files: bool = setting(
        False, "Let owners touch files, folders and sync endpoints of this machine over HTTP: on or off."
    )
    token_issuer: str = setting("", "Issuer of bearer tokens (JWT) that are accepted beside keys.")
    token_audience: str = setting("", "Audience that those tokens must be for.")
    token_keys: str = setting("", "The issuer's public keys: a file with a JSON Web Key Set, or its https address.")
    log_format: str = setting("text", "How the log is written: text or json.")
    server_token: str = setting("", "A secret that stands for the owner's key over HTTP; set, every call needs a key.")
    log_level: str = setting("warning", "What goes to the log on stderr: debug, info, warning or error.")


# What the environment of another program says, honoured where its dialect is served and our own variable is not set.
FOREIGN: dict[str, dict[str, tuple[str, ...]]] = {
    "mama": {
        "store": ("MAMA_DB_PATH", "MAMA_DATABASE_PATH"),
        "port": ("MAMA_SERVER_PORT",),
        "server_token": ("MAMA_SERVER_TOKEN",),
    },
}

SWITCH = {"on": True, "true": True, "yes": True, "1": True, "off": False, "false": False, "no": False, "0": False}
CHOICES = {
    "model_pull": ("auto", "never"),
    "secrets": ("flag", "mask", "refuse", "off"),
    "instructions": ("flag", "refuse", "off"),
    "log_format": ("text", "json"),
    "category_mode": ("free", "strict"),
    "log_level": ("debug", "info", "warning", "error"),
}

DATABASE = "database"  # as a place for archived memories: the store itself, whatever it is
DAY = 86_400.0  # seconds
BOUNDS: dict[str, tuple[float, float]] = {  # of every number: from, to
    "pool_size": (1, 1_000),
    "statement_timeout": (0.001, DAY),
    "embed_wait": (0, DAY),
    "quota": (0, 2**53),
    "chat_timeout": (0.001, DAY),
    "archive_quota": (0, 2**53),
    "synthesis_wait": (0, DAY),
    "least_similarity": (0, 1),
    "port": (0, 65_535),
    "call_seconds": (0.001, DAY),
}


def environment_name(name: str) -> str:
    return f"SCRUBJAY_{name.upper()}"


def load(environ: Mapping[str, str] | None = None, *, dialects: Collection[str] = (), **flags: Any) -> Settings:
    """Gather the settings of this process, which serves these dialects.

    :raises InvalidInput: naming the setting and where its bad value came from
    """
    environ = os.environ if environ is None else environ
    given = {name: value for name, value in flags.items() if value is not None}
    home = expanded(given.get("home") or environ.get("SCRUBJAY_HOME") or data_folder(environ), field="home")
    config = read_config(home / "config.toml")
    values: dict[str, Any] = {}
    for entry in fields(Settings):
        name, variable = entry.name, environment_name(entry.name)
        if name in given:
            values[name] = converted(name, given[name], entry.default, f"--{name.replace('_', '-')}")
        elif environ.get(variable):
            values[name] = converted(name, environ[variable], entry.default, variable)
        elif (foreign := foreign_variable(name, environ, dialects)) is not None:
            value = store_address(os.path.expandvars(environ[foreign])) if name == "store" else environ[foreign]
            values[name] = converted(name, value, entry.default, foreign)
        elif name in config:
            values[name] = converted(name, config[name], entry.default, f"{name} in config.toml")
    values["home"] = home.absolute()
    values.setdefault("models", cache_folder(environ))
    if values.get("archive", DATABASE) != DATABASE:
        values["archive"] = str(expanded(values["archive"], field="archive").absolute())
    values.setdefault("stores", expanded(environ.get("CORTEX_DATA_PATH") or home, field="CORTEX_DATA_PATH").absolute())
    values.setdefault("store", store_address(values["home"] / "memories.db"))
    return Settings(**values)


def foreign_variable(name: str, environ: Mapping[str, str], dialects: Collection[str]) -> str | None:
    """The variable of another program that sets this setting, if one does."""
    known = (variable for dialect in dialects for variable in FOREIGN.get(dialect, {}).get(name, ()))
    return next((variable for variable in known if environ.get(variable)), None)


def converted(name: str, value: Any, default: Any, origin: str) -> Any:
    if isinstance(default, bool) and isinstance(value, str):
        if value.lower() not in SWITCH:
            raise InvalidInput(f"{origin} must be on or off.", field=name)
        return SWITCH[value.lower()]
    if name in BOUNDS:
        return number(name, value, default, origin)
    try:
        result = type(default)(value)
    except (TypeError, ValueError):
        raise InvalidInput(f"{origin} must be text.", field=name) from None
    if isinstance(result, Path):
        return expanded(result, field=origin).absolute()
    if name in CHOICES and result not in CHOICES[name]:
        raise InvalidInput(f"{origin} must be one of {', '.join(CHOICES[name])}.", field=name)
    return result


def number(name: str, value: Any, default: float, origin: str) -> float:
    kind = "whole number" if isinstance(default, int) else "number"
    least, most = BOUNDS[name]
    try:
        result = type(default)(str(value))  # by its text: neither 1.5 nor true is a whole number
    except ValueError:
        raise InvalidInput(f"{origin} must be a {kind}.", field=name) from None
    if not least <= result <= most:  # nor is NaN
        raise InvalidInput(f"{origin} must be a {kind} from {least:,g} to {most:,.15g}.", field=name)
    return result


def read_config(path: Path) -> dict[str, Any]:
    try:
        if not path.exists():
            return {}
    except OSError:  # not a file that is missing, but a folder that is not ours
        raise InvalidInput(
            "The home folder cannot be read.", hint="Check its permissions, or choose another."
        ) from None
    import tomllib  # most homes have no such file, and every editor window would pay for the import

    try:
        config = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"config.toml cannot be read: {error}.", hint="Mend it or move it away.") from None
    known = {entry.name for entry in fields(Settings)}
    unknown = sorted(set(config) - known)
    if unknown:
        raise InvalidInput(f"config.toml: {unknown[0]} is no setting.", hint="`scrubjay settings` lists them all.")
    return config


def data_folder(environ: Mapping[str, str]) -> Path:
    """Where a program keeps its data on this platform."""
    if sys.platform == "win32":
        return Path(environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "scrubjay"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "scrubjay"
    return Path(environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "scrubjay"


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Where a program keeps what it can fetch again."""
    if sys.platform == "win32":
        base = Path(environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "scrubjay" / "models"


def reference() -> str:
    """The page docs/reference/settings.md; `make docs` writes it, and a test holds it to the code."""
    lines = [
        "# Settings",
        "",
        "Flag > environment > `config.toml` in the home > default. `scrubjay settings` shows the values in force and",
        "where each comes from. This page is made from `settings.py` by `make docs`.",
        "",
        "| setting | environment | default | what it is |",
        "|---|---|---|---|",
    ]
    for entry in fields(Settings):
        default = "" if entry.default in (Path(), "") else f"`{entry.default}`"
        lines.append(f"| `{entry.name}` | `{environment_name(entry.name)}` | {default} | {entry.metadata['help']} |")
    return "\n".join([*lines, ""])
