"""Whatever arrives: a coded error or correct storage, nothing half-written, and the next call works.

hypothesis builds the arguments from each operation's own schema and then spoils them.
"""

from __future__ import annotations

import tracemalloc
from contextlib import chdir
from itertools import takewhile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scrubjay.dialects.base import Pieces, array, object_schema
from scrubjay.dialects.table import DIALECTS, ONLY_REST, find
from scrubjay.dialects.validation import Checker
from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.engine import Engine
from scrubjay.engine.parts import engine_on
from scrubjay.errors import InvalidInput
from scrubjay.folders.registry import Registry
from tests.conftest import sqlite_store

# A second name of an operation is left out: what it takes, gives and does is the same (tests/dialects/test_cortex.py).
OPERATIONS = [
    pytest.param(find(dialect), name, id=f"{dialect}-{name}")
    for dialect in [*DIALECTS, *ONLY_REST]
    for name in {operation.run: name for name, operation in reversed(find(dialect).operations.items())}.values()
]

STRANGE = [
    "", " ", "\x00", "a\x00b", "\ud800", "x\udfff", "\u200b", "﷽", "👩‍👩‍👧‍👦", "‮abc", "x" * 50_000, "x" * 50_001,
    "y" * 1_000_000, "'; DROP TABLE memories; --", '" OR 1=1 --', "<script>alert(1)</script>", "NEAR(a b)", '"', "*",
    "col:val", "../../../etc/passwd", "mem_000000000000", "%s%n", "${jndi:x}", "{{7*7}}", "\r\n\r\n", "NaN", "-1",
]  # fmt: skip
ODD_NUMBERS = [0, -1, 1, 2**31, 2**63, 2**64, 1e308, -0.0, 0.5, 1.0000001, float("inf"), float("nan")]

# Operations that may change the number of memories by more than one, and by how many with these arguments.
BULK = {
    ("system", "archive_memory"): lambda _: range(-10_000, 2),
    ("chimera", "batch_remember"): lambda arguments: [len(arguments["memories"])],
    ("chimera", "clear_conversation"): lambda _: range(-10_000, 1),
    ("native", "bulk_forget"): lambda _: range(-10_000, 1),
    ("native", "bulk_update"): lambda _: range(-10_000, 1),  # what is given an end in the past is no longer listed
    ("native", "undo_bulk"): lambda _: range(10_000),
    ("native", "prune"): lambda _: range(-10_000, 1),
    ("native", "import"): lambda arguments: range(len(arguments["lines"]) + 1),
}

# What another store sends whole, and lists whose length the System specification answers itself (413).
UNCOUNTED = {("native", "sync_take")}


def lists_in(schema, place="") -> dict[str, dict]:
    """Every list in arguments, by its place."""
    found = {place: schema} if schema.get("type") == "array" else {}
    for name, inner in schema.get("properties", {}).items():
        found |= lists_in(inner, f"{place}.{name}")
    return found | (lists_in(schema["items"], f"{place}[]") if isinstance(schema.get("items"), dict) else {})


@pytest.mark.parametrize(("dialect", "name"), OPERATIONS)
def test_no_list_of_arguments_may_be_of_any_length(dialect, name):
    operation = dialect.operations[name]
    if dialect.name == "system" or (dialect.name, name) in UNCOUNTED:
        return

    endless = [place for place, one in lists_in(operation.accepts or operation.takes).items() if "maxItems" not in one]

    assert endless == []


def test_checking_stops_at_the_first_finding():
    """Each finding is an object of its own: 400,000 of them took ten seconds."""
    checker = Checker(object_schema({"kinds": array({"enum": ["fact"]})}))

    def most_memory(count: int) -> int:
        arguments = {"kinds": ["nonsense"] * count}
        tracemalloc.start()
        with pytest.raises(InvalidInput, match=r"kinds\[0\] must be one of fact"):
            checker.check(arguments)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    most_memory(1)
    assert most_memory(20_000) < most_memory(1) + 20_000 * 50


