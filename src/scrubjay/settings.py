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
from scrubjay.lazy import tomllib
from scrubjay.machine.paths import expand_home, store_address
from scrubjay.values.frozen import dataclass
from scrubjay.values.spelling import nearest


def setting(default: Any, help: str) -> Any:
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How one process runs."""

    home: Path = setting(Path(), "Folder for the store, settings and archives. Default: the platform's data folder.")
    store: str = setting(
        "", "Where memories are kept: sqlite:///FILE, a full path, or postgresql://…. Default: memories.db in the home."
    )
    replica: str = setting("", "PostgreSQL: the address of a replica that answers searches by words and by meaning.")
    pool_size: int = setting(10, "PostgreSQL: maximum number of connections per process.")
    statement_timeout: float = setting(20.0, "PostgreSQL: statement timeout, in seconds.")
    embedder: str = setting(
        "arctic-embed-s",
        "Embedding model: a name from the catalogue, folder:PATH, remote, none, or hashing (for tests).",
    )
    remote_url: str = setting("", "With embedder=remote: an OpenAI-compatible endpoint, including /v1.")
    remote_model: str = setting("", "With embedder=remote: the model name to send.")
    remote_key: str = setting("", "With embedder=remote: the API key, if it needs one.")
    models: Path = setting(Path(), "Folder for model files, shared by all homes. Default: the user's cache folder.")
    model_pull: str = setting("auto", "Download a missing model in the background: auto or never.")
    languages: str = setting(
        "auto",
        "A further model, for other languages than English: auto (once such a text is stored), on or off.",
    )
    lend_model: bool = setting(
        True,
        "Let this user's processes on one home share one loaded model, over a socket in the home: on or off.",
    )
    space: str = setting(
        "",
        "The space that is written to, and the first among those that are read; auto names it after the current "
        "repository. Default: auto on the command line, default for servers.",
    )
    only: bool = setting(False, "Read only that space, instead of every space the caller may see: on or off.")
    user: str = setting("local", "The user whose memories the local owner writes.")
    embed_wait: float = setting(
        2.0, "Seconds a server waits for the loaded embedding model before a call goes on with words only."
    )
    judge_wait: float = setting(
        100.0,
        "Milliseconds a server may spend on what a store outdates before that is left to the background; 0: no limit.",
    )
    strict_embedding: bool = setting(
        False, "Fail stores and searches when the model is unavailable, instead of using words only: on or off."
    )
    stores: Path = setting(
        Path(), "Folder of stores.yaml, the list of stores. Default: CORTEX_DATA_PATH, else the home."
    )
    auto_register: bool = setting(
        True, "Create a store with its first memory; off allows only listed stores: on or off."
    )
    category_mode: str = setting(
        "free", "Whether a category is created when first used or must already exist: free or strict."
    )
    also_by_client: bool = setting(
        False, "Ask a client's own model (MCP sampling) for phrases when `remember` is given none: on or off."
    )
    also: bool = setting(
        True, "Let tools offer other words for what is stored or asked (also): on or off; not in config.toml."
    )
    quota: int = setting(0, "Maximum number of memories per user and space; 0 means no limit.")
    secrets: str = setting(
        "flag", "What happens to text that contains a secret: flag, mask (store it without the secret), refuse or off."
    )
    instructions: str = setting(
        "flag", "What happens to text that reads like instructions to a model: flag, refuse or off."
    )
    chat_url: str = setting(
        "", "Address of the language model that answers in conversations, e.g. http://127.0.0.1:11434/v1."
    )
    chat_model: str = setting("", "Name of that model.")
    chat_key: str = setting("", "API key for that model; never shown.")
    chat_timeout: float = setting(60.0, "Seconds without output from the model before giving up.")
    archive: str = setting(
        "",
        "Where memories in glacier and deep_archive are kept: database, or a folder (a full path; servers on one "
        "database must share it). Default: database with PostgreSQL, else archive in the home.",
    )
    archive_quota: int = setting(0, "Maximum total size of archived memories, in bytes; 0 means no limit.")
    prices: str = setting("", "Storage prices for archive replies, e.g. hot=0.25 glacier=0.004 glacier.out=0.03.")
    synthesis_url: str = setting(
        "", "Address of an OpenAI-compatible model that writes consolidated memories, including /v1."
    )
    synthesis_model: str = setting("", "Name of that model.")
    synthesis_key: str = setting("", "API key for that address, if it needs one.")
    synthesis_wait: float = setting(60.0, "Seconds a consolidation waits for that model.")
    least_similarity: float = setting(0.3, "Minimum average similarity of memories to be consolidated, from 0 to 1.")
    sync: str = setting("", "Stores to sync with, in addition to `scrubjay sync add`: NAME=URL, separated by spaces.")
    sync_key: str = setting("", "Keys for those that are scrubjay servers: NAME=KEY, separated by spaces; never shown.")
    sync_private: bool = setting(
        False, "Allow syncing with servers on this machine and in private networks: on or off."
    )
    host: str = setting("127.0.0.1", "Address that the HTTP server listens on.")
    port: int = setting(8377, "Port that the HTTP server listens on.")
    workers: str = setting(
        "1", "Processes that serve the HTTP server's port together: a number, or auto for one per core."
    )
    allowed_hosts: str = setting("", "Additional host names that the HTTP server answers to, comma-separated.")
    origins: str = setting(
        "", "Other origins whose pages may use the HTTP server, e.g. https://app.example, comma-separated."
    )
    proxies: str = setting(
        "", "Addresses or networks of reverse proxies whose X-Forwarded-* headers are trusted, comma-separated."
    )
    call_seconds: float = setting(60.0, "Time limit for a call over HTTP, in seconds.")
    limits: bool = setting(
        False, "Apply rate limits to the local owner too, not only to callers with a key: on or off."
    )
    remote_files: bool = setting(
        False, "Let owners use this machine's files, folders and sync endpoints over HTTP: on or off."
    )
    token_issuer: str = setting("", "Issuer of bearer tokens (JWT) that are accepted in addition to keys.")
    token_audience: str = setting("", "Audience that those tokens must have.")
    token_keys: str = setting("", "The issuer's public keys: a file with a JSON Web Key Set, or its https address.")
    log_format: str = setting("text", "How the log is written: text or json.")
    server_token: str = setting("", "A secret that works as the owner's key over HTTP; if set, every call needs a key.")
    log_level: str = setting("warning", "What goes to the log on stderr: debug, info, warning or error.")


# Variables of other programs, honoured where their dialect is served and our own variable is not set.
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
    "languages": ("auto", "on", "off"),
    "secrets": ("flag", "mask", "refuse", "off"),
    "instructions": ("flag", "refuse", "off"),
    "log_format": ("text", "json"),
    "category_mode": ("free", "strict"),
    "log_level": ("debug", "info", "warning", "error"),
}

AUTO = "auto"  # as a space: that of the current project
DATABASE = "database"  # as a place for archived memories: the store itself, whatever it is
DAY = 86_400.0  # seconds
BOUNDS: dict[str, tuple[float, float]] = {  # of every number: from, to
    "pool_size": (1, 1_000),
    "statement_timeout": (0.001, DAY),
    "embed_wait": (0, DAY),
    "judge_wait": (0, DAY),
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


def unknown_variables() -> dict[str, str | None]:
    """The variables of the environment that are named like a setting and are none, each with the one probably meant."""
    known = [entry.name for entry in fields(Settings)]
    allowed = {environment_name(name) for name in (*known, "key")}  # an installed client's key for a server
    start = environment_name("")
    written = sorted(name for name, value in os.environ.items() if name.startswith(start) and value)
    meant = {name: nearest(name.removeprefix(start).lower(), known) for name in written if name not in allowed}
    return {name: environment_name(one) if one else None for name, one in meant.items()}


def load(environ: Mapping[str, str] | None = None, *, dialects: Collection[str] = (), **flags: Any) -> Settings:
    """Gather the settings of this process, which serves these dialects.

    :raises InvalidInput: naming the setting and where its bad value came from
    """
    environ = os.environ if environ is None else environ
    given = {name: value for name, value in flags.items() if value is not None}
    home = expand_home(given.get("home") or environ.get("SCRUBJAY_HOME") or data_folder(environ), field="home")
    config = read_config(home / "config.toml")
    values: dict[str, Any] = {}
    for entry in fields(Settings):
        name, variable = entry.name, environment_name(entry.name)
        if name in given:
            values[name] = convert_value(name, given[name], entry.default, f"--{name.replace('_', '-')}")
        elif environ.get(variable):
            values[name] = convert_value(name, environ[variable], entry.default, variable)
        elif (foreign := foreign_variable(name, environ, dialects)) is not None:
            value = store_address(os.path.expandvars(environ[foreign])) if name == "store" else environ[foreign]
            values[name] = convert_value(name, value, entry.default, foreign)
        elif name in config:
            if name == "also":  # read before any file is: see servers/stdio/profile.py
                raise InvalidInput("also cannot be set in config.toml.", hint="Set SCRUBJAY_ALSO=off.", field="also")
            values[name] = convert_value(name, config[name], entry.default, f"{name} in config.toml")
    values["home"] = home.absolute()
    values.setdefault("models", cache_folder(environ))
    if values.get("archive", DATABASE) != DATABASE:
        values["archive"] = str(expand_home(values["archive"], field="archive").absolute())
    values.setdefault(
        "stores", expand_home(environ.get("CORTEX_DATA_PATH") or home, field="CORTEX_DATA_PATH").absolute()
    )
    values.setdefault("store", store_address(values["home"] / "memories.db"))
    return Settings(**values)


def foreign_variable(name: str, environ: Mapping[str, str], dialects: Collection[str]) -> str | None:
    """The variable of another program that sets this setting, if one does."""
    known = (variable for dialect in dialects for variable in FOREIGN.get(dialect, {}).get(name, ()))
    return next((variable for variable in known if environ.get(variable)), None)


def convert_value(name: str, value: Any, default: Any, origin: str) -> Any:
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
        return expand_home(result, field=origin).absolute()
    if name in CHOICES and result not in CHOICES[name]:
        raise InvalidInput(f"{origin} must be one of {', '.join(CHOICES[name])}.", field=name)
    return result


def number(name: str, value: Any, default: float, origin: str) -> float:
    kind = "whole number" if isinstance(default, int) else "number"
    least, most = BOUNDS[name]
    try:
        result = type(default)(str(value))  # from its text: neither 1.5 nor true is a whole number
    except ValueError:
        raise InvalidInput(f"{origin} must be a {kind}.", field=name) from None
    if not least <= result <= most:  # nor is NaN
        raise InvalidInput(f"{origin} must be a {kind} from {least:,g} to {most:,.15g}.", field=name)
    return result


def read_config(path: Path) -> dict[str, Any]:
    try:
        if not path.exists():
            return {}
    except OSError:  # not a missing file, but a folder we may not read
        raise InvalidInput(
            "The home folder cannot be read.", hint="Check its permissions, or choose another."
        ) from None

    try:
        config = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(f"config.toml cannot be read: {error}.", hint="Fix or remove it.") from None
    known = {entry.name for entry in fields(Settings)}
    unknown = sorted(set(config) - known)
    if unknown:
        raise InvalidInput(
            f"config.toml: unknown setting {unknown[0]}.", hint="`scrubjay settings` lists all settings."
        )
    return config


def data_folder(environ: Mapping[str, str]) -> Path:
    """Where a program keeps its data on this platform."""
    return _platform_folder(environ, "Application Support", "XDG_DATA_HOME", ".local/share") / "scrubjay"


def state_folder(environ: Mapping[str, str]) -> Path:
    """Where a program keeps what it may lose, such as the last list."""
    if sys.platform in ("win32", "darwin"):
        return data_folder(environ)
    return Path(environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "scrubjay"


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Where a program keeps what it can fetch again."""
    return _platform_folder(environ, "Caches", "XDG_CACHE_HOME", ".cache") / "scrubjay" / "models"


def _platform_folder(environ: Mapping[str, str], library: str, variable: str, usual: str) -> Path:
    if sys.platform == "win32":
        return Path(environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / library
    return Path(environ.get(variable) or Path.home() / usual)


def reference() -> str:
    """The page docs/reference/settings.md; `make docs` writes it, and a test checks that it is up to date."""
    lines = [
        "# Settings",
        "",
        "Flag > environment > `config.toml` in the home > default. `scrubjay settings` shows the values in force and",
        "where each comes from. This page is generated from `settings.py` by `make docs`.",
        "",
        "| setting | environment | default | what it is |",
        "|---|---|---|---|",
    ]
    for entry in fields(Settings):
        default = "" if entry.default in (Path(), "") else f"`{entry.default}`"
        lines.append(f"| `{entry.name}` | `{environment_name(entry.name)}` | {default} | {entry.metadata['help']} |")
    return "\n".join([*lines, ""])
