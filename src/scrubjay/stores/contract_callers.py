"""What a store promises about callers, as tests: `callers.py` in other words. Part of `contract.py`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scrubjay.errors import Conflict
from scrubjay.memory import Act, Credential, CredentialKind, Event, Grant, Role, Session
from scrubjay.stores.base import Store
from scrubjay.stores.callers import ActFilter
from scrubjay.stores.contract_samples import NOW, later


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
            tx.add_credential(whole, b"hash")
            tx.add_credential(a_credential("key_2", kind=CredentialKind.TOKEN), None)

        assert store.credential("key_1") == (whole, b"hash")
        assert store.credential("key_2") == (a_credential("key_2", kind=CredentialKind.TOKEN), None)
        assert store.credential("key_3") is None

    def test_a_credential_has_an_id_of_its_own(self, store: Store) -> None:
        with store.writing() as tx:
            tx.add_credential(a_credential(), b"one")

        with pytest.raises(Conflict), store.writing() as tx:
            tx.add_credential(a_credential(user="mallory"), b"two")

        assert store.credential("key_1") == (a_credential(), b"one")

    def test_credentials_are_listed_oldest_first(self, store: Store) -> None:
        with store.writing() as tx:
            tx.add_credential(a_credential("key_b", created_at=later(1)), b"")
            tx.add_credential(a_credential("key_a", created_at=later(2), user="bob"), b"")
            tx.add_credential(a_credential("key_c"), b"")

        assert [one.id for one in store.credentials()] == ["key_c", "key_b", "key_a"]
        assert [one.id for one in store.credentials(user="bob")] == ["key_a"]
        assert store.credentials(user="nobody") == []

    def test_a_store_is_locked_as_long_as_one_credential_is_not_revoked(self, store: Store) -> None:
        assert not store.locked()
        with store.writing() as tx:
            tx.add_credential(a_credential("key_1", expires_at=NOW), b"")
            tx.add_credential(a_credential("key_2"), b"")

        with store.writing() as tx:
            assert tx.revoke_credential("key_2", at=NOW)
        assert store.locked()
        with store.writing() as tx:
            assert tx.revoke_credential("key_1", at=NOW)
        assert not store.locked()

    def test_revoking_ends_a_credential_once_and_its_sessions(self, store: Store) -> None:
        with store.writing() as tx:
            tx.add_credential(a_credential(), b"")
            tx.open_session(a_session(), b"mine")
            tx.open_session(a_session(credential=None), b"other")

        with store.writing() as tx:
            assert tx.revoke_credential("key_1", at=later(1))
            assert not tx.revoke_credential("key_1", at=later(2))
            assert not tx.revoke_credential("key_9", at=later(2))

        assert store.credential("key_1") == (a_credential(revoked_at=later(1)), b"")
        assert store.session(b"mine") is None
        assert store.session(b"other") == a_session(credential=None)

    def test_another_secret_ends_the_sessions_of_the_old_one(self, store: Store) -> None:
        with store.writing() as tx:
            tx.add_credential(a_credential(), b"old")
            tx.open_session(a_session(), b"mine")

        with store.writing() as tx:
            tx.replace_secret("key_1", b"new")

        assert store.credential("key_1") == (a_credential(), b"new")
        assert store.session(b"mine") is None

    def test_grants_are_given_once_and_withdrawn(self, store: Store) -> None:
        first = Grant(user="alice", space="work", at=NOW, by="local")
        with store.writing() as tx:
            tx.grant([first, Grant(user="alice", space="*", at=NOW, by="local")])
            tx.grant([replace(first, by="mallory", at=later(1)), Grant(user="bob", space="work", at=NOW, by="local")])

        assert [(one.user, one.space, one.by) for one in store.grants()] == [
            ("alice", "*", "local"),
            ("alice", "work", "local"),
            ("bob", "work", "local"),
        ]
        with store.writing() as tx:
            assert tx.withdraw("alice", "work")
            assert not tx.withdraw("alice", "work")
        assert [one.space for one in store.grants(user="alice")] == ["*"]

    def test_sessions_that_are_over_go_when_another_begins(self, store: Store) -> None:
        with store.writing() as tx:
            tx.open_session(a_session(minutes=5), b"short")
        with store.writing() as tx:
            tx.open_session(replace(a_session(), created_at=later(5)), b"long")

        assert store.session(b"short") is None
        assert store.session(b"long") is not None
        with store.writing() as tx:
            tx.close_session(b"long")
            tx.close_session(b"long")
        assert store.session(b"long") is None

    def test_the_audit_holds_events_and_changes_of_rights_newest_first(self, store: Store) -> None:
        with store.writing() as tx:
            tx.create_space("work", at=NOW)
            tx.record(Event(space="work", at=NOW, action="stored", memory="mem_1", user="alice"))
            tx.note(Act(at=later(1), user="local", action="space granted", space="work", subject="bob"))
            tx.note(Act(at=later(2), user="local", action="credential revoked", subject="key_1", reason="lost"))
            tx.record(Event(space="default", at=later(3), action="forgotten", memory="mem_2", user="bob", reason="old"))

        def told(limit: int = 10, **wanted: Any) -> list[str]:
            return [act.action for act in store.acts(ActFilter(**wanted), limit=limit)]

        assert told() == ["forgotten", "credential revoked", "space granted", "stored"]
        assert told(limit=1) == ["forgotten"]
        assert told(spaces=frozenset({"work"})) == ["space granted", "stored"]
        assert told(spaces=frozenset()) == []
        assert told(user="bob") == ["forgotten"]
        assert told(action="stored") == ["stored"]
        assert told(memory="mem_1") == ["stored"]
        assert told(client="nobody") == []
        assert told(since=later(1), until=later(2)) == ["credential revoked", "space granted"]
        assert store.acts(ActFilter(action="credential revoked"), limit=1) == [
            Act(at=later(2), user="local", action="credential revoked", subject="key_1", reason="lost")
        ]

    def test_the_newest_event_of_a_space_has_its_number(self, store: Store) -> None:
        assert store.last_event("default") == store.last_event("nowhere") == 0
        with store.writing() as tx:
            tx.record(Event(space="default", at=NOW, action="stored", user="alice"))
            tx.record(Event(space="default", at=NOW, action="updated", user="alice"))

        assert store.last_event("default") == 2