plain_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.sampled_from(STRANGE),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def fitting(schema) -> st.SearchStrategy:
    """Values that roughly fit a schema."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kinds = schema.get("type", "string")
    kind = kinds[0] if isinstance(kinds, list) else kinds
    if kind == "object":
        return st.fixed_dictionaries(
            {}, optional={name: fitting(inner) for name, inner in schema.get("properties", {}).items()}
        )
    if kind == "array":
        return st.lists(fitting(schema.get("items", {})), max_size=5)
    return {
        "string": st.text(max_size=200) | st.sampled_from(STRANGE),
        "number": st.floats(schema.get("minimum"), schema.get("maximum")),
        "integer": st.integers(schema.get("minimum"), schema.get("maximum")),
        "boolean": st.booleans(),
    }[kind]


def spoilt(schema) -> st.SearchStrategy:
    """Arguments as a confused client would send them."""
    required = {name: fitting(schema["properties"][name]) for name in schema.get("required", ())}
    parts = st.tuples(
        fitting(schema),
        st.fixed_dictionaries({}, optional=required),
        st.booleans(),
        st.sampled_from(sorted(schema["properties"]) or ["nothing"]),
        plain_json | st.sampled_from(ODD_NUMBERS),
        st.integers(0, 4),
        st.text(max_size=10),
    )
    return parts.map(lambda drawn: assembled(*drawn)) | plain_json


def assembled(fits, required, spoil, name, wrong, odds, unknown):
    arguments = {**fits, **required}
    if spoil:
        arguments[name] = wrong
    if odds == 0:
        arguments[unknown] = wrong
    return arguments


@pytest.fixture(scope="module")
def jay(tmp_path_factory) -> Engine:
    """An engine that was started in an empty folder, which has to stay so: arguments are also names of files."""
    home = Path(tmp_path_factory.mktemp("bad"))
    registry = Registry(home, home, walk_seconds=0)
    with (
        chdir(tmp_path_factory.mktemp("started")),
        engine_on(sqlite_store(home / "memories.db"), HashingEmbedder(), registry=registry) as engine,
    ):
        yield engine


@pytest.mark.parametrize(("dialect", "name"), OPERATIONS)
def test_any_arguments_get_an_answer_inside_the_schema(jay, dialect, name, pytestconfig):
    """The same arguments each time; others, and more of them, in the long run."""
    check_calls(jay, dialect, name, max_examples=6 if pytestconfig.getoption("quick") else 20, derandomize=True)


@pytest.mark.long
@pytest.mark.parametrize(("dialect", "name"), OPERATIONS)
def test_any_arguments_get_an_answer_inside_the_schema_at_length(jay, dialect, name):
    check_calls(jay, dialect, name, max_examples=500)


def check_calls(jay, dialect, name, **options):
    operation = dialect.operations[name]
    checker = Checker(operation.gives)
    changed = BULK.get((dialect.name, name), lambda _: (-1, 0, 1))
    before = counted(jay)

    @settings(deadline=None, database=None, suppress_health_check=list(HealthCheck), **options)
    @given(spoilt(operation.takes))
    def one_call(arguments):
        nonlocal before
        reply = dialect.call(jay, name, arguments)

        for body in bodies(reply):
            checker.check(body)
        assert reply.text.encode("utf-8")
        after = counted(jay)
        difference, before = after - before, after
        assert difference in ([0] if reply.failed or not operation.changes else changed(arguments))

    one_call()
    assert list(Path.cwd().iterdir()) == []


def counted(jay):
    return jay.list(limit=1, counted=True).total


def bodies(reply):
    """The body; of a stream what its last piece says. One that waits for news has said all there is: it never ends."""
    if reply.stream is None:
        return [reply.body]
    said = [*takewhile(lambda piece: piece is not None, reply.stream.pieces)][-1:]
    return [piece["data"] for piece in said] if reply.stream.kind is Pieces.EVENTS else said


STORES = {
    "scrubjay.remember": lambda text: {"facts": [{"content": text}]},
    "memento.store_memory": lambda text: {"content": text},
    "system.store_memory": lambda text: {"content": text},
    "chimera.remember": lambda text: {"content": text},
    "mama.save": lambda text: {"type": "decision", "topic": "pier", "decision": text, "reasoning": "It opens."},
    "cortex.add_memory": lambda text: {"store": "default", "path": "a/b", "content": text},
    "native.store_memory": lambda text: {"content": text},
}


@pytest.mark.parametrize("text", ["\x00", "\u200b", "\u200b \ufeff"], ids=ascii)
@pytest.mark.parametrize("name", STORES)
def test_a_text_in_which_nothing_is_to_be_seen_is_refused_as_an_empty_one(jay, name, text):
    dialect, _, operation = name.partition(".")

    before = counted(jay)

    blank, unseen = (find(dialect).call(jay, operation, STORES[name](one)) for one in ("  ", text))

    assert blank.failed
    assert timeless(unseen.body) == timeless(blank.body)
    assert counted(jay) == before


def timeless(body):
    """A reply's body without the time at which it was made."""
    if isinstance(body, dict):
        return {name: timeless(value) for name, value in body.items() if name != "timestamp"}
    return body


@pytest.mark.parametrize("text", STRANGE, ids=ascii)
def test_strange_text_is_refused_or_kept_byte_for_byte(jay, text):
    reply = find("memento").call(jay, "store_memory", {"content": text})

    visible = text.strip("\x00\u200b \r\n")
    keepable = visible and len(text) <= 50_000 and not any("\ud800" <= character <= "\udfff" for character in text)
    assert reply.failed is not bool(keepable)
    if keepable:
        assert reply.body["created"]["content"] == text
        assert jay.get(reply.body["created"]["id"]).content == text
