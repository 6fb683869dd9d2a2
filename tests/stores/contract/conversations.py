"""What a store promises about conversations and what they are told, as tests. Part of `suite.py`."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from scrubjay.errors import Conflict, NotFound, SpaceNotFound
from scrubjay.stores.promises.memories import Store
from scrubjay.values.callers import Audience, Scope, Sight
from scrubjay.values.memory import AccessLevel, Context, Memory, Status
from scrubjay.values.search import Filter
from scrubjay.values.store import Conversation, Injection, Message, Speaker
from tests.stores.contract.samples import (
    EVERYTHING,
    NOW,
    Reopen,
    changed,
    create_spaces,
    got,
    ids,
    later,
    listed,
    nearest,
    put,
    put_all,
    put_talk,
    some,
)


class ConversationsContract:
    def test_an_unknown_conversation_has_nothing(self, store: Store) -> None:
        assert store.conversations.get("default", "c1") is None
        assert store.conversations.answer_to("default", "c1", "m1") is None
        assert [*store.conversations.list("default", EVERYTHING), *store.conversations.spaces_of("c1")] == []
        assert [
            *store.conversations.messages("default", "c1", limit=9),
            *store.conversations.injections("default", "c1"),
        ] == []
        with store.writing() as tx:
            assert not tx.conversations.drop("default", "c1")
            assert not tx.conversations.take_out("default", "c1", "mem_a")
        with pytest.raises(NotFound), store.writing() as tx:
            tx.conversations.add_message("default", "c1", _message("m1"))
        with pytest.raises(NotFound), store.writing() as tx:
            tx.conversations.inject("default", "c1", Injection(memory="mem_a", injected_at=NOW))

    def test_a_conversation_is_kept_with_all_it_says_of_itself(self, store: Store, reopen: Reopen) -> None:
        talk = put_talk(store, "c1", title="Harbour", system_prompt="Be brief.")

        assert reopen().conversations.get("default", "c1") == talk

    def test_whose_a_conversation_is_stays_when_it_changes(self, store: Store) -> None:
        put_talk(store, "c1", user_id="ann", access_level=AccessLevel.PRIVATE)
        put_talk(store, "c1", title="Harbour", user_id="bob", access_level=AccessLevel.SHARED)

        talk = store.conversations.get("default", "c1")
        assert talk is not None
        assert (talk.title, talk.user_id, talk.access_level) == ("Harbour", "ann", AccessLevel.PRIVATE)

    def test_a_private_conversation_is_listed_for_its_user_and_owners(self, store: Store) -> None:
        put_talk(store, "old")
        put_talk(store, "hers", user_id="ann", access_level=AccessLevel.PRIVATE)
        put_talk(store, "ours", user_id="ann")

        def listed(user: str, sight: Sight, space: str | None = "default") -> set[str]:
            audience = Audience(user, (Scope(space, sight),))
            return {one.id for one in store.conversations.list("default", audience)}

        assert listed("ann", Sight.OWN) == listed("eve", Sight.ALL) == {"old", "hers", "ours"}
        assert listed("", Sight.ALL, None) == {"old", "hers", "ours"}
        assert listed("bob", Sight.OWN) == listed("ann", Sight.SHARED) == {"old", "ours"}
        assert listed("ann", Sight.PUBLIC) == listed("ann", Sight.ALL, "elsewhere") == set()
        bob = Audience("bob", (Scope("default", Sight.OWN),))
        assert [len(store.conversations.list("default", bob, limit=1, offset=n)) for n in range(3)] == [1, 1, 0]

    def test_a_conversation_needs_its_space(self, store: Store) -> None:
        with pytest.raises(SpaceNotFound):
            put_talk(store, "c1", space="nowhere")

    def test_two_spaces_may_have_a_conversation_of_the_same_id(self, store: Store) -> None:
        create_spaces(store, "work")
        put_talk(store, "c1", title="at home")
        put_talk(store, "c1", space="work", title="at work")
        _say(store, "c1", "m1")

        assert store.conversations.spaces_of("c1") == ["default", "work"]
        assert [one.title for one in store.conversations.list("work", EVERYTHING)] == ["at work"]
        assert store.conversations.messages("work", "c1", limit=9) == []

    def test_a_conversation_written_again_keeps_its_messages(self, store: Store) -> None:
        talk = put_talk(store, "c1")
        _say(store, "c1", "m1")

        put_talk(store, "c1", title="new", created_at=later(9))

        again = store.conversations.get("default", "c1")
        assert again == replace(talk, title="new", messages=1, updated_at=NOW)

    def test_conversations_come_in_the_order_of_their_last_message(self, store: Store) -> None:
        for name in ("a", "b", "c"):
            put_talk(store, name)
        _say(store, "a", "m1", created_at=later(5))

        assert [one.id for one in store.conversations.list("default", EVERYTHING)] == ["a", "c", "b"]
        assert [one.id for one in store.conversations.list("default", EVERYTHING, limit=1, offset=1)] == ["c"]

    def test_the_last_messages_come_in_the_order_in_which_they_came(self, store: Store) -> None:
        put_talk(store, "c1")
        for number in range(5):
            _say(store, "c1", f"m{number}", created_at=NOW)

        assert [one.id for one in store.conversations.messages("default", "c1", limit=3)] == ["m2", "m3", "m4"]
        assert [one.id for one in store.conversations.messages("default", "c1", limit=3, offset=3)] == ["m0", "m1"]

    def test_a_message_is_answered_once(self, store: Store) -> None:
        put_talk(store, "c1")
        _say(store, "c1", "m1")
        answer = _say(store, "c1", "m2", role=Speaker.ASSISTANT, reply_to="m1")

        with pytest.raises(Conflict):
            _say(store, "c1", "m3", role=Speaker.ASSISTANT, reply_to="m1")
        assert store.conversations.answer_to("default", "c1", "m1") == answer
        assert store.conversations.answer_to("default", "c1", "m2") is None

    def test_a_memory_is_put_into_a_conversation_once(self, store: Store) -> None:
        first, second = put_all(store, [some(), some()])
        put_talk(store, "c1")
        _inject(store, "c1", second, at=later(1))
        _inject(store, "c1", first, at=later(2))
        _inject(store, "c1", second, active=False, at=later(3))

        assert store.conversations.injections("default", "c1") == [
            Injection(memory=second.id, active=False, injected_at=later(1)),
            Injection(memory=first.id, active=True, injected_at=later(2)),
        ]

    def test_a_memory_of_another_space_is_not_put_into_a_conversation(self, store: Store) -> None:
        create_spaces(store, "work")
        memory = put(store, some(space="work"))
        put_talk(store, "c1")

        with pytest.raises(NotFound):
            _inject(store, "c1", memory)
        assert store.conversations.injections("default", "c1") == []

    def test_a_memory_is_taken_out_of_a_conversation(self, store: Store) -> None:
        memory = put(store, some())
        put_talk(store, "c1")
        _inject(store, "c1", memory)

        with store.writing() as tx:
            assert tx.conversations.take_out("default", "c1", memory.id)
            assert not tx.conversations.take_out("default", "c1", memory.id)
        assert store.conversations.injections("default", "c1") == []

    @pytest.mark.parametrize("gone", ["deleted", "purged", "moved"])
    def test_what_is_gone_from_the_space_is_gone_from_its_conversations(self, store: Store, gone: str) -> None:
        create_spaces(store, "work")
        memory, other = put_all(store, [some(), some()])
        for name in ("c1", "c2"):
            put_talk(store, name)
            _inject(store, name, memory)
            _inject(store, name, other)

        if gone == "purged":
            with store.writing() as tx:
                tx.purge(memory.id, at=NOW)
        else:
            changed(store, memory, **({"status": Status.DELETED} if gone == "deleted" else {"space": "work"}))

        assert ids(store.conversations.injections("default", "c1")) == [other.id]
        assert ids(store.conversations.injections("default", "c2")) == [other.id]

    def test_what_is_outdated_or_archived_stays_in_its_conversations(self, store: Store) -> None:
        memory, other = put_all(store, [some(), some()])
        put_talk(store, "c1")
        _inject(store, "c1", memory)
        _inject(store, "c1", other)

        changed(store, memory, superseded_by=other.id)
        changed(store, other, status=Status.ARCHIVED)

        assert ids(store.conversations.injections("default", "c1")) == [memory.id, other.id]

    def test_an_injected_memory_belongs_to_the_conversation_too(self, store: Store) -> None:
        stored = put(store, some(context=Context(conversation_id="c1")))
        injected, _ = put_all(store, [some(created_at=later(1)), some()])
        put_talk(store, "c1")
        _inject(store, "c1", injected)

        assert listed(store, Filter(belongs_to="c1")) == [injected.id, stored.id]
        assert sorted(nearest(store, Filter(belongs_to="c1"))) == sorted([injected.id, stored.id])
        assert store.count(Filter(belongs_to="c1"), EVERYTHING, now=NOW) == 2
        assert listed(store, Filter(conversation_id="c1")) == [stored.id]

    @pytest.mark.parametrize("sight", Sight)
    def test_a_private_conversation_holds_what_is_its_users_and_is_not_told_to_others(
        self, store: Store, sight: Sight
    ) -> None:
        put_talk(store, "c1", user_id="ann", access_level=AccessLevel.PRIVATE)
        put_talk(store, "c2", user_id="ann")
        kept = [
            put(store, some(context=Context(user_id=user, conversation_id=talk), access_level=AccessLevel.PUBLIC))
            for talk in ("c1", "c2")
            for user in ("ann", "bob")
        ]
        put_in = put(store, some(access_level=AccessLevel.PUBLIC))
        for talk in ("c1", "c2"):
            _inject(store, talk, put_in)

        def belonging(user: str, talk: str) -> set[str]:
            audience = Audience(user, (Scope("default", sight),))
            return set(ids(store.list(Filter(belongs_to=talk), audience, now=NOW, limit=9)))

        by_ann, by_bob, *in_shared = (memory.id for memory in kept)
        as_it_is, only_the_id = {by_ann, put_in.id}, {by_ann, by_bob}
        assert belonging("ann", "c1") == (as_it_is if sight in (Sight.OWN, Sight.ALL) else only_the_id)
        assert belonging("bob", "c1") == (as_it_is if sight is Sight.ALL else only_the_id)
        assert belonging("bob", "c2") == {*in_shared, *([] if sight is Sight.PUBLIC else [put_in.id])}

    def test_a_dropped_conversation_takes_its_messages_and_leaves_the_memories(self, store: Store) -> None:
        memory = put(store, some(context=Context(conversation_id="c1")))
        put_talk(store, "c1")
        _say(store, "c1", "m1")
        _inject(store, "c1", memory)

        with store.writing() as tx:
            assert tx.conversations.drop("default", "c1")

        put_talk(store, "c1")
        assert [
            *store.conversations.messages("default", "c1", limit=9),
            *store.conversations.injections("default", "c1"),
        ] == []
        assert got(store, memory.id)

    def test_a_transaction_that_raises_leaves_no_conversation(self, store: Store) -> None:
        def broken_off() -> None:
            with store.writing() as tx:
                tx.conversations.put(Conversation(id="c1", space="default", created_at=NOW, updated_at=NOW))
                tx.conversations.add_message("default", "c1", _message("m1"))
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            broken_off()

        assert store.conversations.get("default", "c1") is None


def _message(id: str, **fields: Any) -> Message:
    usual: dict[str, Any] = {"role": Speaker.USER, "content": f"This is {id}.", "created_at": NOW}
    return Message(id=id, **usual | fields)


def _say(store: Store, conversation: str, id: str, **fields: Any) -> Message:
    message = _message(id, **fields)
    with store.writing() as tx:
        tx.conversations.add_message("default", conversation, message)
    return message


def _inject(store: Store, conversation: str, memory: Memory, *, active: bool = True, at: datetime = NOW) -> None:
    with store.writing() as tx:
        tx.conversations.inject("default", conversation, Injection(memory=memory.id, active=active, injected_at=at))
