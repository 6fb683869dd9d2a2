"""With secrets masked, a token in any argument of any operation reaches neither the store nor a file."""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping
from pathlib import Path
from zlib import crc32

import pytest

from scrubjay.archives.folder import FolderObjects
from scrubjay.dialects.table import DIALECTS, ONLY_REST, find
from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.access import EVERYTHING
from scrubjay.engine.parts import engine_on
from scrubjay.errors import Unprocessable
from scrubjay.folders.registry import Registry
from scrubjay.values.callers import Provenance
from scrubjay.values.search import Filter
from scrubjay.wiring import open_peer
from tests.conftest import sqlite_store
from tests.text.secret_forms import made

LOWER = string.ascii_lowercase + string.digits

# What they are called by where something is named that has to be there.
KNOWN = {
    "conversation_id": "talk", "session_id": "sitting", "store": "docs", "store_name": "docs", "user_id": "local",
    "workspace_id": "default", "tier": "cold", "since": "2020-01-01T00:00:00Z", "until": "2030-01-01T00:00:00Z",
    "outcome": "success",
    "source": "notes/one", "from_path": "notes/one", "source_path": "notes/one",
}  # fmt: skip
TIMES = ("_at", "_since", "_until", "_from", "_after", "_before", "valid_until", "start_time", "end_time")
IDS = ("memory_id", "id", "ids", "memory_ids", "old", "new", "old_id", "new_id", "source_id", "target_id",
       "decision_id", "memory", "memories", "old_memory_id", "new_memory_id", "memoryId")  # fmt: skip
# What an operation wants beside what its schema requires.
ALSO = {
    "revise": {"content": "The harbour closes at nine"},
    "update_memory": {"content": "The harbour closes at nine"},
    "settle": {"relation": "replaces"},
    "save": {"type": "decision", "topic": "ferries", "decision": "Two a day", "reasoning": "Few come"},
    **{
        f"save {name}": {"type": "checkpoint", "summary": "At the pier"}
        for name in ("summary", "next_steps", "open_files")
    },
    "update_outcome": {"outcome": "success", "id": "{decision}"},
    "update": {"outcome": "success", "id": "{decision}"},
    **{
        f"{prefix}move_memory{where}": also
        for prefix in ("", "cortex_")
        for where, also in {
            "": {"from_path": "notes/one", "to_path": "notes/{}"},
            " destination": {"from_path": "notes/one"},
            " destination_path": {"from_path": "notes/one"},
            " source": {"to_path": "notes/{}"},
            " source_path": {"to_path": "notes/{}"},
        }.items()
    },
    "archive_memory reason": {"memory_id": "{old}"},
    "restore_memory reason": {"memory_id": "{old}"},
    "add_memory": {"path": "notes/{}"},
    "cortex_add_memory": {"path": "notes/{}"},
    "create_store": {"name": "store-{}"},
    "cortex_create_store": {"name": "store-{}"},
    "create_workspace": {"name": "Workspace {}"},
}


KINDS = {"next_steps": "checkpoint", "reasoning": "decision"}  # what a fact has to be to have one


@pytest.fixture
def home(tmp_path) -> Path:
    return tmp_path


def opened(home, secrets):
    registry = Registry(home, home, walk_seconds=0)
    return engine_on(
        sqlite_store(home / "memories.db"),
        HashingEmbedder(),
        registry=registry,
        secrets=secrets,
        archive=FolderObjects(home / "archive"),
        wait_seconds=60.0,
        connect=lambda endpoint, create: open_peer(endpoint, create=create, user="local"),
    )


