"""What a store promises, as tests. A backend subclasses `StoreContract` and provides two fixtures:

    store    an empty store
    reopen   a function that closes it and opens it again

The words are those of `base.py`; both change together.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scrubjay.embedders.base import Vector
from scrubjay.errors import Conflict, NotFound, SpaceNotFound, StorageError, Unprocessable
from scrubjay.memory import (
    AccessLevel,
    Archive,
    Audience,
    Caller,
    Category,
    Context,
    Conversation,
    Deed,
    Event,
    Filter,
    Injection,
    Job,
    JobStatus,
    Kind,
    Link,
    LinkKind,
    Memory,
    Message,
    Order,
    Provenance,
    Recall,
    Role,
    Scope,
    Sight,
    Source,
    Speaker,
    State,
    Status,
    Tier,
    new_id,
)
from scrubjay.stores.base import (
    Activity,
    Change,
    Level,
    Of,
    Part,
    Position,
    Request,
    Store,
    Totals,
    Transaction,
    milliseconds,
)
from scrubjay.stores.contract_callers import CallersContract
from scrubjay.stores.replication import Endpoint, Erased, Heard, Replica, Stamp, SyncConflict

NOW = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
EVERYTHING = Audience("local", (Scope(None, Sight.ALL),))
NOTHING = Audience("local", ())
EVERY_STATE = frozenset(State)
DIMENSION = 16

Reopen = Callable[[], Store]


def later(minutes: float) -> datetime:
    return NOW + timedelta(minutes=minutes)


def some(content: str = "User lives in Seattle", **fields: Any) -> Memory:
    """A memory like many; what matters to a test is named there."""
    name = fields.pop("id", None) or new_id()
    at = fields.get("created_at", NOW)
    usual: dict[str, Any] = {
        "id": name,
        "space": "default",
        "title": content[:40],
        "path": f"inbox/{name}",
        "category": Category.FACT,
        "importance": 0.5,
        "created_at": at,
        "updated_at": at,
        "accessed_at": at,
    }
    return Memory(content=content, **usual | fields)


def unit(seed: int) -> Vector:
    vector = np.random.default_rng(seed).standard_normal(DIMENSION).astype(np.float32)
    return vector / np.linalg.norm(vector)


def at_cosine(cosine: float) -> Vector:
    """A vector at this cosine to `QUERY`."""
    vector = np.zeros(DIMENSION, np.float32)
    vector[0], vector[1] = cosine, (1 - cosine**2) ** 0.5
    return vector


QUERY = at_cosine(1.0)


def put_in(
    tx: Transaction, memory: Memory, vectors: Sequence[Vector] | None = (QUERY,), parts: int | None = None
) -> Memory:
    return tx.put(
        memory,
        fingerprint=memory.content.encode()[:32],
        vectors=vectors,
        parts=len(vectors or ()) if parts is None else parts,
        change=Change(user="ann", at=memory.updated_at, reason="because"),
    )


def put(store: Store, memory: Memory, vectors: Sequence[Vector] | None = (QUERY,), parts: int | None = None) -> Memory:
    with store.writing() as tx:
        return put_in(tx, memory, vectors, parts)


def put_all(store: Store, memories: Iterable[Memory], vectors: Sequence[Vector] = (QUERY,)) -> list[Memory]:
    with store.writing() as tx:
        return [put_in(tx, memory, vectors) for memory in memories]


def changed(store: Store, memory: Memory, **fields: Any) -> Memory:
    """The next version, text unchanged."""
    return put(store, replace(memory, version=memory.version + 1, **fields), None)


def ids(found: Iterable[Any]) -> list[str]:
    return [getattr(one, "memory", None) or one.id for one in found]


def ids_of(memories: Iterable[Memory]) -> list[str]:
    return [memory.id for memory in memories]


def got(store: Store, id: str) -> Memory:
    [memory] = store.get([id], EVERYTHING)
    return memory


def listed(store: Store, filter: Filter = Filter(), **options: Any) -> list[str]:  # noqa: B008 -- frozen
    return ids(store.list(filter, EVERYTHING, now=NOW, **options))


def matched(store: Store, text: str, filter: Filter = Filter(), limit: int = 100) -> list[str]:  # noqa: B008 -- frozen
    return ids(store.match(text, filter, EVERYTHING, now=NOW, limit=limit))


def nearest(store: Store, filter: Filter = Filter(), limit: int = 100) -> list[str]:  # noqa: B008 -- frozen
    return ids(store.nearest(QUERY, filter, EVERYTHING, now=NOW, limit=limit))


def an_event(**fields: Any) -> Event:
    usual: dict[str, Any] = {"space": "default", "at": NOW, "action": "stored", "user": "ann"}
    return Event(**usual | fields)


def a_link(source: str, target: str, **fields: Any) -> Link:
    usual: dict[str, Any] = {"kind": LinkKind.RELATED, "created_at": NOW}
    return Link(source=source, target=target, **usual | fields)


def relate(store: Store, *links: Link) -> None:
    with store.writing() as tx:
        for link in links:
            tx.relate(link)


def a_request(**fields: Any) -> Request:
    usual: dict[str, Any] = {"caller": "ann", "key": "k", "operation": "store_memory", "arguments": b"\1" * 32}
    return Request(**usual | fields)


def keep(
    store: Store, request: Request, result: str = "{}", *, memories: Sequence[str] = (), at: datetime = NOW
) -> None:
    with store.writing() as tx:
        tx.keep_result(request, result, memories=memories, at=at)


def kept(store: Store, request: Request, *, now: datetime = NOW) -> str | None:
    with store.writing() as tx:
        return tx.result_of(request, now=now)


def purge(store: Store, id: str) -> None:
    with store.writing() as tx:
        tx.purge(id, at=NOW)


def totals(store: Store, part: Part = Part(), audience: Audience = EVERYTHING) -> Totals:  # noqa: B008 -- frozen
    return store.totals(part, audience, now=NOW)


def _talk(store: Store, id: str, **fields: Any) -> Conversation:
    usual: dict[str, Any] = {"space": "default", "created_at": NOW, "updated_at": NOW}
    talk = Conversation(id=id, **usual | fields)
    with store.writing() as tx:
        tx.put_conversation(talk)
    return talk


def _message(id: str, **fields: Any) -> Message:
    usual: dict[str, Any] = {"role": Speaker.USER, "content": f"This is {id}.", "created_at": NOW}
    return Message(id=id, **usual | fields)


def _say(store: Store, conversation: str, id: str, **fields: Any) -> Message:
    message = _message(id, **fields)
    with store.writing() as tx:
        tx.add_message("default", conversation, message)
    return message


def _inject(store: Store, conversation: str, memory: Memory, *, active: bool = True, at: datetime = NOW) -> None:
    with store.writing() as tx:
        tx.inject("default", conversation, Injection(memory=memory.id, active=active, injected_at=at))


def create_spaces(store: Store, *names: str) -> None:
    with store.writing() as tx:
        for name in names:
            tx.create_space(name, at=NOW)


# A memory that differs from `some()` in everything a filter can ask for, and each filter that finds it.
SPECIAL: dict[str, Any] = {
    "accessed_at": later(-5),
    "kind": Kind.DECISION,
    "category": Category.GOAL,
    "tags": ("given",),
    "auto_tags": ("found",),
    "created_at": later(10),
    "importance": 0.9,
    "context": Context(user_id="bob", conversation_id="c1", session_id="s1"),
    "access_level": AccessLevel.PUBLIC,
    "source": Source.EXPLICIT,
    "provenance": Provenance(client="editor", caller="eve", transport="http"),
    "flags": ("secret",),
    "topic": "auth",
    "path": "work/notes/special",
    "id": "mem_special",
}
FILTERS: dict[str, Filter] = {
    "kinds": Filter(kinds=frozenset({Kind.DECISION, Kind.CHECKPOINT})),
    "categories": Filter(categories=frozenset({Category.GOAL})),
    "given tag": Filter(tags=frozenset({"given", "unknown"})),
    "found tag": Filter(tags=frozenset({"found"})),
    "created_since": Filter(created_since=later(10)),
    "created_until": Filter(created_until=later(10), created_since=later(5)),
    "accessed_until": Filter(accessed_until=later(-5)),
    "min_importance": Filter(min_importance=0.9),
    "importance range": Filter(min_importance=0.6, max_importance=0.9),
    "user_id": Filter(user_id="bob"),
    "conversation_id": Filter(conversation_id="c1"),
    "session_id": Filter(session_id="s1"),
    "access_levels": Filter(access_levels=frozenset({AccessLevel.PUBLIC})),
    "source": Filter(source=Source.EXPLICIT),
    "belongs_to": Filter(belongs_to="c1"),
    "client": Filter(client="editor"),
    "caller": Filter(caller="eve"),
    "transport": Filter(transport="http"),
    "flag": Filter(flag="secret"),
    "any flag": Filter(flag="any"),
    "topic": Filter(topic="auth"),
    "folder": Filter(path_prefix="work"),
    "folder, slashed": Filter(path_prefix="work/notes/"),
    "path itself": Filter(path_prefix="work/notes/special"),
    "ids": Filter(ids=frozenset({"mem_special", "mem_unknown"})),
    "many at once": Filter(kinds=frozenset({Kind.DECISION}), tags=frozenset({"given"}), user_id="bob", topic="auth"),
}
MISSES: dict[str, Filter] = {
    "other user": Filter(user_id="nobody"),
    "other conversation": Filter(conversation_id="c2"),
    "other conversation to belong to": Filter(belongs_to="c2"),
    "other caller": Filter(caller="mallory"),
    "other flag": Filter(flag="instruction"),
    "other folder": Filter(path_prefix="wor"),
    "folder of the same beginning": Filter(path_prefix="work/note"),
    "no kind": Filter(kinds=frozenset()),
    "no tag": Filter(tags=frozenset()),
    "no category": Filter(categories=frozenset()),
    "no access level": Filter(access_levels=frozenset()),
    "no state": Filter(states=frozenset()),
    "no id": Filter(ids=frozenset()),
    "one condition of two": Filter(topic="auth", user_id="local"),
    "too early": Filter(created_until=later(-1)),
    "too unimportant": Filter(max_importance=0.1),
}

# Text, a word to find it by, in scripts with and without spaces.
SCRIPTS = [
    ("用户住在东京都", "京"),
    ("用户住在东京都", "东京"),
    ("用户住在东京都", "东京都"),
    ("彼女はコーヒーが好きです", "コーヒー"),
    ("ﾃｽﾄは半角カナ", "テスト"),
    ("사용자는 서울에서 일합니다", "서울"),
    ("ผู้ใช้ชอบดื่มกาแฟ", "กาแฟ"),
    ("ຜູ້ໃຊ້ຢູ່ວຽງຈັນ", "ວຽງຈັນ"),
    ("المستخدم يحب القهوة", "القهوة"),
    ("كَتَبَ رسالة", "كتب"),
    ("Пользователь живёт в Москве", "москве"),
    ("उपयोगकर्ता दिल्ली में रहता है।", "दिल्ली"),
    ("Das Café an der Straße", "cafe"),
    ("Das Cafe an der Ecke", "Café"),
    ("cafe\u0301 with a combining accent", "café"),
    ("Launch went well 🚀 today", "🚀"),
    ("使用Python编写", "python"),
    ("Python编写", "编写"),
    ("ＦＵＬＬ width", "full"),
    ("calls parseHttpResponse twice", "response"),
    ("calls parseHttpResponse twice", "parseHttpResponse"),
    ("set max_retry_count to 5", "retry"),
    ("set max_retry_count to 5", "max_retry_count"),
    ("runs on node22", "22"),
    ("upgraded to 3.11.7", "3.11.7"),
    ("imports os.path.join", "path"),
    ("User was running late", "runs"),
]

HOSTILE = [
    "'; DROP TABLE memories; --",
    '"',
    '""" OR ""',
    "*",
    "sea*",
    "NEAR(seattle austin, 2)",
    "-seattle",
    "text:seattle",
    "scope : x",
    "{text scope} : seattle",
    "^seattle",
    "(seattle",
    "seattle AND",
    "AND OR NOT",
    "seattle + user",
    "%_\\",
    "a\0b seattle",
    "\ud800",
    "",
    " ",
    "😀" * 300,
    "x" * 100_000,
    "? ?1 :name @name $name",
    "\ue0001",
]


