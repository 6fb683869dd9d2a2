"""What a store promises about paths, and files that memories are kept in, as tests. Part of `suite.py`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scrubjay.errors import SpaceNotFound
from scrubjay.stores.promises.memories import Store
from scrubjay.values.callers import Audience, Scope, Sight
from scrubjay.values.memory import AccessLevel, Context, Link, LinkKind, State, Status
from tests.stores.contract.samples import EVERYTHING, NOTHING, NOW, later, put, put_all, put_in, some


class FilesContract:
    def test_a_memory_is_found_by_its_path_in_its_space(self, store: Store) -> None:
        memory = put(store, some(path="a/b"))
        put(store, some(path="a/b", status=Status.DELETED))

        assert store.files.at_path("default", "a/b", EVERYTHING) == memory
        assert store.files.at_path("default", "a", EVERYTHING) is None
        assert store.files.at_path("nowhere", "a/b", EVERYTHING) is None
        assert store.files.at_path("default", "a/b", NOTHING) is None

    def test_at_a_path_ones_own_comes_first_then_what_is_shared_then_the_oldest_of_others(self, store: Store) -> None:
        for name in ("bob", "ann"):
            context = Context(user_id=name)
            put(store, some(id=name, path="a/b", access_level=AccessLevel.PRIVATE, context=context))

        def found(user: str, sight: Sight) -> str | None:
            memory = store.files.at_path("default", "a/b", Audience(user, (Scope("default", sight),)))
            return None if memory is None else memory.id

        assert [found("ann", Sight.ALL), found("ann", Sight.OWN), found("ann", Sight.SHARED)] == ["ann", "ann", None]
        assert [found("eve", Sight.ALL), found("eve", Sight.OWN)] == ["bob", None]
        put(store, some(id="all", path="a/b"))
        assert [found("ann", Sight.ALL), found("ann", Sight.SHARED)] == ["ann", "all"]
        assert [found("eve", Sight.ALL), found("eve", Sight.OWN)] == ["all", "all"]

    def test_entries_are_what_lies_below_a_section(self, store: Store) -> None:
        put_all(store, [some(path=path) for path in ("a", "a/b", "a/b/c", "ab/c", "a-b/c", "z")])
        put_all(store, [some(path="a/gone", status=Status.ARCHIVED), some(path="a/old", expires_at=NOW)])

        assert [entry.path for entry in store.files.entries("default", "a", EVERYTHING)] == ["a/b", "a/b/c", "a/old"]
        assert len(store.files.entries("default", "", EVERYTHING)) == 7
        assert store.files.entries("default", "", NOTHING) == []
        assert store.files.entries("nowhere", "", EVERYTHING) == []

    def test_an_entry_tells_of_its_memory(self, store: Store) -> None:
        memory = put(store, some("Ünï", path="a/b", expires_at=later(5), superseded_by="mem_other"))
        [entry] = store.files.entries("default", "", EVERYTHING)

        assert (entry.id, entry.title, entry.length) == (memory.id, memory.title, 3)
        assert (entry.expires_at, entry.superseded_by) == (memory.expires_at, "mem_other")

    def test_a_withdrawn_file_comes_back_with_the_next_change(self, store: Store) -> None:
        memory = put(store, some(path="a/b"))
        with store.writing() as tx:
            tx.files.keep([memory.id])
            tx.files.in_sync(memory.id, name="a/b.md", hash=b"h", stamp="s", version=1)
            tx.files.withdraw(memory.id, version=1)

        file = store.files.of(memory.id)
        assert file is not None
        assert (file.name, file.hash, file.waiting) == ("", None, False)
        assert store.files.find_by_name("default", "a/b.md") is None
        put(store, replace(memory, content="other", version=2))
        with store.writing() as tx:
            tx.files.withdraw(memory.id, version=1)  # it has changed since
        assert store.files.waiting() == {"default": 1}

    def test_sections_are_kept_with_those_below_them(self, store: Store) -> None:
        with store.writing() as tx:
            for path in ("a", "a/b", "ab"):
                tx.files.put_section("default", path, description=f"of {path}")
            tx.files.put_section("default", "a", description=None)
        assert store.files.sections("default") == {"a": None, "a/b": "of a/b", "ab": "of ab"}
        with store.writing() as tx:
            tx.files.drop_sections("default", "a")

        assert store.files.sections("default") == {"ab": "of ab"}
        with pytest.raises(SpaceNotFound), store.writing() as tx:
            tx.files.put_section("nowhere", "a", description=None)

    def test_a_memory_kept_as_a_file_waits_until_both_sides_agree(self, store: Store) -> None:
        memory, other = put_all(store, [some(path="a/b"), some()])
        with store.writing() as tx:
            tx.files.keep([memory.id])
        assert store.files.waiting() == {"default": 1}
        assert store.files.of(other.id) is None
        [file] = store.files.list("default")
        assert (file.memory, file.name, file.hash, file.waiting) == (memory.id, "", None, True)
        with store.writing() as tx:
            tx.files.in_sync(memory.id, name="a/b.md", hash=b"h", stamp="s", version=memory.version)

        assert store.files.waiting() == {}
        now = store.files.of(memory.id)
        assert now is not None
        assert (now.name, now.agreed_path, now.agreed_version, now.hash, now.stamp) == ("a/b.md", "a/b", 1, b"h", "s")
        assert store.files.list("default", waiting=True) == []

    @pytest.mark.parametrize("change", ["put", "purge", "link"])
    def test_whatever_changes_a_filed_memory_lets_its_file_wait(self, store: Store, change: str) -> None:
        memory, other = put_all(store, [some(path="a/b"), some()])
        with store.writing() as tx:
            tx.files.in_sync(memory.id, name="a/b.md", hash=b"h", stamp="s", version=1)
        assert store.files.waiting() == {}
        with store.writing() as tx:
            if change == "put":
                put_in(tx, replace(memory, version=2, tags=("new",)))
            elif change == "purge":
                tx.purge(memory.id, at=NOW)
            else:
                tx.history.relate(Link(kind=LinkKind.RELATED, source=memory.id, target=other.id, created_at=NOW))

        [file] = store.files.list("default", waiting=True)
        assert (file.memory, file.name) == (memory.id, "a/b.md")
        assert file.state is (State.PURGED if change == "purge" else State.ACTIVE)

    def test_what_changed_once_more_goes_on_waiting(self, store: Store) -> None:
        memory = put(store, some())
        with store.writing() as tx:
            tx.files.keep([memory.id])
            put_in(tx, replace(memory, version=2))
            tx.files.in_sync(memory.id, name="x.md", hash=b"h", stamp="", version=1)

        assert store.files.waiting() == {"default": 1}

    def test_reads_and_proposals_let_no_file_wait(self, store: Store) -> None:
        memory, other = put_all(store, [some(), some()])
        with store.writing() as tx:
            tx.files.in_sync(memory.id, name="x.md", hash=b"h", stamp="", version=1)
            tx.history.relate(Link(kind=LinkKind.MAY_OUTDATE, source=memory.id, target=other.id, created_at=NOW))
        store.tally.count({memory.id: 3}, at=NOW)
        store.flush_reads()

        assert store.files.waiting() == {}

    def test_a_moved_memory_lets_the_files_that_name_it_wait(self, store: Store) -> None:
        memory, other = put_all(store, [some(path="a/b"), some(path="c/d")])
        with store.writing() as tx:
            tx.history.relate(Link(kind=LinkKind.RELATED, source=memory.id, target=other.id, created_at=NOW))
            tx.files.in_sync(memory.id, name="a/b.md", hash=b"h", stamp="", version=1)
        with store.writing() as tx:
            put_in(tx, replace(other, version=2, path="e/f"))

        assert [file.memory for file in store.files.list("default", waiting=True)] == [memory.id]

    def test_a_mirrored_space_keeps_everything_as_files(self, store: Store) -> None:
        before, gone = put_all(store, [some(), some(status=Status.DELETED)])
        with store.writing() as tx:
            tx.files.mirror("default", on=True)
        after = put(store, some())
        assert store.files.mirrored("default")
        assert {file.memory for file in store.files.list("default", waiting=True)} == {before.id, after.id}
        with store.writing() as tx:
            put_in(tx, replace(gone, version=2, status=Status.ACTIVE))
            tx.files.mirror("default", on=False)
        put(store, some())

        assert {file.memory for file in store.files.list("default")} == {before.id, after.id, gone.id}
        assert not store.files.mirrored("default")
        assert not store.files.mirrored("nowhere")

    def test_a_file_is_found_by_its_name_while_its_memory_is_active(self, store: Store) -> None:
        memory, gone = put_all(store, [some(), some(status=Status.DELETED)])
        with store.writing() as tx:
            for one in (gone, memory):
                tx.files.in_sync(one.id, name="a/b.md", hash=b"h", stamp="", version=1)

        found, former = store.files.find_by_name("default", "a/b.md"), store.files.of(gone.id)
        assert found is not None
        assert found.memory == memory.id
        assert former is not None
        assert (former.name, former.hash) == ("", None)
        assert store.files.find_by_name("default", "a/c.md") is None
        assert store.files.find_by_name("nowhere", "a/b.md") is None

    def test_dropped_files_wait_no_longer(self, store: Store) -> None:
        memory = put(store, some())
        with store.writing() as tx:
            tx.files.keep([memory.id])
            tx.files.restamp({memory.id: "stamp"})
        file = store.files.of(memory.id)
        assert file is not None
        assert (file.name, file.stamp) == ("", "stamp")
        with store.writing() as tx:
            tx.files.drop([memory.id])

        assert (store.files.list("default"), store.files.waiting()) == ([], {})
