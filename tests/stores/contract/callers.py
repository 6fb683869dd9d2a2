"""What a store promises about callers, as tests: `callers.py` in other words. Part of `suite.py`."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from scrubjay.errors import Conflict
from scrubjay.stores.promises.memories import Store
from scrubjay.values.callers import Act, ActFilter, Credential, CredentialKind, Grant, Role, Session
from scrubjay.values.store import Event
from tests.stores.contract.samples import NOW, later


def a_credential(id: str = "key_1", **fields: Any) -> Credential:
    usual: dict[str, Any] = {"user": "alice", "role": Role.MEMBER, "created_at": NOW, "created_by": "local"}
    return Credential(id=id, **usual | fields)


def a_session(minutes: float = 60, credential: str | None = "key_1") -> Session:
    return Session(credential=credential, guard="g", created_at=NOW, expires_at=later(minutes))


class CallersContract:
    def test_a_credential_comes_back_whole_with_its_hash(self, store: Store) -> None:
        whole = a_credential(
            kind=CredentialKind.PASSWORD,
            role=Role.OWNER,
            spaces=("work", "play"),
            name="laptop",
            expires_at=later(5),
            revoked_at=later(6),
        )
        with store.writing() as tx:
            tx.callers.add(whole, b"hash")
            tx.callers.add(a_credential("key_2", kind=CredentialKind.TOKEN), None)

        assert store.callers.credential("key_1") == (whole, b"hash")
        assert store.callers.credential("key_2") == (a_credential("key_2", kind=CredentialKind.TOKEN), None)
        assert store.callers.credential("key_3") is None

    def test_a_credential_has_an_id_of_its_own(self, store: Store) -> None:
        with store.writing() as tx:
            tx.callers.add(a_credential(), b"one")

        with pytest.raises(Conflict), store.writing() as tx:
            tx.callers.add(a_credential(user="mallory"), b"two")

        assert store.callers.credential("key_1") == (a_credential(), b"one")

    def test_credentials_are_listed_oldest_first(self, store: Store) -> None:
        with store.writing() as tx:
            tx.callers.add(a_credential("key_b", created_at=later(1)), b"")
            tx.callers.add(a_credential("key_a", created_at=later(2), user="bob"), b"")
            tx.callers.add(a_credential("key_c"), b"")

        assert [one.id for one in store.callers.credentials()] == ["key_c", "key_b", "key_a"]
        assert [one.id for one in store.callers.credentials(user="bob")] == ["key_a"]
        assert store.callers.credentials(user="nobody") == []

    def test_a_store_that_ever_had_a_credential_is_locked_until_its_door_is_opened(self, store: Store) -> None:
        assert not store.callers.locked()
        with store.writing() as tx:
            tx.callers.add(a_credential("key_1", expires_at=NOW), b"")
            tx.callers.add(a_credential("key_2"), b"")

        with store.writing() as tx:
            assert tx.callers.revoke("key_2", at=NOW)
        assert store.callers.locked()
        with store.writing() as tx:
            assert tx.callers.revoke("key_1", at=NOW)
        assert store.callers.locked()
        with store.writing() as tx:
            tx.callers.open_door()
            assert not tx.callers.locked()
        assert not store.callers.locked()

    def test_the_next_credential_closes_an_open_door(self, store: Store) -> None:
        for number in range(3):
            with store.writing() as tx:
                tx.callers.add(a_credential(f"key_{number}"), b"")
            assert store.callers.locked()
            with store.writing() as tx:
                tx.callers.revoke(f"key_{number}", at=NOW)
                tx.callers.open_door()
            assert not store.callers.locked()

    def test_revoking_ends_a_credential_once_and_its_sessions(self, store: Store) -> None:
        with store.writing() as tx:
            tx.callers.add(a_credential(), b"")
            tx.callers.open_session(a_session(), b"mine")
            tx.callers.open_session(a_session(credential=None), b"other")

        with store.writing() as tx:
            assert tx.callers.revoke("key_1", at=later(1))
            assert not tx.callers.revoke("key_1", at=later(2))
            assert not tx.callers.revoke("key_9", at=later(2))

        assert store.callers.credential("key_1") == (a_credential(revoked_at=later(1)), b"")
        assert store.callers.session(b"mine") is None
        assert store.callers.session(b"other") == a_session(credential=None)

    def test_another_secret_ends_the_sessions_of_the_old_one(self, store: Store) -> None:
        with store.writing() as tx:
            tx.callers.add(a_credential(), b"old")
            tx.callers.open_session(a_session(), b"mine")

        with store.writing() as tx:
            tx.callers.replace_secret("key_1", b"new")

        assert store.callers.credential("key_1") == (a_credential(), b"new")
        assert store.callers.session(b"mine") is None

    def test_grants_are_given_once_and_withdrawn(self, store: Store) -> None:
        first = Grant(user="alice", space="work", at=NOW, by="local")
        with store.writing() as tx:
            tx.callers.grant([first, Grant(user="alice", space="*", at=NOW, by="local")])
            tx.callers.grant(
                [replace(first, by="mallory", at=later(1)), Grant(user="bob", space="work", at=NOW, by="local")]
            )

        assert [(one.user, one.space, one.by) for one in store.callers.grants()] == [
            ("alice", "*", "local"),
            ("alice", "work", "local"),
            ("bob", "work", "local"),
        ]
        with store.writing() as tx:
            assert tx.callers.withdraw("alice", "work")
            assert not tx.callers.withdraw("alice", "work")
        assert [one.space for one in store.callers.grants(user="alice")] == ["*"]

    def test_sessions_that_are_over_go_when_another_begins(self, store: Store) -> None:
        with store.writing() as tx:
            tx.callers.open_session(a_session(minutes=5), b"short")
        with store.writing() as tx:
            tx.callers.open_session(replace(a_session(), created_at=later(5)), b"long")

        assert store.callers.session(b"short") is None
        assert store.callers.session(b"long") is not None
        with store.writing() as tx:
            tx.callers.close_session(b"long")
            tx.callers.close_session(b"long")
        assert store.callers.session(b"long") is None

    def test_the_audit_holds_events_and_changes_of_rights_newest_first(self, store: Store) -> None:
        with store.writing() as tx:
            tx.spaces.create("work", at=NOW)
            tx.history.record(Event(space="work", at=NOW, action="stored", memory="mem_1", user="alice"))
            tx.callers.note(Act(at=later(1), user="local", action="space granted", space="work", subject="bob"))
            tx.callers.note(Act(at=later(2), user="local", action="credential revoked", subject="key_1", reason="lost"))
            tx.history.record(
                Event(space="default", at=later(3), action="forgotten", memory="mem_2", user="bob", reason="old")
            )

        def told(limit: int = 10, **wanted: Any) -> list[str]:
            return [act.action for act in store.callers.acts(ActFilter(**wanted), limit=limit)]

        assert told() == ["forgotten", "credential revoked", "space granted", "stored"]
        assert told(limit=1) == ["forgotten"]
        assert told(spaces=frozenset({"work"})) == ["space granted", "stored"]
        assert told(spaces=frozenset()) == []
        assert told(user="bob") == ["forgotten"]
        assert told(action="stored") == ["stored"]
        assert told(memory="mem_1") == ["stored"]
        assert told(client="nobody") == []
        assert told(since=later(1), until=later(2)) == ["credential revoked", "space granted"]
        assert store.callers.acts(ActFilter(action="credential revoked"), limit=1) == [
            Act(at=later(2), user="local", action="credential revoked", subject="key_1", reason="lost")
        ]

    def test_the_audit_says_with_which_credential_and_who_made_it(self, store: Store) -> None:
        with store.writing() as tx:
            tx.callers.add(a_credential(created_by="olga"), None)
            event = Event(space="default", at=NOW, action="stored", user="alice", credential="key_1")
            tx.history.record_each(event, ["mem_1"])
            tx.history.record(replace(event, at=later(1), action="updated"))
            tx.callers.note(Act(at=later(2), user="alice", action="signed in", credential="key_1"))
            tx.history.record(Event(space="default", at=later(3), action="pruned", user="local"))

        acts = store.callers.acts(ActFilter(), limit=10)

        assert [(act.action, act.credential, act.credential_by) for act in acts] == [
            ("pruned", None, None),
            ("signed in", "key_1", "olga"),
            ("updated", "key_1", "olga"),
            ("stored", "key_1", "olga"),
        ]
        assert {event.credential for event in store.history.events("default")} == {None}

    def test_the_newest_event_of_a_space_has_its_number(self, store: Store) -> None:
        assert store.history.last_event("default") == store.history.last_event("nowhere") == 0
        with store.writing() as tx:
            tx.history.record(Event(space="default", at=NOW, action="stored", user="alice"))
            tx.history.record(Event(space="default", at=NOW, action="updated", user="alice"))

        assert store.history.last_event("default") == 2
        assert store.history.last_events()["default"] == 2

    def test_whoever_listens_is_told_soon_after_something_has_happened(self, store: Store) -> None:
        rung = threading.Semaphore(0)
        with store.listening("default", rung.release):
            assert rung.acquire(timeout=60)  # for what was there before
            with store.writing() as tx:
                tx.history.record(Event(space="default", at=NOW, action="stored", user="alice"))

            assert rung.acquire(timeout=60)