class Caller:
    """Calls each operation with one token after another, each in one place and nowhere else."""

    def __init__(self, engine) -> None:
        self.engine = engine
        self.tokens: dict[str, str] = {}
        self.accepted: set[str] = set()
        self.tried: set[str] = set()

    def prepare(self) -> None:
        self.engine.folders.create("docs", description="The docs")
        self.engine.conversations.create("talk")
        self.renew()

    def renew(self) -> None:
        self.ids = [self.engine.store(f"Berth {len(self.tokens)} of pier {n} is free").memory.id for n in "ab"]
        self.decision = self.engine.decisions.save("ferries", f"Boat {len(self.tokens)} goes first").memory.id
        docs = self.engine.bound_to(spaces=("docs",))
        if docs.records.files.at_path("docs", "notes/one", EVERYTHING) is None:
            docs.store("The first note", path="notes/one")

    def call_everything(self, dialect) -> None:
        for name, operation in dialect.operations.items():
            schema = operation.accepts or operation.takes
            self.renew()
            for place in places(schema):
                for form in ("{}", "About {} here", "notes/{}"):
                    self.try_one(dialect, name, operation, schema, place, form)
            if operation.changes:
                token = self.token(f"{dialect.name}.{name} key")
                dialect.call(self.engine, name, self.arguments(name, schema, None, ""), key=f"key {token}")

    def try_one(self, dialect, name, operation, schema, place, form) -> None:
        where = f"{dialect.name}.{name} {place} {form}"
        if operation.destructive or "move" in name:
            self.renew()
        arguments = self.arguments(name, schema, place, form.format(self.token(where)))
        reply = dialect.call(self.engine, name, arguments, provenance=Provenance(client="tests"))
        if reply.stream is not None:
            next(iter(reply.stream.pieces), None)
        self.tried.add(f"{dialect.name}.{name} {place}")
        if not reply.failed:
            self.accepted.add(f"{dialect.name}.{name} {place}")

    def token(self, where: str) -> str:
        self.tokens[where] = f"sk-{made(40, LOWER, seed=where)}"  # also a path or a name may be called so
        return self.tokens[where]

    def arguments(self, name, schema, place, text):
        field = [step for step in place or ("",) if step != "[]"][-1]
        also = ALSO.get(f"{name} {field}", ALSO.get(name, {}))
        also = {
            key: value.format(len(self.tokens), decision=self.decision, old=self.ids[0])
            for key, value in also.items()
            if not place or place[0] != key
        }
        made_up = value_of(schema, "", place, text, self.ids)
        for fact in made_up.get("facts", ()) if name == "remember" else ():
            fact.update({"kind": KINDS[place[-1]]} if place and place[-1] in KINDS else {})
        return made_up | also


def places(schema, path=()) -> Iterator[tuple[str, ...]]:
    """The paths of all texts in a schema, those of free objects included."""
    schema = alternative(schema)
    kind = kind_of(schema)
    if kind == "object":
        for name, inner in schema.get("properties", {}).items():
            yield from places(inner, (*path, name))
        if path and not schema.get("properties"):
            yield from ((*path, "note"), (*path, "password"), (*path, "*"))
    elif kind == "array":
        yield from places(schema.get("items", {}), (*path, "[]"))
    elif kind == "string" and "enum" not in schema and "const" not in schema:
        yield path


def alternative(schema) -> Mapping:
    for several in ("anyOf", "oneOf"):
        if several in schema and "type" not in schema:
            return alternative(next(one for one in schema[several] if one.get("type") != "null"))
    return schema


def kind_of(schema) -> str:
    kinds = schema.get("type", "object" if "properties" in schema else "string")
    return kinds if isinstance(kinds, str) else next(kind for kind in kinds if kind != "null")


def value_of(schema, name, place, text, ids):
    schema = alternative(schema)
    if place == ():
        return text
    if "enum" in schema or "const" in schema:
        return schema.get("enum", [schema.get("const")])[0]
    kind = kind_of(schema)
    if kind == "object":
        step, rest = (place[0], place[1:]) if place else (None, None)
        properties = schema.get("properties", {})
        made_up = {
            key: value_of(inner, key, rest if key == step else None, text, ids)
            for key, inner in properties.items()
            if key == step or key in schema.get("required", ())
        }
        if not properties and step is not None:
            made_up[text if step == "*" else step] = text
        return made_up
    if kind == "array":
        inner = schema.get("items", {})
        if name in IDS and kind_of(alternative(inner)) == "string" and place is None:
            return ids
        return [value_of(inner, name, place[1:] if place else None, text, ids)]
    if kind == "string":
        if name in IDS:
            return ids[1] if name.startswith(("new", "target", "to")) else ids[0]
        if name.endswith(TIMES):
            return "2030-01-01T00:00:00Z"
        return KNOWN.get(name, "notes/one" if "path" in name else f"{name} {crc32(text.encode())}")
    return {"integer": max(1, schema.get("minimum", 1)), "number": 0.5, "boolean": True}[kind]


def lying(home: Path, tokens: Mapping[str, str]) -> list[str]:
    """Where tokens were given that are anywhere below this folder, in a file or in a file's name."""
    kept = b"\n".join(
        [path.read_bytes() for path in home.rglob("*") if path.is_file()]
        + [str(path).encode() for path in home.rglob("*")]
    )
    return [where for where, token in tokens.items() if token.encode() in kept]


@pytest.mark.parametrize("dialect", [*DIALECTS, *ONLY_REST])
@pytest.mark.parametrize("secrets", ["mask", "refuse"])
def test_no_token_in_any_argument_is_kept(home, dialect, secrets, monkeypatch):
    monkeypatch.chdir(home)
    engine = opened(home, secrets)
    caller = Caller(engine)
    caller.prepare()

    caller.call_everything(find(dialect))
    engine.parts.backlog.wake()

    assert lying(home, caller.tokens) == []  # with its log
    engine.close()
    assert lying(home, caller.tokens) == []
    assert secrets == "refuse" or 4 * len(caller.accepted) > len(caller.tried)  # or it shows nothing