class StoreContract(CallersContract):
    # --- transactions ---

    def test_what_a_transaction_wrote_is_seen_when_it_ends(self, store: Store) -> None:
        memory = put(store, some())

        assert store.get([memory.id], EVERYTHING) == [memory]

    def test_nothing_of_a_transaction_that_raises_remains(self, store: Store) -> None:
        with pytest.raises(ZeroDivisionError), store.writing() as tx:  # noqa: PT012 -- what came before it is the point
            memory = put_in(tx, some())
            tx.relate(a_link(memory.id, "other"))
            tx.record(an_event(memory=memory.id))
            tx.create_space("new", at=NOW)
            tx.set_fact("model", "m")
            tx.alias("another", memory.id)
            raise ZeroDivisionError

        assert store.get([memory.id, "another"], EVERYTHING) == []
        assert matched(store, "seattle") == nearest(store) == listed(store) == []
        assert [*store.links([memory.id]), *store.events("default"), *store.pending(limit=9)] == []
        assert [space.name for space in store.spaces()] == ["default"]
        assert store.fact("model") is None

    def test_a_store_goes_on_after_a_transaction_that_raised(self, store: Store) -> None:
        with pytest.raises(ZeroDivisionError), store.writing():
            raise ZeroDivisionError

        assert put(store, some()).seq

    def test_a_transaction_reads_its_own_writes(self, store: Store) -> None:
        with store.writing() as tx:
            memory = put_in(tx, some())
            tx.set_fact("model", "m")

            assert tx.get([memory.id], EVERYTHING) == [memory]
            assert ids(tx.match("seattle", Filter(), EVERYTHING, now=NOW, limit=5)) == [memory.id]
            assert ids(tx.nearest(QUERY, Filter(), EVERYTHING, now=NOW, limit=5)) == [memory.id]
            assert tx.fact("model") == "m"

    def test_nobody_else_sees_a_transaction_before_it_ends(self, store: Store) -> None:
        before = put(store, some())

        with store.writing() as tx:
            put_in(tx, some())

            assert listed(store) == matched(store, "seattle") == nearest(store) == [before.id]

    def test_what_was_written_is_there_after_reopening(self, store: Store, reopen: Reopen) -> None:
        memory = put(store, some())
        origin = store.origin

        store = reopen()

        assert listed(store) == matched(store, "seattle") == nearest(store) == [memory.id]
        assert store.origin == origin != ""

    def test_threads_write_and_read_at_once(self, store: Store) -> None:
        seen: list[bool] = []

        def work(number: int) -> None:
            for step in range(10):
                memory = put(store, some(f"thread{number} step{step}"))
                seen.append(memory.id in matched(store, f"thread{number}"))
                seen.append(memory.id in nearest(store))
                seen.append(store.get([memory.id], EVERYTHING) == [memory])

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert all(seen)
        assert len(seen) == 120
        assert store.count(Filter(), EVERYTHING, now=NOW) == 40

    def test_closing_twice_is_no_error(self, store: Store) -> None:
        store.close()
        store.close()

    def test_a_closed_store_says_so(self, store: Store) -> None:
        store.close()

        with pytest.raises(StorageError, match="closed"):
            store.get(["x"], EVERYTHING)
        with pytest.raises(StorageError, match="closed"), store.writing():
            pass

    # --- put and get ---

    def test_every_field_comes_back_as_it_was(self, store: Store) -> None:
        memory = some(
            "text",
            kind=Kind.DECISION,
            title="a title",
            topic="auth",
            tags=("b", "a"),
            auto_tags=("z",),
            confidence=0.25,
            source=Source.EXPLICIT,
            access_level=AccessLevel.PRIVATE,
            context=Context(user_id="bob", conversation_id="c", session_id="s"),
            metadata={"n": 2**70, "deep": [{"é": None, "x": 1.5}], "t": True},
            detail={"reasoning": "why"},
            flags=("secret",),
            provenance=Provenance(client="c", caller="k", transport="http", dialect="mama"),
            status=Status.ARCHIVED,
            supersedes="old",
            superseded_by="new",
            expires_at=later(1),
            valid_from=later(-9),
            valid_until=later(9),
            verified_at=later(2),
            deleted_at=later(3),
            recoverable_until=later(4),
            updated_at=later(5),
            accessed_at=later(6),
            access_count=7,
            hlc=8,
            origin="elsewhere",
        )
        unset = {field.name for field in fields(Memory) if getattr(memory, field.name) == field.default}

        stored = put(store, memory)

        assert unset <= {"seq", "version"}, "a field of Memory is not tried here"
        assert stored == replace(memory, seq=stored.seq)
        assert store.get([memory.id], EVERYTHING) == [stored]

    def test_times_are_kept_in_milliseconds(self, store: Store) -> None:
        at = NOW + timedelta(microseconds=999)

        assert put(store, some(created_at=at)).created_at == NOW

    def test_times_long_ago_and_far_off_are_kept(self, store: Store) -> None:
        early, late = datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)

        memory = put(store, some(valid_from=early, valid_until=late))

        assert (got(store, memory.id).valid_from, got(store, memory.id).valid_until) == (early, late)

    def test_arrival_numbers_grow(self, store: Store) -> None:
        memories = put_all(store, (some() for _ in range(20)))

        assert [memory.seq for memory in memories] == sorted({memory.seq for memory in memories})

    def test_a_frozen_clock_makes_no_two_ids_alike(self, store: Store) -> None:
        memories = put_all(store, (some(f"text {n}") for n in range(500)), ())

        assert len({memory.id for memory in memories}) == 500
        assert listed(store, limit=500) == ids(reversed(memories))

    def test_get_keeps_the_order_asked_and_leaves_unknown_ids_out(self, store: Store) -> None:
        first, second = put_all(store, [some(), some()])

        assert ids(store.get([second.id, "unknown", first.id], EVERYTHING)) == [second.id, first.id]

    def test_getting_nothing_is_no_error(self, store: Store) -> None:
        assert store.get([], EVERYTHING) == []

    def test_get_shows_deleted_and_archived_memories(self, store: Store) -> None:
        gone = put(store, some(status=Status.DELETED))
        kept = put(store, some(status=Status.ARCHIVED))

        assert ids(store.get([gone.id, kept.id], EVERYTHING)) == [gone.id, kept.id]

    def test_a_new_memory_with_a_taken_id_is_a_conflict(self, store: Store) -> None:
        memory = put(store, some())

        with pytest.raises(Conflict):
            put(store, some(id=memory.id, path="elsewhere"))

    def test_a_memory_goes_into_a_space_that_exists(self, store: Store) -> None:
        with pytest.raises(SpaceNotFound):
            put(store, some(space="nowhere"))

    @pytest.mark.parametrize("text", HOSTILE)
    def test_text_is_data_wherever_it_stands(self, store: Store, text: str) -> None:
        if "\ud800" in text:
            pytest.skip("refused at the door")
        context = Context(user_id=text, conversation_id=text, session_id=text)
        memory = some(text, title=text, path=f"p/{text}", topic=text, tags=(text,), flags=(text,), context=context)
        memory = replace(memory, metadata={text: text})

        stored = put(store, memory)

        assert store.get([memory.id], EVERYTHING) == [stored]
        assert replace(stored, seq=0) == memory
        every = Filter(
            tags=frozenset({text}), topic=text, flag=text, user_id=text, conversation_id=text, session_id=text
        )
        assert listed(store, every) == [memory.id]
        assert listed(store, replace(every, tags=frozenset({text + "'"}))) == []

    def test_half_a_surrogate_pair_is_refused_and_harms_nothing(self, store: Store) -> None:
        with pytest.raises(Exception, match="surrogate"):
            put(store, some("\ud800"))

        assert listed(store) == []

    # --- versions ---

    def test_a_higher_version_replaces_the_one_before_it(self, store: Store) -> None:
        memory = put(store, some("User lives in Seattle"))

        newer = put(store, replace(memory, content="User lives in Austin", version=2))

        assert got(store, memory.id) == newer
        assert newer.seq == memory.seq
        assert listed(store) == [memory.id]

    def test_a_former_state_is_kept_with_who_changed_it_and_why(self, store: Store) -> None:
        first = put(store, some(tags=("a",), metadata={"x": 1}))
        second = put(store, replace(first, content="two", updated_at=later(1), version=2))
        put(store, replace(second, content="three", updated_at=later(2), version=3))

        newest, oldest = store.versions(first.id)

        assert (newest.memory, oldest.memory) == (second, first)
        assert (newest.replaced_at, newest.replaced_by, newest.reason) == (later(2), "ann", "because")
        assert newest.id != oldest.id

    @pytest.mark.parametrize("version", [1, 2, 4, 9])
    def test_a_version_that_does_not_follow_is_a_conflict(self, store: Store, version: int) -> None:
        memory = changed(store, put(store, some()))

        with pytest.raises(Conflict):
            put(store, replace(memory, content="other", version=version))

        assert got(store, memory.id) == memory

    def test_a_memory_of_another_store_arrives_with_its_version(self, store: Store) -> None:
        memory = put(store, some(version=7))

        assert got(store, memory.id).version == 7
        assert store.versions(memory.id) == []
        assert put(store, replace(memory, content="changed here", version=8)).version == 8

    def test_two_who_change_the_same_version_do_not_overwrite_each_other(self, store: Store) -> None:
        memory = put(store, some())
        put(store, replace(memory, content="mine", version=2))

        with pytest.raises(Conflict):
            put(store, replace(memory, content="yours", version=2))

        assert got(store, memory.id).content == "mine"

    def test_a_new_text_is_found_and_the_old_one_is_not(self, store: Store) -> None:
        memory = put(store, some("User lives in Seattle"), [at_cosine(0.9)])

        put(store, replace(memory, content="User lives in Austin", title="Austin", version=2), [at_cosine(0.1)])

        assert matched(store, "austin") == [memory.id]
        assert matched(store, "seattle") == []
        assert store.cosines(QUERY, [memory.id])[memory.id] == pytest.approx(0.1, abs=1e-6)

    def test_without_new_vectors_words_and_vectors_stay(self, store: Store) -> None:
        memory = put(store, some("User lives in Seattle"), [at_cosine(0.9), at_cosine(0.5)])

        changed(store, memory, importance=0.9, tags=("new",))

        assert matched(store, "seattle") == nearest(store) == listed(store, Filter(tags=frozenset({"new"})))
        assert store.pending(limit=9) == []

    def test_the_state_that_filters_see_follows_the_memory(self, store: Store) -> None:
        memory = put(store, some())
        states = []
        for change in (
            {"superseded_by": "other"},
            {"status": Status.ARCHIVED},
            {"status": Status.DELETED},
            {"status": Status.ACTIVE, "superseded_by": None},
        ):
            memory = changed(store, memory, **change)
            states += [state for state in State if listed(store, Filter(states=frozenset({state})))]

        assert states == [State.SUPERSEDED, State.ARCHIVED, State.DELETED, State.ACTIVE]

    # --- paths ---

    def test_two_active_memories_of_a_space_cannot_share_a_path(self, store: Store) -> None:
        put(store, some(path="a/b"))

        with pytest.raises(Conflict):
            put(store, some(path="a/b"))

    def test_a_superseded_memory_keeps_its_path(self, store: Store) -> None:
        put(store, some(path="a/b", superseded_by="other"))

        with pytest.raises(Conflict):
            put(store, some(path="a/b"))

    @pytest.mark.parametrize("status", [Status.ARCHIVED, Status.DELETED])
    def test_what_is_archived_or_deleted_leaves_its_path_free(self, store: Store, status: Status) -> None:
        gone = put(store, some(path="a/b", status=status))
        put(store, some(path="a/b"))

        with pytest.raises(Conflict):
            changed(store, gone, status=Status.ACTIVE)

    def test_spaces_do_not_share_paths(self, store: Store) -> None:
        create_spaces(store, "work")

        put(store, some(path="a/b"))
        put(store, some(path="a/b", space="work"))

    def test_taken_paths_are_the_path_and_its_numbered_ones(self, store: Store) -> None:
        create_spaces(store, "work")
        put_all(store, [some(path=path) for path in ("a/b", "a/b-2", "a/b-x", "a/bc", "a/b/c", "a")])
        put(store, some(path="a/b-3", space="work"))
        put(store, some(path="a/b-4", status=Status.DELETED))

        assert store.taken_paths("default", "a/b") == {"a/b", "a/b-2", "a/b-x"}
        assert store.taken_paths("nowhere", "a/b") == set()

    # --- audience ---

    def test_an_audience_without_scopes_sees_nothing(self, store: Store) -> None:
        memory = put(store, some(access_level=AccessLevel.PUBLIC))

        assert store.get([memory.id], NOTHING) == store.list(Filter(), NOTHING, now=NOW) == []
        assert store.match("seattle", Filter(), NOTHING, now=NOW, limit=9) == []
        assert store.nearest(QUERY, Filter(), NOTHING, now=NOW, limit=9) == []
        assert store.count(Filter(), NOTHING, now=NOW) == 0

    @pytest.mark.parametrize(
        ("sight", "visible"),
        [
            (Sight.PUBLIC, {"public"}),
            (Sight.SHARED, {"public", "shared"}),
            (Sight.OWN, {"public", "shared", "own"}),
            (Sight.ALL, {"public", "shared", "own", "foreign"}),
        ],
    )
    @pytest.mark.parametrize("space", ["default", None])
    def test_each_sight_shows_its_part(self, store: Store, sight: Sight, space: str | None, visible: set[str]) -> None:
        for name, level, user in (
            ("public", AccessLevel.PUBLIC, "bob"),
            ("shared", AccessLevel.SHARED, "bob"),
            ("own", AccessLevel.PRIVATE, "ann"),
            ("foreign", AccessLevel.PRIVATE, "bob"),
        ):
            put(store, some(name, id=name, access_level=level, context=Context(user_id=user)))

        shown = store.list(Filter(), Audience("ann", (Scope(space, sight),)), now=NOW)

        assert set(ids(shown)) == visible

    def test_a_user_unknown_to_the_store_owns_nothing(self, store: Store) -> None:
        put(store, some(access_level=AccessLevel.PRIVATE))

        assert store.list(Filter(), Audience("stranger", (Scope(None, Sight.OWN),)), now=NOW) == []

    def test_an_unknown_space_shows_nothing(self, store: Store) -> None:
        put(store, some())

        assert store.list(Filter(), Audience("local", (Scope("nowhere", Sight.ALL),)), now=NOW) == []

    def test_each_space_is_seen_with_its_own_sight(self, store: Store) -> None:
        create_spaces(store, "home", "work")
        put_all(store, [some(id="a", space="home"), some(id="b", space="work"), some(id="c")])
        audience = Audience("local", (Scope("home", Sight.ALL), Scope("work", Sight.PUBLIC)))

        assert ids(store.list(Filter(), audience, now=NOW)) == ["a"]

    @given(data=st.data())
    @settings(
        max_examples=25,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
    )
    def test_no_read_ever_shows_what_is_outside_the_audience(self, store: Store, data: st.DataObject) -> None:
        """Random data of two users in two spaces, and every way of reading it."""
        spaces = [f"one-{new_id()}", f"two-{new_id()}"]
        create_spaces(store, *spaces)
        rows = data.draw(
            st.lists(
                st.tuples(st.sampled_from(spaces), st.sampled_from(["ann", "bob"]), st.sampled_from(AccessLevel)),
                min_size=1,
                max_size=8,
            )
        )
        audience = Audience(
            data.draw(st.sampled_from(["ann", "bob", "eve", ""])),
            tuple(data.draw(st.lists(st.builds(Scope, st.sampled_from(spaces), st.sampled_from(Sight)), max_size=3))),
        )
        memories = put_all(
            store,
            (
                some(f"mark {number}", space=space, access_level=level, context=Context(user_id=user))
                for number, (space, user, level) in enumerate(rows)
            ),
        )
        visible = {memory.id for memory in memories if _sees(audience, memory)}

        assert set(ids(store.get(ids(memories), audience))) == visible
        assert set(ids(store.list(Filter(), audience, now=NOW))) == visible
        assert store.count(Filter(), audience, now=NOW) == len(visible)
        assert set(ids(store.match("mark", Filter(), audience, now=NOW, limit=99))) == visible
        assert set(ids(store.nearest(QUERY, Filter(), audience, now=NOW, limit=99))) == visible
        twins = {twin.id for memory in memories for twin in store.twins(memory.content.encode(), audience)}
        assert twins & set(ids(memories)) == visible
        with store.writing() as tx:
            assert set(ids(tx.nearest(QUERY, Filter(), audience, now=NOW, limit=99))) == visible

    # --- filters ---

    @pytest.mark.parametrize("name", FILTERS)
    def test_a_filter_admits_what_it_names(self, store: Store, name: str) -> None:
        put(store, some("User lives in Seattle"))
        special = put(store, some("User lives in Seattle", **SPECIAL))

        assert listed(store, FILTERS[name]) == [special.id]
        assert matched(store, "seattle", FILTERS[name]) == [special.id]
        assert nearest(store, FILTERS[name]) == [special.id]
        assert store.count(FILTERS[name], EVERYTHING, now=NOW) == 1

    @pytest.mark.parametrize("name", MISSES)
    def test_a_filter_leaves_out_what_it_does_not_name(self, store: Store, name: str) -> None:
        put(store, some("User lives in Seattle", **SPECIAL))

        assert listed(store, MISSES[name]) == matched(store, "seattle", MISSES[name]) == []
        assert {tuple(listed(store, MISSES[name], order=order)) for order in Order} == {()}
        assert nearest(store, MISSES[name]) == []
        assert store.count(MISSES[name], EVERYTHING, now=NOW) == 0

    def test_every_filter_is_tried_here(self) -> None:
        named = {field.name for field in fields(Filter) for one in FILTERS.values() if _given(one, field.name)}

        assert named | {"states", "expired", "max_importance"} == {field.name for field in fields(Filter)}

    def test_filters_apply_before_the_cut(self, store: Store) -> None:
        """One memory that meets the filter is found behind 500 better ones that do not."""
        put_all(store, (some(f"seattle seattle {number}") for number in range(500)), [at_cosine(0.9)])
        special = put(store, some("User lives in Seattle, a rainy city", **SPECIAL), [at_cosine(0.1)])

        by_words = {name: matched(store, "seattle", wanted, limit=1) for name, wanted in FILTERS.items()}
        by_meaning = {name: nearest(store, wanted, limit=1) for name, wanted in FILTERS.items()}

        assert by_words == by_meaning == {name: [special.id] for name in FILTERS}

    def test_an_audience_applies_before_the_cut(self, store: Store) -> None:
        create_spaces(store, "mine")
        put_all(store, (some(f"seattle seattle {number}") for number in range(500)), [at_cosine(0.9)])
        mine = put(store, some("User lives in Seattle", space="mine"), [at_cosine(0.1)])
        audience = Audience("local", (Scope("mine", Sight.SHARED),))

        assert ids(store.match("seattle", Filter(), audience, now=NOW, limit=1)) == [mine.id]
        assert ids(store.nearest(QUERY, Filter(), audience, now=NOW, limit=1)) == [mine.id]

    @pytest.mark.parametrize(
        ("expired", "found"),
        [
            (False, ["living", "never"]),
            (True, ["expired", "just expired"]),
            (None, ["expired", "just expired", "living", "never"]),
        ],
    )
    def test_expiry_is_told_by_the_given_time(self, store: Store, expired: bool | None, found: list[str]) -> None:
        for name, at in {"never": None, "living": later(1), "just expired": NOW, "expired": later(-1)}.items():
            put(store, some("seattle", id=name, expires_at=at))
        wanted = Filter(expired=expired)

        assert sorted(listed(store, wanted)) == found
        assert sorted(matched(store, "seattle", wanted)) == found
        assert sorted(nearest(store, wanted)) == found

    # --- lists ---

    @pytest.mark.parametrize("order", Order)
    @pytest.mark.parametrize("descending", [True, False])
    def test_a_list_is_in_order_and_equal_ones_by_arrival(self, store: Store, order: Order, descending: bool) -> None:
        memories = put_all(store, _varied())

        found = store.list(Filter(), EVERYTHING, now=NOW, order=order, descending=descending, limit=99)

        expected = sorted(memories, key=lambda memory: _place(memory, order), reverse=descending)
        assert ids(found) == ids(expected)

    @pytest.mark.parametrize("order", Order)
    @pytest.mark.parametrize("descending", [True, False])
    def test_a_list_goes_on_behind_a_position(self, store: Store, order: Order, descending: bool) -> None:
        put_all(store, _varied())
        whole = listed(store, order=order, descending=descending, limit=99)

        pages: list[str] = []
        after = None
        while page := store.list(
            Filter(), EVERYTHING, now=NOW, order=order, descending=descending, limit=4, after=after
        ):
            pages += ids(page)
            after = Position.of(page[-1], order)

        assert pages == whole

    @pytest.mark.parametrize("order", Order)
    @pytest.mark.parametrize("descending", [True, False])
    @pytest.mark.parametrize("flushed", [True, False])
    def test_a_list_over_spaces_and_states_is_one_list(
        self, store: Store, order: Order, descending: bool, flushed: bool
    ) -> None:
        """Spaces seen twice, in part or all at once, states that are merged, reads that are not written yet."""
        create_spaces(store, "work", "far")
        memories = put_all(
            store,
            (
                replace(
                    memory,
                    space=("default", "work", "far")[n % 3],
                    superseded_by="x" if n % 4 == 1 else None,
                    status=Status.ARCHIVED if n % 5 == 4 else Status.ACTIVE,
                    access_level=AccessLevel.PRIVATE if n % 2 else AccessLevel.SHARED,
                )
                for n, memory in enumerate(_varied() * 3)
                for memory in [replace(memory, id=f"mem_{n}", path=f"p/{n}")]
            ),
        )
        store.count_reads({f"mem_{n}": n for n in range(1, 30, 4)}, at=later(20))
        if flushed:
            store.flush_reads()
        here = (Scope("default", Sight.ALL), Scope("work", Sight.PUBLIC), Scope("work", Sight.SHARED))
        states = frozenset({State.ACTIVE, State.SUPERSEDED})
        for scopes in (here, (Scope(None, Sight.SHARED),), (Scope(None, Sight.SHARED), *here)):
            audience = Audience("local", scopes)
            known = store.get(ids(memories), EVERYTHING)
            expected = [memory for memory in known if memory.state in states and _sees(audience, memory)]
            expected.sort(key=lambda memory: _place(memory, order), reverse=descending)

            pages: list[str] = []
            after = None
            while page := store.list(
                Filter(states=states), audience, now=NOW, order=order, descending=descending, limit=5, after=after
            ):
                pages += ids(page)
                after = Position.of(page[-1], order)

            assert pages == ids(expected)
            assert store.count(Filter(states=states), audience, now=NOW) == len(expected) > 5

    def test_what_is_stored_meanwhile_neither_shifts_nor_repeats_a_page(self, store: Store) -> None:
        put_all(store, (some(created_at=later(n)) for n in range(6)))
        whole = listed(store)
        first = store.list(Filter(), EVERYTHING, now=NOW, limit=3)

        put(store, some(created_at=later(99)))
        second = listed(store, after=Position.of(first[-1], Order.CREATED), limit=3)

        assert ids(first) + second == whole

    def test_limit_and_offset_cut_a_list(self, store: Store) -> None:
        put_all(store, (some(created_at=later(n)) for n in range(6)))
        whole = listed(store)

        assert listed(store, limit=2, offset=3) == whole[3:5]
        assert listed(store, offset=6) == listed(store, limit=0) == []

    def test_count_is_the_length_of_the_whole_list(self, store: Store) -> None:
        put_all(store, (some(category=Category.GOAL if n % 3 else Category.FACT) for n in range(30)))
        goals = Filter(categories=frozenset({Category.GOAL}))

        assert store.count(goals, EVERYTHING, now=NOW) == len(listed(store, goals, limit=99)) == 20

    # --- words ---

    @pytest.mark.parametrize(("text", "word"), SCRIPTS)
    def test_a_memory_is_found_by_a_word_of_it(self, store: Store, text: str, word: str) -> None:
        put(store, some("Something else entirely"))
        memory = put(store, some(text))

        assert matched(store, word) == [memory.id]
        assert got(store, memory.id).content == text

    def test_more_of_the_words_is_a_higher_score(self, store: Store) -> None:
        for name, text in {"all": "red green blue", "two": "red green grey", "one": "red grey white"}.items():
            put(store, some(text, id=name))

        found = store.match("red green blue", Filter(), EVERYTHING, now=NOW, limit=9)

        assert ids(found) == ["all", "two", "one"]
        assert 0 < found[2].score < found[1].score < found[0].score <= 1

    def test_all_words_in_a_memory_of_average_length_score_one(self, store: Store) -> None:
        put_all(store, (some(f"grey white black number{n}") for n in range(60)))
        memory = put(store, some("red green blue yellow"))

        [match] = store.match("yellow green red blue", Filter(), EVERYTHING, now=NOW, limit=9)

        assert match.memory == memory.id
        assert match.score == pytest.approx(1.0, abs=0.05)

    def test_of_those_that_hold_all_words_the_better_comes_first_not_the_newer(self, store: Store) -> None:
        put_all(store, (some(f"grey white black ochre teal navy number{n}") for n in range(60)))
        better = put(store, some("red tea red tea"))
        newer = put(store, some("red tea on Monday"))

        found = store.match("red tea", Filter(), EVERYTHING, now=NOW, limit=9)

        assert ids(found) == [better.id, newer.id]
        assert found[0].score == 1

    def test_half_of_the_words_score_about_half(self, store: Store) -> None:
        put_all(store, (some(f"grey white black number{n}") for n in range(60)))
        put(store, some("red green ochre yellow"))

        [match] = store.match("red green navy teal", Filter(), EVERYTHING, now=NOW, limit=9)

        assert 0.35 < match.score < 0.65

    @pytest.mark.parametrize("where", [0.0, 0.5, 1.0])
    def test_a_word_counts_as_much_wherever_it_stands_in_a_very_long_memory(self, store: Store, where: float) -> None:
        put_all(store, (some(f"grey white black number{n}") for n in range(60)))
        filler = "nothing much happened on this day. " * 1_400
        at = int(len(filler) * where)
        memory = put(store, some(f"{filler[:at]} crimson walrus {filler[at:]}"))

        [match] = store.match("crimson walrus", Filter(), EVERYTHING, now=NOW, limit=9)

        assert match.memory == memory.id
        assert match.score > 0.15
        assert store.matched_words("crimson walrus", [memory.id]) == {memory.id: ("crimson", "walrus")}

    def test_long_memories_do_not_push_others_off_the_page(self, store: Store) -> None:
        long = put_all(store, (some("the walrus swims. " * 2_500, id=f"long{n}") for n in range(5)))
        short = put_all(store, (some("walrus", id=f"short{n}") for n in range(5)))

        found = store.match("walrus", Filter(), EVERYTHING, now=NOW, limit=10)

        assert sorted(ids(found)) == sorted(ids_of(long + short))

    def test_a_long_text_that_becomes_short_leaves_no_words_behind(self, store: Store) -> None:
        memory = put(store, some("filler " * 2_000 + "crimson walrus"))

        put(store, replace(memory, content="short now", title="short now", version=2), [QUERY])

        assert matched(store, "walrus") == []
        assert matched(store, "short") == [memory.id]

    def test_words_are_found_in_a_store_of_one_memory(self, store: Store) -> None:
        """A word that stands in every row still counts while there are few rows."""
        put(store, some("User lives in Seattle"))

        [match] = store.match("Where does the user live?", Filter(), EVERYTHING, now=NOW, limit=9)

        assert match.score > 0.5

    def test_equal_matches_come_newest_first(self, store: Store) -> None:
        for name, minutes in {"old": 1, "new": 3, "middle": 2}.items():
            put(store, some("red", id=name, created_at=later(minutes)))

        assert matched(store, "red") == ["new", "middle", "old"]

    def test_a_decision_is_found_by_its_reasoning_and_a_memory_by_its_title(self, store: Store) -> None:
        memory = put(store, some("Use JWT", title="Login", detail={"reasoning": "sessions do not scale"}))

        assert matched(store, "scale") == matched(store, "login") == matched(store, "jwt") == [memory.id]

    def test_a_new_title_or_reasoning_is_found_though_the_vectors_stay(self, store: Store) -> None:
        memory = put(store, some("Use JWT", title="Login"))

        changed(store, memory, title="Authentication")

        assert matched(store, "authentication") == [memory.id]
        assert matched(store, "login") == []

    def test_stop_words_find_nothing_beside_other_words(self, store: Store) -> None:
        put(store, some("what is the matter"))

        assert matched(store, "what is the weather") == []

    def test_stop_words_alone_are_words(self, store: Store) -> None:
        memory = put(store, some("to be or not to be"))

        assert matched(store, "to be") == [memory.id]

    @pytest.mark.parametrize("text", HOSTILE)
    def test_a_query_is_data(self, store: Store, text: str) -> None:
        memory = put(store, some("User lives in Seattle"))

        found = matched(store, text)

        assert found == ([memory.id] if "seattle" in text or "user" in text else [])
        assert store.matched_words(text, [memory.id]).keys() == set(found)

    @pytest.mark.parametrize("text", ["", "   ", "?!", "…"])
    def test_text_without_a_word_matches_nothing(self, store: Store, text: str) -> None:
        put(store, some())

        assert matched(store, text) == []

    def test_matching_in_an_empty_store_finds_nothing(self, store: Store) -> None:
        assert matched(store, "anything") == []

    def test_matched_words_are_spelt_as_in_the_text(self, store: Store) -> None:
        one = put(store, some("User lives in Seattle"))
        two = put(store, some("the max_retry_count"))

        held = store.matched_words("Living near SEATTLE with max_retry_count", [one.id, two.id, "unknown"])

        assert held[one.id] == ("Living", "SEATTLE")
        assert held[two.id] == ("max_retry_count", "max", "retry", "count")
        assert held.keys() == {one.id, two.id}

    def test_a_word_tells_more_the_fewer_texts_hold_it(self, store: Store) -> None:
        put_all(store, (some(f"the walrus swims {word}", id=word) for word in ("here", "there", "somewhere")))
        put(store, some("the octopus swims", id="other"))

        rarity = store.rarity(["swims", "walrus", "octopus", "dolphin", "…"])

        assert 0 < rarity["swims"] < rarity["walrus"] < rarity["octopus"] < rarity["dolphin"] <= 1
        assert "…" not in rarity
        assert store.rarity([]) == {}

    def test_in_an_empty_store_every_word_tells_something(self, store: Store) -> None:
        assert store.rarity(["walrus"])["walrus"] > 0.5

    def test_a_glimpse_shows_when_where_how_long_and_how_it_begins(self, store: Store) -> None:
        talk, tomorrow = Context(conversation_id="talk"), NOW + timedelta(days=1)
        put(store, some("x" * 2_000, id="long", created_at=NOW, valid_until=tomorrow, context=talk))
        put(store, some("short", id="short"))

        seen = store.glimpses(["long", "short", "unknown"])

        assert seen.keys() == {"long", "short"}
        assert seen["long"][:5] == (NOW, None, tomorrow, "talk", 2_000)
        assert 0 < len(seen["long"].opening) < 2_000
        assert seen["short"].conversation is None
        assert seen["short"].opening == "short"
        assert store.glimpses([]) == {}

    # --- vectors ---

    def test_the_nearest_come_first_with_their_cosine(self, store: Store) -> None:
        for name, cosine in {"far": -0.2, "near": 0.9, "middle": 0.4}.items():
            put(store, some(id=name), [at_cosine(cosine)])

        found = store.nearest(QUERY, Filter(), EVERYTHING, now=NOW, limit=2)

        assert ids(found) == ["near", "middle"]
        assert [match.score for match in found] == pytest.approx([0.9, 0.4], abs=1e-6)

    def test_a_memory_counts_once_and_by_its_best_part(self, store: Store) -> None:
        put(store, some(id="long"), [at_cosine(c) for c in (0.1, 0.8, 0.7, 0.6, 0.5)])
        put(store, some(id="short"), [at_cosine(0.65)])
        put(store, some(id="other"), [at_cosine(0.2)])

        found = store.nearest(QUERY, Filter(), EVERYTHING, now=NOW, limit=3)

        assert ids(found) == ["long", "short", "other"]
        assert found[0].score == pytest.approx(0.8, abs=1e-6)

    def test_equally_near_ones_come_newest_first(self, store: Store) -> None:
        for name, minutes in {"old": 1, "new": 3, "middle": 2}.items():
            put(store, some(id=name, created_at=later(minutes)))

        assert nearest(store) == ["new", "middle", "old"]
        assert nearest(store, limit=1) == ["new"]

    def test_memories_without_vectors_are_not_near_anything(self, store: Store) -> None:
        put(store, some(), (), parts=1)

        assert nearest(store) == []

    def test_vectors_of_another_length_are_passed_over(self, store: Store) -> None:
        memory = put(store, some())
        other = np.ones(DIMENSION // 2, np.float32) / (DIMENSION / 2) ** 0.5

        assert store.nearest(other, Filter(), EVERYTHING, now=NOW, limit=9) == []
        assert store.cosines(other, [memory.id]) == {}
        assert nearest(store) == [memory.id]

    def test_cosines_and_vectors_are_given_by_id(self, store: Store) -> None:
        memory = put(store, some(), [at_cosine(0.3), at_cosine(0.6)])
        bare = put(store, some(), (), parts=1)

        assert store.cosines(QUERY, [memory.id, bare.id, "unknown"]) == {memory.id: pytest.approx(0.6, abs=1e-6)}
        vectors = store.vectors([memory.id, bare.id, "unknown"])
        assert vectors.keys() == {memory.id}
        np.testing.assert_array_equal(vectors[memory.id], at_cosine(0.3))
        assert store.cosines(QUERY, []) == store.vectors([]) == {}

    def test_both_ways_at_once_find_what_each_finds_alone(self, store: Store) -> None:
        put(store, some("tea at four"), [at_cosine(0.2)])
        put(store, some("coffee at five"), [at_cosine(0.9)])
        asked: dict[str, Any] = {"now": NOW, "limit": 10}

        found = store.match_and_nearest("tea", QUERY, Filter(), EVERYTHING, **asked)

        assert found == (
            store.match("tea", Filter(), EVERYTHING, **asked),
            store.nearest(QUERY, Filter(), EVERYTHING, **asked),
        )
        assert [len(one) for one in found] == [1, 2]

    def test_changes_of_every_kind_are_seen_by_the_next_search(self, store: Store) -> None:
        memory = put(store, some(), [at_cosine(0.9)])
        assert nearest(store) == [memory.id]

        memory = changed(store, memory, status=Status.ARCHIVED)
        assert nearest(store) == []

        memory = changed(store, memory, status=Status.ACTIVE)
        assert nearest(store) == [memory.id]

        with store.writing() as tx:
            tx.purge(memory.id, at=NOW)
        assert nearest(store, Filter(states=EVERY_STATE)) == []

    # --- waiting for vectors ---

    def test_what_has_not_all_its_vectors_waits(self, store: Store) -> None:
        whole = put(store, some(), [unit(1)], parts=1)
        half = put(store, some(), [unit(1), unit(2)], parts=5)
        bare = put(store, some(), (), parts=1)

        waiting = {one.memory.id: (one.next_part, one.attempts, one.judged) for one in store.pending(limit=9)}

        assert waiting == {half.id: (2, 0, False), bare.id: (0, 0, False)}
        assert whole.id not in waiting

    def test_those_with_fewest_attempts_wait_in_front_then_the_oldest(self, store: Store) -> None:
        for name in ("a", "b", "c"):
            put(store, some(id=name), (), parts=1)
        with store.writing() as tx:
            tx.put_off("a", failed=True)
            tx.put_off("b", judged=True)

        assert [(one.memory.id, one.attempts, one.judged) for one in store.pending(limit=9)] == [
            ("b", 0, True),
            ("c", 0, False),
            ("a", 1, False),
        ]
        assert len(store.pending(limit=2)) == 2

    def test_deleted_memories_do_not_wait(self, store: Store) -> None:
        memory = put(store, some(), (), parts=1)

        memory = changed(store, memory, status=Status.DELETED)
        assert store.pending(limit=9) == []

        changed(store, memory, status=Status.ACTIVE)
        assert ids(one.memory for one in store.pending(limit=9)) == [memory.id]

    def test_further_vectors_end_the_waiting(self, store: Store) -> None:
        memory = put(store, some(), [at_cosine(0.1)], parts=3)

        with store.writing() as tx:
            assert tx.add_vectors(memory.id, version=1, first_part=1, vectors=[at_cosine(0.2)], parts=3)
        assert [one.next_part for one in store.pending(limit=9)] == [2]

        with store.writing() as tx:
            assert tx.add_vectors(memory.id, version=1, first_part=2, vectors=[at_cosine(0.9)], parts=3)
        assert store.pending(limit=9) == []
        assert store.cosines(QUERY, [memory.id])[memory.id] == pytest.approx(0.9, abs=1e-6)
        assert nearest(store) == [memory.id]

    def test_vectors_of_an_earlier_text_are_refused(self, store: Store) -> None:
        memory = put(store, some(), (), parts=1)
        put(store, replace(memory, content="other", version=2), (), parts=1)

        with store.writing() as tx:
            assert not tx.add_vectors(memory.id, version=1, first_part=0, vectors=[QUERY], parts=1)

        assert nearest(store) == []
        assert [one.next_part for one in store.pending(limit=9)] == [0]

    def test_vectors_are_taken_though_something_else_has_changed(self, store: Store) -> None:
        memory = put(store, some(), (), parts=1)
        changed(store, memory, importance=0.9)

        with store.writing() as tx:
            assert tx.add_vectors(memory.id, version=1, first_part=0, vectors=[QUERY], parts=1)

        assert nearest(store) == [memory.id]

    def test_vectors_of_no_memory_are_refused(self, store: Store) -> None:
        with store.writing() as tx:
            assert not tx.add_vectors("unknown", version=1, first_part=0, vectors=[QUERY], parts=1)

    def test_dropping_the_vectors_lets_everything_wait(self, store: Store) -> None:
        memory = put(store, some())
        fresh = put(store, some(), (), parts=1)

        with store.writing() as tx:
            tx.drop_vectors()

        assert nearest(store) == []
        assert {one.memory.id: one.judged for one in store.pending(limit=9)} == {memory.id: True, fresh.id: False}

    # --- erasing ---

    def test_a_purged_memory_is_found_by_nothing(self, store: Store) -> None:
        memory = put(store, some(path="a/b", tags=("secret",)))
        put(store, replace(memory, content="User lives in Seattle, secretly", version=2))
        with store.writing() as tx:
            tx.alias("another", memory.id)
            tx.purge(memory.id, at=later(1))

        every = Filter(states=EVERY_STATE, expired=None)
        assert store.get([memory.id, "another"], EVERYTHING) == []
        assert listed(store, every) == matched(store, "seattle", every) == nearest(store, every) == []
        assert listed(store, Filter(states=frozenset({State.PURGED}))) == []
        assert [*store.versions(memory.id), *store.pending(limit=9)] == []
        assert store.matched_words("seattle", [memory.id]) == store.vectors([memory.id]) == {}
        assert store.twins(memory.content.encode()[:32], EVERYTHING) == []
        assert store.taken_paths("default", "a/b") == set()

    def test_a_tombstone_still_counts(self, store: Store) -> None:
        memory = put(store, some(category=Category.GOAL, importance=0.9))
        with store.writing() as tx:
            tx.purge(memory.id, at=NOW)

        purged = Filter(states=frozenset({State.PURGED}), categories=frozenset({Category.GOAL}), min_importance=0.9)
        assert store.count(purged, EVERYTHING, now=NOW) == 1
        assert store.count(Filter(), EVERYTHING, now=NOW) == 0

    def test_the_id_of_a_purged_memory_is_not_used_again(self, store: Store) -> None:
        memory = put(store, some())
        with store.writing() as tx:
            tx.purge(memory.id, at=NOW)

        for version in (1, 2, 3):
            with pytest.raises(Conflict):
                put(store, replace(memory, version=version))

    def test_purging_erases_the_reasons_of_links(self, store: Store) -> None:
        memory, other = put_all(store, [some(), some()])
        relate(store, a_link(memory.id, other.id, reason="both say Seattle"))

        with store.writing() as tx:
            tx.purge(memory.id, at=NOW)

        assert [link.reason for link in store.links([other.id])] == [None]

    def test_purging_twice_or_nothing_is_no_error(self, store: Store) -> None:
        memory = put(store, some())

        for name in (memory.id, memory.id, "unknown"):
            with store.writing() as tx:
                tx.purge(name, at=NOW)

    # --- twins ---

    def test_twins_are_active_or_archived_and_come_oldest_first(self, store: Store) -> None:
        for name, minutes, change in (
            ("new", 3, {}),
            ("old", 1, {"status": Status.ARCHIVED}),
            ("superseded", 2, {"superseded_by": "new"}),
            ("deleted", 2, {"status": Status.DELETED}),
        ):
            put(store, some("the same", id=name, created_at=later(minutes), **change))
        put(store, some("another"))

        assert ids(store.twins(b"the same", EVERYTHING)) == ["old", "new"]

    # --- links ---

    def test_links_are_found_from_both_sides_oldest_first(self, store: Store) -> None:
        early = a_link("a", "b", kind=LinkKind.SUPERSEDES, score=0.5, given=False, reason="r", hlc=7, origin="o")
        late = a_link("c", "a", created_at=later(1))
        relate(store, late, early, a_link("x", "y"))

        assert store.links(["a"]) == [early, late]
        assert store.links(["b", "c"]) == [early, late]
        assert store.links(["a"], kinds=frozenset({LinkKind.RELATED})) == [late]
        assert store.links([]) == store.links(["a"], kinds=frozenset()) == []

    def test_a_link_of_the_same_kind_replaces_the_other(self, store: Store) -> None:
        relate(store, a_link("a", "b", state="open"))
        newer = a_link("a", "b", state="kept", reason="asked")
        other = a_link("a", "b", kind=LinkKind.DEBATES)
        relate(store, newer, other)

        assert store.links(["a"]) == [newer, other]

    # --- events ---

    def test_events_are_numbered_per_space_without_holes(self, store: Store) -> None:
        create_spaces(store, "work")
        for space in ("default", "work", "default"):
            with store.writing() as tx:
                tx.record(an_event(space=space))
        with pytest.raises(ZeroDivisionError), store.writing() as tx:  # noqa: PT012 -- a number that is given back
            tx.record(an_event())
            raise ZeroDivisionError
        with store.writing() as tx:
            assert [tx.record(an_event()).number, tx.record(an_event()).number] == [3, 4]

        assert [event.number for event in store.events("default")] == [1, 2, 3, 4]
        assert [event.number for event in store.events("work")] == [1]

    def test_an_event_comes_back_as_it_was(self, store: Store) -> None:
        event = an_event(
            memory="m",
            action="updated",
            fields=("tags", "title"),
            reason="why",
            provenance=Provenance(client="c", caller="k", transport="http", dialect="mama"),
        )

        with store.writing() as tx:
            recorded = tx.record(event)

        assert store.events("default") == [recorded] == [replace(event, number=1)]

    def test_events_go_on_behind_a_number(self, store: Store) -> None:
        with store.writing() as tx:
            for _ in range(5):
                tx.record(an_event())

        assert [event.number for event in store.events("default", after=2, limit=2)] == [3, 4]
        assert store.events("nowhere") == []

    def test_an_event_belongs_to_a_space_that_exists(self, store: Store) -> None:
        with pytest.raises(SpaceNotFound), store.writing() as tx:
            tx.record(an_event(space="nowhere"))

    # --- spaces, facts, clock, aliases ---

    def test_checkpoints_are_numbered_per_space(self, store: Store) -> None:
        with store.writing() as tx:
            tx.create_space("work", at=NOW)
            numbers = [tx.number_checkpoint(space) for space in ("default", "work", "default")]
        with store.writing() as tx:
            assert numbers == [1, 1, 2]
            assert tx.number_checkpoint("default", wanted=7) == 7  # past every one given
            assert tx.number_checkpoint("default", wanted=3) == 8  # perhaps given before
            assert tx.number_checkpoint("default", wanted=9) == 9

    def test_a_checkpoint_belongs_to_a_space_that_exists(self, store: Store) -> None:
        with pytest.raises(SpaceNotFound), store.writing() as tx:
            tx.number_checkpoint("nowhere")

    def test_topics_are_one_however_they_are_spelt(self, store: Store) -> None:
        def decided(topic: str, minutes: int, **fields: Any) -> Memory:
            return some("x", kind=Kind.DECISION, topic=topic, created_at=later(minutes), **fields)

        spellings = ("Caching", " caching\u3000", "ＣＡＣＨＩＮＧ", "인증")
        put_all(store, [decided(topic, minutes) for minutes, topic in enumerate(spellings, 1)])
        put_all(store, [decided("gone", 5, status=Status.DELETED), decided("over", 6, expires_at=NOW)])
        put(store, some("no decision", topic="plain", created_at=later(9)))

        found = store.topics(EVERYTHING, now=later(30), limit=10)

        assert [(topic.name, topic.decisions, topic.latest_at) for topic in found] == [
            ("인증", 1, later(4)),
            ("ＣＡＣＨＩＮＧ", 3, later(3)),
        ]
        assert [topic.name for topic in store.topics(EVERYTHING, now=later(30), limit=1)] == ["인증"]
        assert store.topics(NOTHING, now=NOW, limit=10) == []
        assert store.count(Filter(topic="CACHING"), EVERYTHING, now=NOW) == 3

    def test_a_purged_decision_leaves_no_topic(self, store: Store) -> None:
        memory = some("x", kind=Kind.DECISION, topic="secret plan")
        put(store, memory)
        with store.writing() as tx:
            tx.purge(memory.id, at=later(1))

        assert store.topics(EVERYTHING, now=NOW, limit=10) == []
        assert store.list(Filter(topic="secret plan", states=EVERY_STATE), EVERYTHING, now=NOW) == []

    def test_the_default_space_is_there_from_the_start(self, store: Store) -> None:
        assert [space.name for space in store.spaces()] == ["default"]

    def test_spaces_come_by_name_with_their_active_memories(self, store: Store) -> None:
        with store.writing() as tx:
            assert tx.create_space("work", at=NOW, description="what pays")
            assert not tx.create_space("work", at=later(1), description="other")
        put_all(store, [some(space="work"), some(space="work", status=Status.DELETED), some(superseded_by="x")])

        default, work = store.spaces()

        assert (default.name, default.memories) == ("default", 0)
        assert (work.name, work.description, work.created_at, work.memories) == ("work", "what pays", NOW, 1)

    def test_facts_are_remembered_and_replaced(self, store: Store, reopen: Reopen) -> None:
        for value in ("one", "two"):
            with store.writing() as tx:
                tx.set_fact("model", value)

        assert reopen().fact("model") == "two"

    def test_an_unknown_fact_is_none(self, store: Store) -> None:
        assert store.fact("unknown") is None

    def test_the_clock_grows_though_the_wall_clock_stands_or_goes_back(self, store: Store, reopen: Reopen) -> None:
        ticks = []
        for at in (NOW, NOW, later(-60), later(1), later(-600)):
            with store.writing() as tx:
                ticks += [tx.tick(at), tx.tick(at)]
        with reopen().writing() as tx:
            ticks.append(tx.tick(later(-6000)))

        assert ticks == sorted(set(ticks))

    def test_a_memory_is_found_by_its_aliases(self, store: Store) -> None:
        memory = put(store, some())
        for _ in range(2):  # saying it twice is no error
            with store.writing() as tx:
                tx.alias("decision_auth_1", memory.id)

        assert store.get(["decision_auth_1"], EVERYTHING) == [memory]
        assert store.get(["decision_auth_1"], NOTHING) == []

    def test_a_memory_asked_for_by_two_names_comes_once(self, store: Store) -> None:
        memory = put(store, some())
        with store.writing() as tx:
            tx.alias("another", memory.id)

        assert store.get([memory.id, "another"], EVERYTHING) == [memory]

    def test_an_alias_means_one_memory(self, store: Store) -> None:
        one, two = put_all(store, [some(), some()])
        with store.writing() as tx:
            tx.alias("taken", one.id)

        for alias in ("taken", one.id):
            with pytest.raises(Conflict), store.writing() as tx:
                tx.alias(alias, two.id)
        with pytest.raises(Conflict):
            put(store, some(id="taken"))

    # --- counted reads ---

    def test_a_counted_read_is_seen_by_the_next_call(self, store: Store) -> None:
        memory = put(store, some())

        store.count_reads({memory.id: 2}, at=later(1))
        store.count_reads({memory.id: 1}, at=later(3))
        store.count_reads({memory.id: 1}, at=later(2))

        for seen in (got(store, memory.id), store.list(Filter(), EVERYTHING, now=NOW)[0]):
            assert (seen.access_count, seen.accessed_at) == (4, later(3))

    def test_reading_changes_neither_version_nor_clock(self, store: Store) -> None:
        memory = put(store, some())

        store.count_reads({memory.id: 1}, at=later(1))
        store.flush_reads()

        assert replace(got(store, memory.id), access_count=0, accessed_at=memory.accessed_at) == memory
        assert [*store.versions(memory.id), *store.events("default")] == []

    @pytest.mark.parametrize("flushed", [True, False])
    def test_lists_sort_by_reads_that_are_not_written_yet(self, store: Store, flushed: bool) -> None:
        put_all(store, [some(id="a"), some(id="b"), some(id="c")])
        store.count_reads({"a": 2, "b": 1}, at=later(1))
        if flushed:
            store.flush_reads()
        store.count_reads({"b": 2}, at=later(2))

        assert listed(store, order=Order.ACCESSES) == ["b", "a", "c"]
        assert listed(store, order=Order.ACCESSED) == ["b", "a", "c"]

    def test_counted_reads_survive_closing(self, store: Store, reopen: Reopen) -> None:
        memory = put(store, some(access_count=3))
        store.count_reads({memory.id: 2}, at=later(1), recall=_recall(memory.id))

        store = reopen()

        assert (got(store, memory.id).access_count, got(store, memory.id).accessed_at) == (5, later(1))
        assert store.recalls(memory.id) == [_recall(memory.id)]

    def test_reads_are_counted_once_whoever_writes_them(self, store: Store) -> None:
        memory = put(store, some())
        for minutes in range(3):
            store.count_reads({memory.id: 1}, at=later(minutes))
            put(store, some())
            store.flush_reads()

        assert got(store, memory.id).access_count == 3

    def test_an_update_does_not_set_the_counter_back(self, store: Store) -> None:
        memory = put(store, some())
        store.count_reads({memory.id: 5}, at=later(1))

        changed(store, memory, importance=0.1)

        assert got(store, memory.id).access_count == 5

    def test_reads_of_no_memory_are_passed_over(self, store: Store) -> None:
        store.count_reads({"unknown": 1}, at=NOW)
        store.flush_reads()

    def test_the_recall_log_says_to_whom_a_memory_was_handed(self, store: Store) -> None:
        for minutes in range(4):
            store.count_reads({}, at=NOW, recall=_recall("a", "b", at=later(minutes)))
            if minutes == 1:
                store.flush_reads()
        store.count_reads({}, at=NOW, recall=_recall("b"))

        assert [recall.at for recall in store.recalls("a")] == [later(3), later(2), later(1), later(0)]
        assert [recall.at for recall in store.recalls("a", limit=3)] == [later(3), later(2), later(1)]
        assert store.recalls("c") == []

    # --- conversations ---

    def test_an_unknown_conversation_has_nothing(self, store: Store) -> None:
        assert store.conversation("default", "c1") is None
        assert store.answer_to("default", "c1", "m1") is None
        assert [*store.conversations("default"), *store.spaces_of_conversation("c1")] == []
        assert [*store.messages("default", "c1", limit=9), *store.injections("default", "c1")] == []
        with store.writing() as tx:
            assert not tx.drop_conversation("default", "c1")
            assert not tx.take_out("default", "c1", "mem_a")
        with pytest.raises(NotFound), store.writing() as tx:
            tx.add_message("default", "c1", _message("m1"))
        with pytest.raises(NotFound), store.writing() as tx:
            tx.inject("default", "c1", Injection(memory="mem_a", injected_at=NOW))

    def test_a_conversation_is_kept_with_all_it_says_of_itself(self, store: Store, reopen: Reopen) -> None:
        talk = _talk(store, "c1", title="Harbour", system_prompt="Be brief.")

        assert reopen().conversation("default", "c1") == talk

    def test_a_conversation_needs_its_space(self, store: Store) -> None:
        with pytest.raises(SpaceNotFound):
            _talk(store, "c1", space="nowhere")

    def test_two_spaces_may_have_a_conversation_of_the_same_id(self, store: Store) -> None:
        create_spaces(store, "work")
        _talk(store, "c1", title="at home")
        _talk(store, "c1", space="work", title="at work")
        _say(store, "c1", "m1")

        assert store.spaces_of_conversation("c1") == ["default", "work"]
        assert [one.title for one in store.conversations("work")] == ["at work"]
        assert store.messages("work", "c1", limit=9) == []

    def test_a_conversation_written_again_keeps_its_messages(self, store: Store) -> None:
        talk = _talk(store, "c1")
        _say(store, "c1", "m1")

        _talk(store, "c1", title="new", created_at=later(9))

        again = store.conversation("default", "c1")
        assert again == replace(talk, title="new", messages=1, updated_at=NOW)

    def test_conversations_come_in_the_order_of_their_last_message(self, store: Store) -> None:
        for name in ("a", "b", "c"):
            _talk(store, name)
        _say(store, "a", "m1", created_at=later(5))

        assert [one.id for one in store.conversations("default")] == ["a", "c", "b"]
        assert [one.id for one in store.conversations("default", limit=1, offset=1)] == ["c"]

    def test_the_last_messages_come_in_the_order_in_which_they_came(self, store: Store) -> None:
        _talk(store, "c1")
        for number in range(5):
            _say(store, "c1", f"m{number}", created_at=NOW)

        assert [one.id for one in store.messages("default", "c1", limit=3)] == ["m2", "m3", "m4"]
        assert [one.id for one in store.messages("default", "c1", limit=3, offset=3)] == ["m0", "m1"]

    def test_a_message_is_answered_once(self, store: Store) -> None:
        _talk(store, "c1")
        _say(store, "c1", "m1")
        answer = _say(store, "c1", "m2", role=Speaker.ASSISTANT, reply_to="m1")

        with pytest.raises(Conflict):
            _say(store, "c1", "m3", role=Speaker.ASSISTANT, reply_to="m1")
        assert store.answer_to("default", "c1", "m1") == answer
        assert store.answer_to("default", "c1", "m2") is None

    def test_a_memory_is_put_into_a_conversation_once(self, store: Store) -> None:
        first, second = put_all(store, [some(), some()])
        _talk(store, "c1")
        _inject(store, "c1", second, at=later(1))
        _inject(store, "c1", first, at=later(2))
        _inject(store, "c1", second, active=False, at=later(3))

        assert store.injections("default", "c1") == [
            Injection(memory=second.id, active=False, injected_at=later(1)),
            Injection(memory=first.id, active=True, injected_at=later(2)),
        ]

    def test_a_memory_of_another_space_is_not_put_into_a_conversation(self, store: Store) -> None:
        create_spaces(store, "work")
        memory = put(store, some(space="work"))
        _talk(store, "c1")

        with pytest.raises(NotFound):
            _inject(store, "c1", memory)
        assert store.injections("default", "c1") == []

    def test_a_memory_is_taken_out_of_a_conversation(self, store: Store) -> None:
        memory = put(store, some())
        _talk(store, "c1")
        _inject(store, "c1", memory)

        with store.writing() as tx:
            assert tx.take_out("default", "c1", memory.id)
            assert not tx.take_out("default", "c1", memory.id)
        assert store.injections("default", "c1") == []

    @pytest.mark.parametrize("gone", ["deleted", "purged", "moved"])
    def test_what_is_gone_from_the_space_is_gone_from_its_conversations(self, store: Store, gone: str) -> None:
        create_spaces(store, "work")
        memory, other = put_all(store, [some(), some()])
        for name in ("c1", "c2"):
            _talk(store, name)
            _inject(store, name, memory)
            _inject(store, name, other)

        if gone == "purged":
            with store.writing() as tx:
                tx.purge(memory.id, at=NOW)
        else:
            changed(store, memory, **({"status": Status.DELETED} if gone == "deleted" else {"space": "work"}))

        assert ids(store.injections("default", "c1")) == ids(store.injections("default", "c2")) == [other.id]
        if gone != "moved":
            with pytest.raises(NotFound):
                _inject(store, "c1", memory)

    def test_what_is_outdated_or_archived_stays_in_its_conversations(self, store: Store) -> None:
        memory, other = put_all(store, [some(), some()])
        _talk(store, "c1")
        _inject(store, "c1", memory)
        _inject(store, "c1", other)

        changed(store, memory, superseded_by=other.id)
        changed(store, other, status=Status.ARCHIVED)

        assert ids(store.injections("default", "c1")) == [memory.id, other.id]

    def test_an_injected_memory_belongs_to_the_conversation_too(self, store: Store) -> None:
        stored = put(store, some(context=Context(conversation_id="c1")))
        injected, _ = put_all(store, [some(created_at=later(1)), some()])
        _talk(store, "c1")
        _inject(store, "c1", injected)

        assert listed(store, Filter(belongs_to="c1")) == [injected.id, stored.id]
        assert sorted(nearest(store, Filter(belongs_to="c1"))) == sorted([injected.id, stored.id])
        assert store.count(Filter(belongs_to="c1"), EVERYTHING, now=NOW) == 2
        assert listed(store, Filter(conversation_id="c1")) == [stored.id]

    def test_a_dropped_conversation_takes_its_messages_and_leaves_the_memories(self, store: Store) -> None:
        memory = put(store, some(context=Context(conversation_id="c1")))
        _talk(store, "c1")
        _say(store, "c1", "m1")
        _inject(store, "c1", memory)

        with store.writing() as tx:
            assert tx.drop_conversation("default", "c1")

        _talk(store, "c1")
        assert [*store.messages("default", "c1", limit=9), *store.injections("default", "c1")] == []
        assert got(store, memory.id)

    def test_a_transaction_that_raises_leaves_no_conversation(self, store: Store) -> None:
        def broken_off() -> None:
            with store.writing() as tx:
                tx.put_conversation(Conversation(id="c1", space="default", created_at=NOW, updated_at=NOW))
                tx.add_message("default", "c1", _message("m1"))
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            broken_off()

        assert store.conversation("default", "c1") is None

    # --- spaces put away, deeds, conflicts ---

    def test_a_space_is_described_anew(self, store: Store) -> None:
        create_spaces(store, "work")
        with store.writing() as tx:
            tx.describe_space("work", title="The office", description="what pays")

        [_, work] = store.spaces()
        assert (work.title, work.description) == ("The office", "what pays")
        with pytest.raises(SpaceNotFound), store.writing() as tx:
            tx.describe_space("nowhere", title=None, description=None)

    def test_only_a_space_without_memories_is_dropped(self, store: Store) -> None:
        create_spaces(store, "work")
        memory = put(store, some(space="work"))
        with pytest.raises(Conflict), store.writing() as tx:
            tx.drop_space("work", at=NOW)
        changed(store, memory, status=Status.DELETED)
        _talk(store, "c1", space="work")

        with store.writing() as tx:
            tx.drop_space("work", at=NOW)

        assert [space.name for space in store.spaces()] == ["default"]
        assert store.spaces_of_conversation("c1") == []
        with store.writing() as tx:
            assert tx.create_space("work", at=later(1))
            assert not tx.create_space("work", at=later(1))
        assert [space.name for space in store.spaces()] == ["default", "work"]
        with pytest.raises(SpaceNotFound), store.writing() as tx:
            tx.drop_space("nowhere", at=NOW)

    def test_a_deed_is_remembered_with_all_its_memories(self, store: Store, reopen: Reopen) -> None:
        deed = Deed(id="deed_1", action="forgotten", user="ann", at=NOW, reason="poisoned", memories=("mem_a", "mem_b"))
        with store.writing() as tx:
            tx.note_deed(deed)
            tx.note_deed(replace(deed, at=later(1), memories=("mem_b", "mem_c")))

        assert store.deed("deed_2") is None
        assert reopen().deed("deed_1") == replace(deed, memories=("mem_a", "mem_b", "mem_c"))

    def test_open_conflicts_are_between_living_memories(self, store: Store) -> None:
        old, new, expired, deleted = put_all(
            store, [some(), some(), some(expires_at=later(-1)), some(status=Status.DELETED)]
        )
        conflict = a_link(new.id, old.id, kind=LinkKind.MAY_OUTDATE, score=0.8)
        relate(
            store,
            conflict,
            a_link(old.id, expired.id, kind=LinkKind.MAY_OUTDATE),
            a_link(deleted.id, old.id, kind=LinkKind.MAY_OUTDATE),
            a_link(old.id, new.id, kind=LinkKind.MAY_OUTDATE, state="kept"),
            a_link(old.id, new.id),
        )

        assert store.open_conflicts(EVERYTHING, now=NOW, limit=9) == [conflict]
        assert store.open_conflicts(NOTHING, now=NOW, limit=9) == []
        assert store.open_conflicts(EVERYTHING, now=NOW, limit=9, offset=1) == []

    def test_open_conflicts_with_what_one_may_not_see_are_not_shown(self, store: Store) -> None:
        mine, hers = put_all(store, [some(), some(access_level=AccessLevel.PRIVATE, context=Context(user_id="ann"))])
        relate(store, a_link(mine.id, hers.id, kind=LinkKind.MAY_OUTDATE))

        for user, found in (("ann", 1), ("bob", 0)):
            audience = Audience(user, (Scope("default", Sight.OWN),))
            assert len(store.open_conflicts(audience, now=NOW, limit=9)) == found

    # --- results of requests ---

    def test_a_request_that_was_never_made_has_no_result(self, store: Store) -> None:
        assert kept(store, a_request()) is None

    def test_the_same_request_is_given_the_kept_result(self, store: Store, reopen: Reopen) -> None:
        keep(store, a_request(), '{"text": "é\\u0000"}')

        assert kept(store, a_request()) == '{"text": "é\\u0000"}'
        assert kept(reopen(), a_request()) == '{"text": "é\\u0000"}'

    @pytest.mark.parametrize("other", [{"operation": "forget_memory"}, {"arguments": b"\2" * 32}])
    def test_a_key_used_for_something_else_is_refused(self, store: Store, other: dict[str, Any]) -> None:
        keep(store, a_request())

        with pytest.raises(Unprocessable):
            kept(store, a_request(**other))

    def test_callers_do_not_share_keys(self, store: Store) -> None:
        keep(store, a_request(), "ann's")

        assert kept(store, a_request(caller="bob")) is None
        keep(store, a_request(caller="bob"), "bob's")
        assert (kept(store, a_request()), kept(store, a_request(caller="bob"))) == ("ann's", "bob's")

    def test_a_result_is_kept_for_a_day(self, store: Store) -> None:
        keep(store, a_request(), "old")
        day = timedelta(hours=24)

        assert kept(store, a_request(), now=NOW + day - timedelta(milliseconds=1)) == "old"
        assert kept(store, a_request(), now=NOW + day) is None
        assert kept(store, a_request(operation="other"), now=NOW + day) is None
        keep(store, a_request(operation="other"), "new", at=NOW + day)
        assert kept(store, a_request(operation="other"), now=NOW + day) == "new"

    def test_nothing_is_kept_of_a_transaction_that_raises(self, store: Store) -> None:
        with pytest.raises(ZeroDivisionError), store.writing() as tx:  # noqa: PT012 -- what came before it is the point
            put_in(tx, some())
            tx.keep_result(a_request(), "{}", memories=(), at=NOW)
            raise ZeroDivisionError

        assert kept(store, a_request()) is None

    def test_a_purge_erases_results_that_mention_the_memory(self, store: Store) -> None:
        one, two = put_all(store, [some(), some()])
        keep(store, a_request(key="one"), memories=[one.id, one.id])
        keep(store, a_request(key="both"), memories=[one.id, two.id])
        keep(store, a_request(key="two"), memories=[two.id])
        keep(store, a_request(key="none"))

        purge(store, one.id)

        assert [kept(store, a_request(key=key)) for key in ("one", "both", "two", "none")] == [None, None, "{}", "{}"]

    def test_a_purge_may_keep_its_own_result(self, store: Store) -> None:
        memory = put(store, some())
        with store.writing() as tx:
            tx.purge(memory.id, at=NOW)
            tx.keep_result(a_request(), "gone", memories=[memory.id], at=NOW)

        assert kept(store, a_request()) == "gone"

    # --- due for purge ---

    def test_what_is_softly_deleted_is_due_when_its_date_has_come(self, store: Store) -> None:
        for name, minutes in (("late", 3), ("soon", 1), ("early", -1), ("now", 0)):
            put(store, some(id=name, status=Status.DELETED, recoverable_until=later(minutes)))
        put(store, some(status=Status.DELETED))
        put(store, some(recoverable_until=later(-9)))
        put(store, some(status=Status.ARCHIVED, recoverable_until=later(-9)))

        assert store.due_for_purge(NOW, 9) == ["early", "now"]
        assert store.due_for_purge(later(1), 2) == ["early", "now"]
        assert store.due_for_purge(later(9), 9) == ["early", "now", "soon", "late"]

    def test_a_purged_memory_is_not_due_again(self, store: Store) -> None:
        memory = put(store, some(status=Status.DELETED, recoverable_until=NOW))

        purge(store, memory.id)

        assert store.due_for_purge(NOW, 9) == []

    # --- totals ---

    def test_an_empty_store_has_empty_totals(self, store: Store) -> None:
        assert totals(store) == Totals()
        assert store.created_before(Part(), EVERYTHING, [NOW]) == [0]
        assert store.created_before(Part(), EVERYTHING, []) == []
        assert store.activity(Part(), EVERYTHING, since=NOW, until=NOW) == Activity()

    def test_totals_count_every_state_category_and_level(self, store: Store) -> None:
        put(store, some("four", category=Category.GOAL, importance=0.7), [QUERY, QUERY])
        put(store, some("é", importance=0.29, superseded_by="x"), [QUERY])
        put(store, some("ab", importance=0.3, status=Status.ARCHIVED, metadata={"a": 1}), ())
        put(store, some("ab", importance=0.69, status=Status.DELETED), ())
        purge(store, put(store, some("gone", importance=0.9, category=Category.EVENT)).id)

        found = totals(store)

        assert found.states == dict.fromkeys(State, 1)
        assert found.memories == 5
        assert found.categories == {Category.GOAL: 1, Category.FACT: 3, Category.EVENT: 1}
        assert found.levels == {Level.HIGH: 2, Level.LOW: 1, Level.MEDIUM: 2}
        texts = {State.ACTIVE: 4, State.SUPERSEDED: 2, State.ARCHIVED: 2 + 5, State.DELETED: 2, State.PURGED: 0}
        assert found.text_bytes == texts
        size = 4 * DIMENSION
        vectors = {State.ACTIVE: 2 * size, State.SUPERSEDED: size}
        assert found.vector_bytes == dict.fromkeys(State, 0) | vectors

    def test_totals_know_what_has_expired(self, store: Store) -> None:
        put(store, some(expires_at=NOW))
        put(store, some(expires_at=later(-1), superseded_by="x"))
        put(store, some(expires_at=later(-1), status=Status.ARCHIVED))
        put(store, some(expires_at=later(1)))
        put(store, some())

        assert totals(store).expired == 2
        assert totals(store, Part(Of.CATEGORY, "fact")).expired == 2
        assert totals(store, Part(Of.CATEGORY, "goal")).expired == 0

    def test_totals_are_of_a_part(self, store: Store) -> None:
        put(store, some(context=Context(user_id="ann", conversation_id="c1")))
        put(store, some(context=Context(user_id="ann", conversation_id="c2"), category=Category.GOAL))
        put(store, some(context=Context(user_id="bob", conversation_id="c1")))
        purge(store, put(store, some(context=Context(user_id="bob", conversation_id="c1"))).id)

        def size(of: Of, name: str) -> int:
            part = Part(of, name)
            assert store.created_before(part, EVERYTHING, [later(1)]) == [totals(store, part).memories]
            return totals(store, part).memories

        assert (size(Of.USER, "ann"), size(Of.USER, "bob"), size(Of.USER, "c1")) == (2, 2, 0)
        assert (size(Of.CONVERSATION, "c1"), size(Of.CONVERSATION, "c2"), size(Of.CONVERSATION, "ann")) == (3, 1, 0)
        assert (size(Of.CATEGORY, "goal"), size(Of.CATEGORY, "fact"), size(Of.CATEGORY, "skill")) == (1, 3, 0)
        assert (size(Of.USER, "nobody"), size(Of.CONVERSATION, "nowhere")) == (0, 0)

    def test_totals_follow_every_change_and_show_each_caller_its_part(self, store: Store) -> None:
        """Whatever happens to memories, totals are what counting them one by one gives, for whoever asks."""
        create_spaces(store, "work")
        rng = np.random.default_rng(7)

        def any_of(*values: Any) -> Any:
            return values[rng.integers(len(values))]

        def drawn() -> dict[str, Any]:
            user, conversation = any_of("ann", "bob"), any_of(None, "c1")
            return {
                "category": any_of(*Category),
                "importance": any_of(0.1, 0.5, 0.9),
                "access_level": any_of(*AccessLevel),
                "status": any_of(*Status),
                "superseded_by": any_of(None, None, "x"),
                "expires_at": any_of(None, later(-1), later(1)),
                "context": Context(user_id=user, conversation_id=conversation),
                "metadata": any_of({}, {"a": "é"}),
            }

        known: dict[str, Memory] = {}
        gone: list[Memory] = []
        reads: Counter[str] = Counter()
        for step in range(120):
            match any_of("new", "new", "change", "text", "read", "judge", "purge") if known else "new":
                case "new":
                    space, at = any_of("default", "work"), later(float(rng.integers(9_000)))
                    new = some(f"text {rng.integers(5)}", space=space, created_at=at, **drawn())
                    known[new.id] = put(store, new, [QUERY] * int(rng.integers(3)))
                case "change":
                    old = any_of(*known.values())
                    known[old.id] = put(store, replace(old, version=old.version + 1, **drawn()), None)
                case "text":
                    old = any_of(*known.values())
                    text = f"text {rng.integers(5)}"
                    known[old.id] = put(store, replace(old, version=old.version + 1, content=text), [QUERY])
                case "read":
                    read = any_of(*known)
                    store.count_reads({read: 3}, at=later(float(step)))
                    reads[read] += 3
                case "judge":
                    with store.writing() as tx:
                        tx.judge_category(any_of(*known), agreed=any_of(True, False))
                case "purge":
                    gone.append(known.pop(any_of(*known)))
                    purge(store, gone[-1].id)
        memories = store.get(list(known), EVERYTHING)
        kept_ones = [memory for memory in memories if memory.state in (State.ACTIVE, State.ARCHIVED)]
        texts = {memory.content for memory in kept_ones}
        whole = totals(store)
        assert whole.repeats == len(kept_ones) - len(texts)
        assert sum(whole.text_bytes.values()) == sum(
            len(memory.content) + (len('"a":"é"'.encode()) if memory.metadata else 0) for memory in memories
        )
        assert whole.agreed <= whole.judged <= whole.memories

        parts: list[tuple[Part, Callable[[Memory], bool]]] = [
            (Part(), lambda memory: True),
            (Part(Of.USER, "ann"), lambda memory: memory.context.user_id == "ann"),
            (Part(Of.CONVERSATION, "c1"), lambda memory: memory.context.conversation_id == "c1"),
            (Part(Of.CATEGORY, "goal"), lambda memory: memory.category is Category.GOAL),
        ]
        scopes = [(Scope(space, sight),) for space in ("default", "work") for sight in Sight]
        for part, belongs in parts:
            for audience in [Audience("ann", each) for each in (*scopes, (*scopes[0], *scopes[5]))]:
                seen = [memory for memory in memories if _sees(audience, memory) and belongs(memory)]
                found = totals(store, part, audience)
                buried = [memory for memory in gone if _sees(audience, memory) and belongs(memory)]
                ever = [*seen, *buried]
                assert found.states == _counted([*(memory.state for memory in seen), *[State.PURGED] * len(buried)])
                assert found.expired == sum(
                    memory.state in (State.ACTIVE, State.SUPERSEDED) and memory.expires_at in (later(-1), NOW)
                    for memory in seen
                )
                assert found.categories == _counted(memory.category for memory in ever)
                assert sum(found.levels.values()) == len(ever)
                assert found.reads == sum(reads[memory.id] for memory in ever)
                assert found.squared_reads == sum(reads[memory.id] ** 2 for memory in ever)
                assert found.read_memories == sum(reads[memory.id] > 0 for memory in ever)
                moments = [later(9_000 * share / 7 - 3) for share in range(9)]
                assert store.created_before(part, audience, moments) == [
                    sum(memory.created_at < moment for memory in ever) for moment in moments
                ]

    def test_rebuilding_changes_no_totals(self, store: Store) -> None:
        for n in range(6):
            put(store, some(f"text {n % 3}", created_at=later(90 * n), context=Context(conversation_id="c")))
        store.count_reads({put(store, some()).id: 2}, at=NOW)
        store.flush_reads()
        before, counts = totals(store), store.created_before(Part(), EVERYTHING, [later(200)])
        happened = store.activity(Part(), EVERYTHING, since=NOW, until=NOW)

        store.rebuild()

        assert totals(store) == before
        assert store.created_before(Part(), EVERYTHING, [later(200)]) == counts == [4]
        assert store.activity(Part(), EVERYTHING, since=NOW, until=NOW) == happened

    def test_a_repeat_is_one_only_while_there_is_a_first(self, store: Store) -> None:
        first, second = put_all(store, [some("same"), some("same")])
        assert totals(store).repeats == 1

        first = changed(store, first, status=Status.DELETED)
        assert totals(store).repeats == 0

        changed(store, first, status=Status.ACTIVE)
        assert totals(store).repeats == 1

        purge(store, second.id)
        assert totals(store).repeats == 0

    def test_judged_categories_are_counted_once(self, store: Store) -> None:
        one, two = put_all(store, [some(), some(category=Category.GOAL)])
        with store.writing() as tx:
            tx.judge_category(one.id, agreed=False)
            tx.judge_category(one.id, agreed=True)
            tx.judge_category(two.id, agreed=False)
            tx.judge_category("unknown", agreed=False)

        assert (totals(store).judged, totals(store).agreed) == (2, 1)
        assert totals(store, Part(Of.CATEGORY, "goal")).agreed == 0
        assert got(store, one.id) == one

    @pytest.mark.parametrize("flushed", [True, False])
    def test_totals_include_reads_that_are_not_written_yet(self, store: Store, flushed: bool) -> None:
        often, once, never = put_all(store, [some(access_count=3), some(category=Category.GOAL), some()])
        store.count_reads({often.id: 2, once.id: 1, "unknown": 7}, at=NOW)
        if flushed:
            store.flush_reads()

        found = totals(store)

        assert (found.reads, found.squared_reads, found.read_memories) == (6, 26, 2)
        assert totals(store, Part(Of.CATEGORY, "goal")).reads == 1
        assert totals(store, audience=NOTHING).reads == 0
        assert got(store, never.id).access_count == 0

    # --- what happened when ---

    def test_memories_are_counted_to_the_millisecond(self, store: Store) -> None:
        """Around an hour, around a day, long ago and in the future."""
        moments = [
            datetime(2026, 1, 2, hour, minute, tzinfo=UTC) for hour, minute in ((0, 0), (3, 0), (3, 7), (23, 59))
        ]
        moments += [datetime(1950, 1, 1, tzinfo=UTC), datetime(2030, 5, 5, 5, 5, tzinfo=UTC)]
        for at in moments:
            put(store, some(created_at=at))

        around = [at + timedelta(milliseconds=step) for at in moments for step in (-1, 0, 1) if at.year > 1970]

        assert store.created_before(Part(), EVERYTHING, around) == [sum(at < one for at in moments) for one in around]

    def test_the_first_hour_is_known(self, store: Store) -> None:
        put(store, some(created_at=later(90)))
        moved = put(store, some(created_at=NOW, category=Category.GOAL))

        assert totals(store).since == NOW.replace(minute=0, second=0, microsecond=0)
        changed(store, moved, category=Category.EVENT)
        assert totals(store, Part(Of.CATEGORY, "goal")).since is None
        assert totals(store, Part(Of.CATEGORY, "event")).since == totals(store).since

    @pytest.mark.parametrize("flushed", [True, False])
    def test_reads_are_known_by_weekday_and_hour(self, store: Store, flushed: bool) -> None:
        """NOW is a Friday, past three."""
        one, two = put_all(store, [some(access_count=9), some(category=Category.GOAL)])
        store.count_reads({one.id: 2, two.id: 1}, at=NOW)
        store.count_reads({one.id: 4}, at=NOW + timedelta(hours=21))
        store.count_reads({one.id: 8}, at=NOW + timedelta(days=7, hours=1))
        if flushed:
            store.flush_reads()

        def reads(part: Part = Part(), **stretch: float) -> dict[tuple[int, int], int]:  # noqa: B008 -- frozen
            return dict(store.activity(part, EVERYTHING, since=NOW, until=NOW + timedelta(**stretch)).reads)

        assert reads(days=9) == {(4, 3): 3, (5, 0): 4, (4, 4): 8}
        assert reads(hours=21) == {(4, 3): 3, (5, 0): 4}
        assert reads(minutes=1) == {(4, 3): 3}
        assert reads(Part(Of.CATEGORY, "goal"), days=9) == {(4, 3): 1}
        assert store.activity(Part(), NOTHING, since=NOW, until=NOW) == Activity()

    def test_deletions_are_known_by_when_they_were(self, store: Store) -> None:
        for minutes in (-1, 0, 5, 6):
            put(store, some(status=Status.DELETED, deleted_at=later(minutes)))
        put(store, some(deleted_at=later(1)))
        private = some(access_level=AccessLevel.PRIVATE, status=Status.DELETED, deleted_at=later(2))
        purge(store, put(store, private).id)

        assert store.activity(Part(), EVERYTHING, since=NOW, until=later(5)).deleted == 3
        strangers = Audience("stranger", (Scope(None, Sight.OWN),))
        assert store.activity(Part(), strangers, since=NOW, until=later(5)).deleted == 2

    def test_consolidations_are_counted(self, store: Store) -> None:
        memory = put(store, some(category=Category.GOAL))
        with store.writing() as tx:
            tx.count_consolidation(memory.id, sources=3, at=NOW)
            tx.count_consolidation(memory.id, sources=2, at=later(30))
            tx.count_consolidation("unknown", sources=2, at=NOW)

        found = store.activity(Part(Of.CATEGORY, "goal"), EVERYTHING, since=NOW, until=later(60))

        assert (found.consolidations, found.consolidated) == (2, 5)
        assert store.activity(Part(), EVERYTHING, since=later(60), until=later(120)) == Activity()

    # --- leases ---

    def test_a_lease_has_one_holder(self, store: Store) -> None:
        assert store.lease("purge", holder="one", seconds=60)
        assert not store.lease("purge", holder="two", seconds=60)
        assert store.lease("embed", holder="two", seconds=60)

    def test_a_holder_renews_its_lease(self, store: Store) -> None:
        assert store.lease("purge", holder="one", seconds=60)
        assert store.lease("purge", holder="one", seconds=60)

    def test_a_lease_ends(self, store: Store) -> None:
        assert store.lease("purge", holder="one", seconds=0)
        assert store.lease("purge", holder="two", seconds=60)
        assert not store.lease("purge", holder="one", seconds=60)

    def test_a_lease_is_given_back_by_its_holder_only(self, store: Store) -> None:
        store.lease("purge", holder="one", seconds=60)

        store.release("purge", holder="two")
        assert not store.lease("purge", holder="two", seconds=60)

        store.release("purge", holder="one")
        assert store.lease("purge", holder="two", seconds=60)

    # --- jobs ---

    def test_a_job_is_kept_whole(self, store: Store, reopen: Reopen) -> None:
        job = a_job(
            caller=Caller(user="ann", role=Role.MEMBER, spaces=frozenset({"default", "work"})),
            provenance=Provenance(client="editor", caller="ann", transport="stdio", dialect="system"),
            state={"at": 7},
            done=3,
            total=9,
            note="half way",
            cancelling=True,
            attempts=2,
            started_at=later(1),
        )
        put_job(store, job)

        assert reopen().job(job.id) == job

    def test_an_unknown_job_is_none(self, store: Store) -> None:
        assert store.job("job_unknown") is None

    def test_writing_a_job_again_replaces_it(self, store: Store) -> None:
        job = a_job()
        put_job(store, job)
        done = replace(job, status=JobStatus.COMPLETED, result={"synced": 3}, finished_at=later(2))
        put_job(store, done)

        assert store.jobs() == [done]

    def test_an_unfinished_job_runs_while_its_lease_does(self, store: Store) -> None:
        job = a_job()
        put_job(store, job)
        store.lease(f"job:{job.id}", holder="one", seconds=60)
        running = store.job(job.id)
        store.release(f"job:{job.id}", holder="one")
        waiting = store.job(job.id)

        assert running == replace(job, status=JobStatus.RUNNING)
        assert waiting == job

    def test_a_finished_job_is_finished_whatever_its_lease_says(self, store: Store) -> None:
        job = a_job(status=JobStatus.FAILED, error={"code": "internal"}, finished_at=NOW)
        put_job(store, job)
        store.lease(f"job:{job.id}", holder="one", seconds=60)

        assert store.job(job.id) == job

    def test_jobs_are_listed_newest_first_by_user_and_by_being_unfinished(self, store: Store) -> None:
        first, second = a_job(), a_job(caller=Caller(user="bob"), provenance=Provenance(caller="bob"))
        third = a_job(status=JobStatus.COMPLETED, finished_at=NOW)
        for job in (first, second, third):
            put_job(store, job)

        assert store.jobs() == [third, second, first]
        assert store.jobs(limit=1) == [third]
        assert store.jobs(user="local") == [third, first]
        assert store.jobs(user="local", unfinished=True) == [first]

    def test_old_finished_jobs_are_dropped(self, store: Store) -> None:
        old, young = (a_job(status=JobStatus.CANCELLED, finished_at=later(n)) for n in (1, 3))
        unfinished = a_job()
        for job in (old, young, unfinished):
            put_job(store, job)
        with store.writing() as tx:
            tx.drop_jobs(finished_before=later(2))

        assert store.jobs() == [unfinished, young]

    # --- held memories ---

    def test_a_held_memory_is_held_off_from_others(self, store: Store) -> None:
        with store.writing() as tx:
            assert tx.hold(["mem_a", "mem_b"], holder="one", seconds=60) is None

        assert store.held(["mem_c", "mem_b"]) == ["mem_b"]
        assert store.held(["mem_a", "mem_b"], but="one") == []

    def test_all_are_held_or_none(self, store: Store) -> None:
        with store.writing() as tx:
            tx.hold(["mem_b"], holder="one", seconds=60)
            assert tx.hold(["mem_a", "mem_b"], holder="two", seconds=60) == "mem_b"

        assert store.held(["mem_a"]) == []

    def test_a_hold_is_renewed_and_ends(self, store: Store) -> None:
        with store.writing() as tx:
            assert tx.hold(["mem_a"], holder="one", seconds=60) is None
            assert tx.hold(["mem_a"], holder="one", seconds=0) is None
            assert tx.hold(["mem_a"], holder="two", seconds=60) is None

        assert store.held(["mem_a"], but="one") == ["mem_a"]

    def test_a_holder_lets_go_of_its_own_only(self, store: Store) -> None:
        with store.writing() as tx:
            tx.hold(["mem_a", "mem_b"], holder="one", seconds=60)
            tx.hold(["mem_c"], holder="two", seconds=60)
            tx.let_go("one")

        assert store.held(["mem_a", "mem_b", "mem_c"]) == ["mem_c"]

    # --- cold storage ---

    def test_what_is_put_away_leaves_an_empty_row_and_an_archive(self, store: Store, reopen: Reopen) -> None:
        memory = put(store, some("User lives in Seattle", metadata={"a": 1}, tags=("home",)))
        archived = changed(store, memory, status=Status.ARCHIVED)
        archive = put_away(store, archived, packed=b"packed")

        left = got(reopen(), memory.id)

        assert (left.content, left.title, left.path, left.metadata) == ("", "", "", {})
        assert (left.version, left.status, left.tags) == (2, Status.ARCHIVED, ("home",))
        assert reopen().archives([memory.id, "mem_unknown"]) == {memory.id: archive}
        assert reopen().versions(memory.id) == []

    def test_what_is_put_away_is_matched_by_words_where_archived_ones_are_asked_for(self, store: Store) -> None:
        memory, other = put(store, some("User lives in Seattle")), put(store, some("Seattle is rainy"))
        put_away(store, changed(store, memory, status=Status.ARCHIVED))
        both = Filter(states=frozenset({State.ACTIVE, State.ARCHIVED}))

        assert matched(store, "Seattle") == [other.id]
        assert set(matched(store, "Seattle", both)) == {memory.id, other.id}
        assert matched(store, "lives", both) == [memory.id]
        assert store.matched_words("lives Seattle", [memory.id]) == {memory.id: ("lives", "Seattle")}

    def test_its_vectors_go_unless_they_are_kept(self, store: Store) -> None:
        dropped, kept = put(store, some("one")), put(store, some("two"))
        put_away(store, changed(store, dropped, status=Status.ARCHIVED))
        put_away(store, changed(store, kept, status=Status.ARCHIVED), keep_vectors=True)
        archived = Filter(states=frozenset({State.ARCHIVED}))

        assert ids(store.nearest(QUERY, archived, EVERYTHING, now=NOW, limit=9)) == [kept.id]
        assert set(store.vectors([dropped.id, kept.id])) == {kept.id}
        assert store.pending(limit=9) == []

    def test_what_is_put_away_can_still_be_changed_but_not_its_text(self, store: Store) -> None:
        memory = put(store, some("User lives in Seattle"))
        put_away(store, changed(store, memory, status=Status.ARCHIVED))
        row = got(store, memory.id)

        deleted = changed(store, row, status=Status.DELETED, importance=0.9)
        with pytest.raises(Conflict):
            put(store, replace(deleted, version=4, content="other"), [QUERY])

        assert (got(store, memory.id).status, got(store, memory.id).importance) == (Status.DELETED, 0.9)
        assert store.twins(memory.content.encode()[:32], EVERYTHING) == []

    def test_the_fingerprint_of_what_is_put_away_stays(self, store: Store) -> None:
        memory = put(store, some("User lives in Seattle"))
        put_away(store, changed(store, memory, status=Status.ARCHIVED))

        assert ids(store.twins(memory.content.encode()[:32], EVERYTHING)) == [memory.id]

    def test_the_name_of_what_is_put_away_stays(self, store: Store) -> None:
        memory = put(store, some(kind=Kind.DECISION, detail={"name": "decision_x_1_abcd", "reasoning": "because"}))
        put_away(store, changed(store, memory, status=Status.ARCHIVED))

        assert got(store, memory.id).detail == {"name": "decision_x_1_abcd"}

    def test_putting_away_twice_is_a_conflict(self, store: Store) -> None:
        memory = changed(store, put(store, some()), status=Status.ARCHIVED)
        put_away(store, memory)

        with pytest.raises(Conflict):
            put_away(store, memory)

    def test_what_is_brought_back_is_as_before(self, store: Store) -> None:
        first = put(store, some("User lives in Seattle", metadata={"a": 1}))
        second = changed(store, first, importance=0.7)
        versions = store.versions(first.id)
        archived = changed(store, second, status=Status.ARCHIVED)
        put_away(store, archived, keep_vectors=True)
        with store.writing() as tx:
            back = tx.bring_back(second, versions, at=NOW)

        assert back == got(store, first.id) == replace(archived, seq=first.seq)
        assert store.versions(first.id) == versions
        assert store.archives([first.id]) == {}
        assert matched(store, "Seattle", Filter(states=EVERY_STATE)) == [first.id]
        assert store.check(deep=True).problems == store.check(deep=True).wrong_hashes == ()

    def test_what_was_not_put_away_is_not_brought_back(self, store: Store) -> None:
        memory = put(store, some())

        with pytest.raises(NotFound), store.writing() as tx:
            tx.bring_back(memory, [], at=NOW)

    def test_a_description_comes_back_alone(self, store: Store) -> None:
        memory, active = put(store, some("User lives in Seattle", metadata={"a": 1})), put(store, some())
        put_away(store, changed(store, memory, status=Status.ARCHIVED))
        with store.writing() as tx:
            tx.describe(memory)
            tx.describe(replace(active, title="another"))

        described = got(store, memory.id)
        assert (described.title, described.metadata, described.content) == (memory.title, {"a": 1}, "")
        assert memory.id in store.archives([memory.id])
        assert got(store, active.id) == active

    def test_purging_what_was_put_away_erases_it_and_removes_its_object(self, store: Store) -> None:
        memory = put(store, some("User lives in Seattle"))
        put_away(store, changed(store, memory, status=Status.ARCHIVED), object="glacier/arch_1")
        with store.writing() as tx:
            tx.purge(memory.id, at=NOW)

        assert store.archives([memory.id]) == {}
        assert store.objects_due(NOW, 9) == ["glacier/arch_1"]
        assert matched(store, "Seattle", Filter(states=EVERY_STATE)) == []

    def test_objects_are_due_unless_a_memory_claims_them(self, store: Store) -> None:
        memory = put(store, some())
        with store.writing() as tx:
            tx.announce_objects(["glacier/arch_1", "glacier/arch_2"], due=later(60))
        put_away(store, changed(store, memory, status=Status.ARCHIVED), object="glacier/arch_1")

        assert store.objects_due(later(59), 9) == []
        assert store.objects_due(later(60), 9) == ["glacier/arch_2"]
        with store.writing() as tx:
            tx.objects_removed(["glacier/arch_2"])
        assert store.objects_due(later(60), 9) == []

    def test_what_is_brought_back_leaves_its_object_to_be_removed(self, store: Store) -> None:
        memory = put(store, some())
        put_away(store, changed(store, memory, status=Status.ARCHIVED), object="glacier/arch_1")
        with store.writing() as tx:
            tx.bring_back(memory, [], at=later(1))

        assert store.objects_due(later(1), 9) == ["glacier/arch_1"]

    def test_hot_bytes_are_what_putting_away_frees(self, store: Store) -> None:
        memory = put(store, some("x" * 1000))
        with_vectors = store.hot_bytes([memory.id], vectors=True)[memory.id]
        without = store.hot_bytes([memory.id], vectors=False)[memory.id]
        put_away(store, changed(store, memory, status=Status.ARCHIVED))

        assert with_vectors == without + 4 * DIMENSION
        assert without >= 1000
        assert store.hot_bytes([memory.id], vectors=True)[memory.id] <= 4  # two times an empty JSON object

    def test_totals_count_what_is_packed(self, store: Store) -> None:
        memory = put(store, some("x" * 1000))
        put_away(store, changed(store, memory, status=Status.ARCHIVED), packed=b"12345")
        away = store.totals(Part(), EVERYTHING, now=NOW)
        with store.writing() as tx:
            tx.bring_back(memory, [], at=NOW)
        back = store.totals(Part(), EVERYTHING, now=NOW)

        assert (dict(away.text_bytes), dict(away.vector_bytes)) == ({State.ARCHIVED: 5}, {State.ARCHIVED: 0})
        assert dict(back.text_bytes) == {State.ARCHIVED: 1000}
        assert store.archived_bytes() == 0

    def test_rebuilding_leaves_what_was_put_away(self, store: Store) -> None:
        memory = put(store, some("User lives in Seattle"))
        put_away(store, changed(store, memory, status=Status.ARCHIVED), packed=b"12345")
        totals = store.totals(Part(), EVERYTHING, now=NOW)

        store.rebuild()

        assert matched(store, "Seattle", Filter(states=EVERY_STATE)) == [memory.id]
        assert store.pending(limit=9) == []
        assert store.totals(Part(), EVERYTHING, now=NOW) == totals

    def test_dropping_vectors_lets_what_was_put_away_wait_for_nothing(self, store: Store) -> None:
        memory = put(store, some())
        put_away(store, changed(store, memory, status=Status.ARCHIVED), keep_vectors=True)
        with store.writing() as tx:
            tx.drop_vectors()

        assert store.pending(limit=9) == []
        assert store.vectors([memory.id]) == {}
        assert store.check().with_vectors == 1

    def test_bit_rot_of_what_is_packed_is_found(self, store: Store) -> None:
        memory = put(store, some())
        put_away(store, changed(store, memory, status=Status.ARCHIVED), packed=b"packed", checksum=b"other")

        assert store.check(deep=True).wrong_hashes == (memory.id,)

    def test_memories_are_filtered_by_when_they_were_last_handed_out(self, store: Store) -> None:
        old, young = put(store, some(accessed_at=later(1))), put(store, some(accessed_at=later(3)))

        assert listed(store, Filter(accessed_until=later(1))) == [old.id]
        assert set(listed(store, Filter(accessed_until=later(3)))) == {old.id, young.id}

    # --- check and rebuild ---

    def test_a_whole_store_has_no_problems(self, store: Store) -> None:
        put(store, some())
        put(store, some(), [QUERY], parts=2)
        with store.writing() as tx:
            tx.purge(put_in(tx, some()).id, at=NOW)

        for deep in (False, True):
            checkup = store.check(deep=deep)

            assert checkup.problems == checkup.wrong_hashes == ()
            assert (checkup.memories, checkup.with_words, checkup.with_vectors, checkup.pending) == (2, 2, 1, 1)
            assert checkup.bytes_on_disk > 0
            assert checkup.schema > 0

    def test_a_backup_holds_what_was_there_and_never_overwrites(self, store: Store, tmp_path: Path) -> None:
        memory = put(store, some())
        done: list[tuple[int, int]] = []

        checkup = store.backup(tmp_path / "copy.db", progress=lambda *now: done.append(now))

        assert (checkup.memories, checkup.problems, checkup.wrong_hashes) == (1, (), ())
        assert done[-1][0] == done[-1][1] > 0
        before = (tmp_path / "copy.db").read_bytes()
        with pytest.raises(Conflict):
            store.backup(tmp_path / "copy.db")
        assert (tmp_path / "copy.db").read_bytes() == before
        assert got(store, memory.id) == memory

    def test_tending_ends_and_changes_no_answer(self, store: Store) -> None:
        near, far = put(store, some(), [at_cosine(0.9)]), put(store, some(), [at_cosine(0.1)])
        before = store.nearest(QUERY, Filter(), EVERYTHING, now=NOW, limit=9)

        steps = 0
        while store.tend():
            steps += 1
            assert steps < 100

        assert not store.needs_tending()
        assert store.nearest(QUERY, Filter(), EVERYTHING, now=NOW, limit=9) == before
        assert [match.memory for match in before] == [near.id, far.id]

    def test_rebuilding_changes_nothing_in_a_whole_store(self, store: Store) -> None:
        memories = put_all(store, (some(text) for text, _ in SCRIPTS))
        waiting = put(store, some("waits"), (), parts=2)

        store.rebuild()

        assert matched(store, "python") == [memory.id for memory in reversed(memories) if "Python" in memory.content]
        assert matched(store, "waits") == [waiting.id]
        assert len(nearest(store)) == len(memories)
        assert ids(one.memory for one in store.pending(limit=99)) == [waiting.id]
        assert store.check(deep=True).problems == ()

    # --- paths, and files that memories are kept in ------------------------------------------------------------------

    def test_a_memory_is_found_by_its_path_in_its_space(self, store: Store) -> None:
        memory = put(store, some(path="a/b"))
        put(store, some(path="a/b", status=Status.DELETED))

        assert store.at_path("default", "a/b", EVERYTHING) == memory
        assert store.at_path("default", "a", EVERYTHING) is None
        assert store.at_path("nowhere", "a/b", EVERYTHING) is None
        assert store.at_path("default", "a/b", NOTHING) is None

    def test_entries_are_what_lies_below_a_section(self, store: Store) -> None:
        put_all(store, [some(path=path) for path in ("a", "a/b", "a/b/c", "ab/c", "a-b/c", "z")])
        put_all(store, [some(path="a/gone", status=Status.ARCHIVED), some(path="a/old", expires_at=NOW)])

        assert [entry.path for entry in store.entries("default", "a", EVERYTHING)] == ["a/b", "a/b/c", "a/old"]
        assert len(store.entries("default", "", EVERYTHING)) == 7
        assert store.entries("default", "", NOTHING) == []
        assert store.entries("nowhere", "", EVERYTHING) == []

    def test_an_entry_tells_of_its_memory(self, store: Store) -> None:
        memory = put(store, some("Ünï", path="a/b", expires_at=later(5), superseded_by="mem_other"))
        [entry] = store.entries("default", "", EVERYTHING)

        assert (entry.id, entry.title, entry.length) == (memory.id, memory.title, 3)
        assert (entry.expires_at, entry.superseded_by) == (memory.expires_at, "mem_other")

    def test_sections_are_kept_with_those_below_them(self, store: Store) -> None:
        with store.writing() as tx:
            for path in ("a", "a/b", "ab"):
                tx.put_section("default", path, description=f"of {path}")
            tx.put_section("default", "a", description=None)
        assert store.sections("default") == {"a": None, "a/b": "of a/b", "ab": "of ab"}
        with store.writing() as tx:
            tx.drop_sections("default", "a")

        assert store.sections("default") == {"ab": "of ab"}
        with pytest.raises(SpaceNotFound), store.writing() as tx:
            tx.put_section("nowhere", "a", description=None)

    def test_a_memory_kept_as_a_file_waits_until_both_sides_agree(self, store: Store) -> None:
        memory, other = put_all(store, [some(path="a/b"), some()])
        with store.writing() as tx:
            tx.keep_as_file([memory.id])
        assert store.waiting() == {"default": 1}
        assert store.file_of(other.id) is None
        [file] = store.files("default")
        assert (file.memory, file.name, file.hash, file.waiting) == (memory.id, "", None, True)
        with store.writing() as tx:
            tx.in_sync(memory.id, name="a/b.md", hash=b"h", stamp="s", version=memory.version)

        assert store.waiting() == {}
        now = store.file_of(memory.id)
        assert now is not None
        assert (now.name, now.agreed_path, now.agreed_version, now.hash, now.stamp) == ("a/b.md", "a/b", 1, b"h", "s")
        assert store.files("default", waiting=True) == []

    @pytest.mark.parametrize("change", ["put", "purge", "link"])
    def test_whatever_changes_a_filed_memory_lets_its_file_wait(self, store: Store, change: str) -> None:
        memory, other = put_all(store, [some(path="a/b"), some()])
        with store.writing() as tx:
            tx.in_sync(memory.id, name="a/b.md", hash=b"h", stamp="s", version=1)
        assert store.waiting() == {}
        with store.writing() as tx:
            if change == "put":
                put_in(tx, replace(memory, version=2, tags=("new",)))
            elif change == "purge":
                tx.purge(memory.id, at=NOW)
            else:
                tx.relate(Link(kind=LinkKind.RELATED, source=memory.id, target=other.id, created_at=NOW))

        [file] = store.files("default", waiting=True)
        assert (file.memory, file.name) == (memory.id, "a/b.md")
        assert file.state is (State.PURGED if change == "purge" else State.ACTIVE)

    def test_what_changed_once_more_goes_on_waiting(self, store: Store) -> None:
        memory = put(store, some())
        with store.writing() as tx:
            tx.keep_as_file([memory.id])
            put_in(tx, replace(memory, version=2))
            tx.in_sync(memory.id, name="x.md", hash=b"h", stamp="", version=1)

        assert store.waiting() == {"default": 1}

    def test_reads_and_proposals_let_no_file_wait(self, store: Store) -> None:
        memory, other = put_all(store, [some(), some()])
        with store.writing() as tx:
            tx.in_sync(memory.id, name="x.md", hash=b"h", stamp="", version=1)
            tx.relate(Link(kind=LinkKind.MAY_OUTDATE, source=memory.id, target=other.id, created_at=NOW))
        store.count_reads({memory.id: 3}, at=NOW)
        store.flush_reads()

        assert store.waiting() == {}

    def test_a_moved_memory_lets_the_files_that_name_it_wait(self, store: Store) -> None:
        memory, other = put_all(store, [some(path="a/b"), some(path="c/d")])
        with store.writing() as tx:
            tx.relate(Link(kind=LinkKind.RELATED, source=memory.id, target=other.id, created_at=NOW))
            tx.in_sync(memory.id, name="a/b.md", hash=b"h", stamp="", version=1)
        with store.writing() as tx:
            put_in(tx, replace(other, version=2, path="e/f"))

        assert [file.memory for file in store.files("default", waiting=True)] == [memory.id]

    def test_a_mirrored_space_keeps_everything_as_files(self, store: Store) -> None:
        before, gone = put_all(store, [some(), some(status=Status.DELETED)])
        with store.writing() as tx:
            tx.mirror("default", on=True)
        after = put(store, some())
        assert store.mirrored("default")
        assert {file.memory for file in store.files("default", waiting=True)} == {before.id, after.id}
        with store.writing() as tx:
            put_in(tx, replace(gone, version=2, status=Status.ACTIVE))
            tx.mirror("default", on=False)
        put(store, some())

        assert {file.memory for file in store.files("default")} == {before.id, after.id, gone.id}
        assert not store.mirrored("default")
        assert not store.mirrored("nowhere")

    def test_a_file_is_found_by_its_name_while_its_memory_is_active(self, store: Store) -> None:
        memory, gone = put_all(store, [some(), some(status=Status.DELETED)])
        with store.writing() as tx:
            for one in (gone, memory):
                tx.in_sync(one.id, name="a/b.md", hash=b"h", stamp="", version=1)

        found, former = store.file_named("default", "a/b.md"), store.file_of(gone.id)
        assert found is not None
        assert found.memory == memory.id
        assert former is not None
        assert (former.name, former.hash) == ("", None)
        assert store.file_named("default", "a/c.md") is None
        assert store.file_named("nowhere", "a/b.md") is None

    def test_dropped_files_wait_no_longer(self, store: Store) -> None:
        memory = put(store, some())
        with store.writing() as tx:
            tx.keep_as_file([memory.id])
            tx.restamp({memory.id: "stamp"})
        file = store.file_of(memory.id)
        assert file is not None
        assert (file.name, file.stamp) == ("", "stamp")
        with store.writing() as tx:
            tx.drop_files([memory.id])

        assert (store.files("default"), store.waiting()) == ([], {})


def put_away(
    store: Store,
    memory: Memory,
    *,
    packed: bytes = b"packed",
    object: str | None = None,
    checksum: bytes | None = None,
    keep_vectors: bool = False,
) -> Archive:
    archive = Archive(
        id=f"arch_{new_id()}",
        tier=Tier.COLD if object is None else Tier.GLACIER,
        at=NOW,
        size=len(packed),
        checksum=checksum or sha256(packed).digest(),
        object=object,
        packed=packed if object is None else None,
    )
    with store.writing() as tx:
        tx.put_away(memory.id, archive, keep_vectors=keep_vectors)
    return archive


def a_job(**fields: Any) -> Job:
    usual: dict[str, Any] = {
        "id": f"job_{new_id()}",
        "kind": "sync",
        "caller": Caller(),
        "spaces": ("default",),
        "arguments": {"destination": "laptop"},
        "created_at": NOW,
    }
    return Job(**usual | fields)


def put_job(store: Store, job: Job) -> None:
    with store.writing() as tx:
        tx.put_job(job)


def _sees(audience: Audience, memory: Memory) -> bool:
    """The predicate, once more and slowly."""
    least = {AccessLevel.PUBLIC: Sight.PUBLIC, AccessLevel.SHARED: Sight.SHARED, AccessLevel.PRIVATE: Sight.ALL}
    own = memory.access_level is AccessLevel.PRIVATE and memory.context.user_id == audience.user
    needed = Sight.OWN if own else least[memory.access_level]
    return any(scope.space in (None, memory.space) and scope.sight >= needed for scope in audience.scopes)


def _counted(values: Iterable[Any]) -> dict[Any, int]:
    return dict(Counter(values))


def _given(filter: Filter, name: str) -> bool:
    return bool(getattr(filter, name) != getattr(Filter(), name))


def _varied() -> list[Memory]:
    """Memories in no order, with ties."""
    return [
        some(
            "x" * (1 + (7 * n) % 4),
            created_at=later((5 * n) % 4),
            updated_at=later((3 * n) % 5),
            accessed_at=later(10 + (7 * n) % 3),
            access_count=(11 * n) % 3,
            importance=((3 * n) % 4) / 10,
        )
        for n in range(11)
    ]


def _place(memory: Memory, order: Order) -> tuple[Any, int]:
    value = len(memory.content) if order is Order.LENGTH else getattr(memory, order)
    return value, memory.seq


def _recall(*memories: str, at: datetime = NOW) -> Recall:
    return Recall(at=at, space="default", user="ann", client="editor", memories=memories)

    # --- sync ---

    def test_a_memory_travels_with_its_aliases_and_vectors(self, store: Store) -> None:
        memory = put(store, some(hlc=7, origin="a"), (unit(1), unit(2)), parts=3)
        with store.writing() as tx:
            tx.alias("arch_1", memory.id)

        [replica] = store.replicas([memory.id, "unknown"], EVERYTHING, vectors=True)

        assert replica.memory == memory
        assert (replica.aliases, replica.parts, replica.erased, replica.seen) == (("arch_1",), 3, Erased.NO, {})
        assert np.allclose(replica.vectors, [unit(1), unit(2)], atol=1e-6)
        assert store.stamps([memory.id, "unknown"], EVERYTHING) == {memory.id: replica.stamp}
        assert store.replicas([memory.id], EVERYTHING)[0].vectors == ()

    def test_what_nobody_may_see_does_not_travel(self, store: Store) -> None:
        memory = put(store, some())

        assert store.replicas([memory.id], NOTHING) == []
        assert store.stamps([memory.id], NOTHING) == {}

    def test_a_change_by_another_store_is_remembered_as_seen(self, store: Store) -> None:
        memory = put(store, some(hlc=5, origin="a"))
        memory = changed(store, memory, hlc=6, origin="a")
        assert store.stamps([memory.id], EVERYTHING)[memory.id].seen == {}

        memory = changed(store, memory, hlc=9, origin="b")

        assert store.stamps([memory.id], EVERYTHING)[memory.id].seen == {"a": 6}

    def test_a_tombstone_travels_and_says_whether_it_was_wished(self, store: Store) -> None:
        wished, due = put(store, some(hlc=5, origin="a")), put(store, some(hlc=5, origin="a", version=4))
        with store.writing() as tx:
            tx.purge(wished.id, at=NOW)
            tx.purge(due.id, at=later(9), final=False)

        one, other = store.replicas([wished.id, due.id], EVERYTHING)

        assert (one.erased, other.erased) == (Erased.FINAL, Erased.IN_TIME)
        assert one.memory.version == 2
        assert (other.memory.version, other.memory.hlc, other.memory.origin) == (4, 5, "a")
        assert other.memory.updated_at == due.updated_at
        assert (one.memory.content, other.memory.content) == ("", "")

    def test_a_replica_is_written_as_it_is_and_found(self, store: Store) -> None:
        memory = some("User plays the cello", version=7, hlc=70, origin="b", tags=("music",))

        take(store, Replica(memory=memory, seen={"a": 3}, aliases=("backup_1",), parts=1), (QUERY,))

        [replica] = store.replicas([memory.id], EVERYTHING)
        assert replica.memory == replace(memory, seq=replica.memory.seq)
        assert (replica.seen, replica.aliases) == ({"a": 3}, ("backup_1",))
        assert matched(store, "cello") == [memory.id]
        assert nearest(store) == [memory.id]
        assert got(store, "backup_1").id == memory.id

    def test_a_replica_replaces_what_is_here_which_joins_the_history(self, store: Store) -> None:
        memory = put(store, some("tea", version=5, hlc=50, origin="a"))
        other = replace(memory, content="milk", version=6, hlc=40, origin="b")

        take(store, Replica(memory=other, parts=1), ())

        [replica] = store.replicas([memory.id], EVERYTHING)
        assert (replica.memory.content, replica.memory.version, replica.memory.hlc) == ("milk", 6, 40)
        assert replica.seen == {"a": 50}
        assert [version.memory.content for version in store.versions(memory.id)] == ["tea"]
        assert matched(store, "tea") == []
        assert matched(store, "milk") == [memory.id]
        assert [one.memory.id for one in store.pending(limit=9)] == [memory.id]

    def test_of_the_same_state_only_version_and_seen_are_written(self, store: Store) -> None:
        memory = put(store, some("tea", version=2, hlc=50, origin="a"))

        take(store, Replica(memory=replace(memory, version=4), seen={"b": 9}, parts=1), None)

        [replica] = store.replicas([memory.id], EVERYTHING)
        assert (replica.memory.version, replica.seen) == (4, {"b": 9})
        assert store.versions(memory.id) == []
        assert nearest(store) == [memory.id]

    def test_a_tombstone_erases_what_is_here(self, store: Store) -> None:
        memory = put(store, some("tea", hlc=50, origin="a"))
        gone = replace(memory, content="", title="", path="", status=Status.DELETED, version=3, hlc=60, origin="b")

        take(store, Replica(memory=gone, erased=Erased.FINAL), None)

        assert store.get([memory.id], EVERYTHING) == []
        assert matched(store, "tea") == []
        assert store.stamps([memory.id], EVERYTHING)[memory.id] == Stamp(
            hlc=60, origin="b", version=3, erased=Erased.FINAL, seen={"a": 50}
        )
        assert store.count(Filter(states=frozenset({State.PURGED})), EVERYTHING, now=NOW) == 1

    def test_a_tombstone_of_a_memory_never_seen_is_kept(self, store: Store) -> None:
        gone = some("", title="", path="", status=Status.DELETED, hlc=60, origin="b")

        take(store, Replica(memory=gone, erased=Erased.IN_TIME), None)

        assert store.get([gone.id], EVERYTHING) == []
        assert store.stamps([gone.id], EVERYTHING)[gone.id].erased is Erased.IN_TIME

    def test_what_was_erased_in_time_comes_back_if_it_was_recovered_elsewhere(self, store: Store) -> None:
        memory = put(store, some("tea", hlc=50, origin="a", status=Status.DELETED))
        with store.writing() as tx:
            tx.purge(memory.id, at=NOW, final=False)

        take(store, Replica(memory=replace(memory, status=Status.ACTIVE, version=2, hlc=60), parts=1), (QUERY,))

        assert got(store, memory.id).content == "tea"
        assert matched(store, "tea") == [memory.id]
        assert nearest(store) == [memory.id]
        states = store.totals(Part(), EVERYTHING, now=NOW).states
        assert states == {State.ACTIVE: 1}

    def test_a_replica_on_a_taken_path_is_refused(self, store: Store) -> None:
        holder = put(store, some("here", path="notes/a"))

        with pytest.raises(Conflict):
            take(store, Replica(memory=some("there", path="notes/a"), parts=1), ())

        assert store.path_holder("default", "notes/a", EVERYTHING) == holder
        assert store.path_holder("default", "notes/b", EVERYTHING) is None
        assert store.path_holder("nowhere", "notes/a", EVERYTHING) is None

    def test_an_alias_of_another_memory_stays_its_own(self, store: Store) -> None:
        first = put(store, some("first"))
        with store.writing() as tx:
            tx.alias("backup_1", first.id)

        take(store, Replica(memory=some("second"), aliases=("backup_1", first.id), parts=1), ())

        assert got(store, "backup_1").id == first.id
        assert got(store, first.id).content == "first"

    def test_the_clock_is_past_what_it_has_seen(self, store: Store) -> None:
        far = (milliseconds(NOW) + 10**9) << 16
        with store.writing() as tx:
            tx.observe(far)
            assert tx.tick(NOW) > far

    def test_pointing_changes_neither_version_nor_stamp(self, store: Store) -> None:
        old, new = put(store, some("old", hlc=5, origin="a")), put(store, some("new"))
        with store.writing() as tx:
            tx.point(old.id, supersedes=None, superseded_by=new.id)

        assert got(store, old.id) == replace(old, superseded_by=new.id)
        assert listed(store) == [new.id]
        with store.writing() as tx:
            tx.point(old.id, supersedes=None, superseded_by=None)
        assert set(listed(store)) == {old.id, new.id}

    def test_spaces_are_told_with_their_descriptions(self, store: Store) -> None:
        with store.writing() as tx:
            tx.create_space("work", at=NOW, description="What the team knows")

        assert store.described_spaces() == {"default": None, "work": "What the team knows"}

    def test_an_alias_is_moved_to_another_memory(self, store: Store) -> None:
        first, second = put(store, some("first")), put(store, some("second"))
        with store.writing() as tx:
            tx.alias("default/checkpoint_1", first.id)
            tx.move_alias("default/checkpoint_1", second.id)
            tx.move_alias("default/checkpoint_2", first.id)

        assert got(store, "default/checkpoint_1").id == second.id
        assert got(store, "default/checkpoint_2").id == first.id

    def test_checkpoints_are_numbered_past_those_from_elsewhere(self, store: Store) -> None:
        with store.writing() as tx:
            tx.note_checkpoint("default", 5)
            tx.note_checkpoint("default", 3)

            assert tx.number_checkpoint("default") == 6

    def test_a_count_of_reads_is_written(self, store: Store) -> None:
        memory = put(store, some())
        with store.writing() as tx:
            tx.set_access_count(memory.id, 5)

        assert got(store, memory.id) == replace(memory, access_count=5)
        assert store.totals(Part(), EVERYTHING, now=NOW).reads == 5

    def test_endpoints_are_kept_by_name(self, store: Store) -> None:
        one = Endpoint(name="one", url="sqlite:////a", spaces=("work",), added_at=NOW, synced_at=later(1))
        two = Endpoint(name="two", url="sqlite:////b", added_at=NOW)
        with store.writing() as tx:
            tx.put_endpoint(two)
            tx.put_endpoint(replace(one, url="old"))
            tx.put_endpoint(one)

        assert store.endpoints() == [one, two]
        with store.writing() as tx:
            assert tx.remove_endpoint("one")
            assert not tx.remove_endpoint("one")
        assert store.endpoints() == [two]

    def test_how_far_a_feed_was_heard_is_kept_by_speaker_listener_and_space(self, store: Store) -> None:
        assert store.heard("a", "b", "default") == Heard()
        with store.writing() as tx:
            tx.hear("a", "b", "default", Heard(3, "x"))
            tx.hear("a", "b", "default", Heard(7, "y"))

        assert store.heard("a", "b", "default") == Heard(7, "y")
        assert store.heard("b", "a", "default") == Heard()
        assert store.heard("a", "b", "work") == Heard()

    def test_conflicts_wait_until_they_are_settled(self, store: Store) -> None:
        waits = SyncConflict(memory="m1", endpoint="drive", policy="manual", at=NOW, ours="{}", theirs="{}")
        with store.writing() as tx:
            tx.note_conflict(replace(waits, theirs="former"))
            first = tx.note_conflict(waits)
            second = tx.note_conflict(replace(waits, memory="m2", outcome="incoming", settled_at=NOW))

        assert store.sync_conflicts(open=True) == [first]
        assert store.sync_conflicts(open=False) == [second]
        assert store.sync_conflicts() == [second, first]
        assert store.sync_conflicts(endpoint="stick") == []
        assert store.sync_conflicts(memory="m2") == [second]
        with store.writing() as tx:
            tx.settle_conflict(first.number, "ours", at=later(1))
        assert store.sync_conflicts(open=True) == []
        assert store.sync_conflicts(memory="m1") == [replace(first, outcome="ours", settled_at=later(1))]

    def test_a_purge_erases_what_conflicts_say_of_a_memory(self, store: Store) -> None:
        memory = put(store, some())
        conflict = SyncConflict(memory=memory.id, endpoint="drive", policy="manual", at=NOW, ours="tea", theirs="milk")
        with store.writing() as tx:
            tx.note_conflict(conflict)
            tx.purge(memory.id, at=NOW)

        [erased] = store.sync_conflicts()
        assert (erased.ours, erased.theirs, erased.outcome) == (None, None, "erased")

    def test_an_endpoint_takes_the_conflicts_that_wait_for_it_along(self, store: Store) -> None:
        with store.writing() as tx:
            tx.put_endpoint(Endpoint(name="drive", url="x", added_at=NOW))
            tx.note_conflict(SyncConflict(memory="m1", endpoint="drive", policy="manual", at=NOW))
            tx.remove_endpoint("drive")

        assert store.sync_conflicts() == []

    def test_a_new_origin_signs_what_comes_from_now_on(self, store: Store, reopen: Reopen) -> None:
        former = store.origin
        memory = put(store, some(hlc=5, origin=former))
        with store.writing() as tx:
            origin = tx.renew_origin()

        assert origin != former
        assert store.origin == origin
        assert got(store, memory.id).origin == former
        assert reopen().origin == origin

    def test_a_late_new_origin_signs_what_the_store_had_made_too(self, store: Store) -> None:
        former = store.origin
        memory = put(store, some(hlc=5, origin=former))
        foreign = put(store, some(hlc=5, origin="b"))
        with store.writing() as tx:
            origin = tx.renew_origin(late=True)

        assert got(store, memory.id).origin == origin
        assert got(store, foreign.id).origin == "b"
        assert store.stamps([memory.id], EVERYTHING)[memory.id].seen == {}


def take(store: Store, replica: Replica, vectors: Sequence[Vector] | None) -> None:
    with store.writing() as tx:
        tx.replicate(
            replica,
            fingerprint=None if replica.erased else replica.memory.content.encode()[:32],
            vectors=vectors,
            change=Change(user="sync", at=NOW),
        )