def test_the_same_calls_leave_tokens_where_secrets_are_only_flagged(home, monkeypatch):
    """So that the test above shows something."""
    monkeypatch.chdir(home)
    caller = Caller(opened(home, "flag"))
    caller.prepare()

    caller.call_everything(find("mama"))

    assert len(lying(home, caller.tokens)) > 20
    caller.engine.close()


# --- other ways in ---------------------------------------------------------------------------------------------------

TOKEN = f"ghp_{made(36, seed='token')}"


@pytest.mark.parametrize("secrets", ["mask", "refuse"])
def test_what_another_store_sends_is_masked(home, secrets):
    theirs = engine_on(sqlite_store(home / "theirs.db"), HashingEmbedder())
    sent = theirs.store(f"Deploy with {TOKEN}", tags=[f"tag {TOKEN}"], topic=f"ci {TOKEN}").memory
    theirs.close()
    (home / "mine").mkdir()
    mine = opened(home / "mine", secrets)
    mine.sync.add("theirs", home / "theirs.db")

    mine.sync.run(source="theirs", destination="local")

    assert mine.get(sent.id).content == "Deploy with [masked: a GitHub token]"
    assert mine.get(sent.id).flags == ("secret",)
    mine.close()
    assert lying(home / "mine", {"sync": TOKEN}) == []


def test_an_import_and_a_file_that_is_edited_are_masked(home):
    jay = opened(home, "mask")
    jay.folders.create("docs")
    docs = jay.bound_to(spaces=("docs",))
    find("cortex").call(jay, "add_memory", {"store": "docs", "path": "notes/one", "content": "The first note"})
    [file] = home.rglob("one.md")
    file.write_text(file.read_text() + f"\nThe password: {TOKEN}\n")
    docs.list()
    [line] = [line for line in docs.transfer.export() if line["type"] == "memory" and "first" in line["content"]]
    jay.transfer.import_from([{**line, "id": "mem_imported0000", "path": "notes/two", "content": f"It is {TOKEN}"}])

    assert jay.get("mem_imported0000").content == "It is [masked: a GitHub token]"
    assert TOKEN not in docs.paths.get("docs", "notes/one").content
    jay.close()
    left = lying(home, {"import": TOKEN})
    assert left == [] or file.read_text().count(TOKEN)  # what a person wrote into a file of theirs stays there
    assert TOKEN.encode() not in (home / "memories.db").read_bytes()


@pytest.mark.parametrize("secrets", ["mask", "refuse"])
def test_what_was_stored_before_can_still_be_changed_and_forgotten(home, secrets):
    before = opened(home, "flag")
    kept = before.store(f"Deploy with {TOKEN}").memory
    before.close()
    jay = opened(home, secrets)

    changed = jay.update(kept.id, importance=0.9)
    jay.forget(kept.id)

    assert changed.content == f"Deploy with {TOKEN}"
    assert jay.get(kept.id, deleted=True).flags == ("secret",)
    jay.close()


def test_two_names_that_hold_different_secrets_stay_two(home):
    jay = opened(home, "mask")
    one, other = (f"ci ghp_{made(36, seed=seed)}" for seed in "ab")
    first = jay.decisions.save(one, "Nightly").memory
    second = jay.decisions.save(other, "Weekly").memory
    again = jay.decisions.save(one, "Hourly").memory

    assert jay.get(first.id).superseded_by == again.id
    assert jay.get(second.id).superseded_by is None
    jay.close()


@pytest.mark.parametrize("secrets", ["mask", "refuse"])
def test_a_space_is_not_called_like_a_secret(home, secrets):
    jay = opened(home, secrets)

    with pytest.raises(Unprocessable):
        jay.folders.create(f"key-{made(32, '0123456789abcdef')}")
    jay.close()


def test_either_backend_masks_and_gives_a_flagged_memory_only_to_whoever_asks(open_engine):
    jay = open_engine(secrets="mask")
    jay.store("The Kubernetes ingress is nginx")
    jay.conversations.create("talk", title=f"About {TOKEN}")
    secret = jay.store(f"Our GitHub token is {TOKEN}", tags=["ci"]).memory
    memento = find("memento")

    found = memento.call(jay, "search_memories", {"query": "What is our Kubernetes version?"}).body["memories"]

    assert TOKEN not in f"{jay.conversations.get('talk')}{jay.get(secret.id)}"
    assert [one["content"] for one in found] == ["The Kubernetes ingress is nginx"]
    assert [memory.id for memory in jay.list(Filter(flag="secret"))] == [secret.id]
