"""Who may see and change what: a row per cell of the table at the top of access.py."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from scrubjay.engine import access
from scrubjay.errors import Forbidden
from scrubjay.values.callers import Caller, Role, Scope, Sight
from scrubjay.values.memory import AccessLevel, Category, Context, Memory

NOW = datetime(2026, 11, 15, tzinfo=UTC)
TEAM = frozenset({"team"})


def memory(level: str, *, user: str = "ann", space: str = "team") -> Memory:
    return Memory(
        id="mem_1",
        space=space,
        content="x",
        title="x",
        path="inbox/x",
        category=Category.FACT,
        importance=0.5,
        access_level=AccessLevel(level),
        context=Context(user_id=user),
        created_at=NOW,
        updated_at=NOW,
        accessed_at=NOW,
    )


def caller(role: str, *, user: str = "bob", spaces: frozenset[str] | None = TEAM) -> Caller:
    return Caller(user=user, role=Role(role), spaces=spaces)


@pytest.mark.parametrize(
    ("role", "level", "user", "changes", "erases"),
    [
        ("owner", "private", "ann", True, True),
        ("owner", "shared", "ann", True, True),
        ("member", "private", "bob", True, True),
        ("member", "shared", "bob", True, True),
        ("member", "shared", "ann", True, False),
        ("member", "public", "ann", True, False),
        ("member", "private", "ann", False, False),
        ("reader", "private", "bob", False, False),
        ("reader", "shared", "bob", False, False),
        ("reader", "public", "bob", False, False),
    ],
)
def test_who_may_change_and_who_may_erase_what_in_a_granted_space(role, level, user, changes, erases):
    assert access.may_change(caller(role), memory(level, user=user)) is changes
    assert access.may_erase(caller(role), memory(level, user=user)) is erases


@pytest.mark.parametrize("role", ["owner", "member", "reader"])
def test_nobody_changes_anything_in_a_space_that_is_not_granted(role):
    assert not access.may_change(caller(role), memory("public", space="elsewhere"))


@pytest.mark.parametrize(("role", "sight"), [("owner", Sight.ALL), ("member", Sight.OWN), ("reader", Sight.SHARED)])
def test_what_a_role_sees_in_its_spaces_and_elsewhere(role, sight):
    audience = access.audience_in(caller(role), ["team", "elsewhere"])

    assert audience.scopes == (Scope("team", sight), Scope("elsewhere", Sight.PUBLIC))


def test_a_memory_named_without_a_space_is_looked_for_in_granted_spaces_only():
    assert access.audience_anywhere(caller("member")).scopes == (Scope("team", Sight.OWN),)


def test_the_local_owner_looks_everywhere():
    assert access.audience_anywhere(Caller()).scopes == (Scope(None, Sight.ALL),)


def test_a_caller_without_any_grant_sees_nothing():
    assert access.audience_anywhere(caller("member", spaces=frozenset())).scopes == ()


@pytest.mark.parametrize("role", ["member", "reader"])
def test_naming_another_user_is_forbidden_without_being_an_owner(role):
    with pytest.raises(Forbidden):
        access.checked_user(caller(role), "ann")


def test_an_owner_may_write_for_another_user():
    assert access.owner_of_new(caller("owner"), "ann") == "ann"


@pytest.mark.parametrize("role", ["owner", "member"])
def test_everyone_writes_as_itself_by_default(role):
    assert access.owner_of_new(caller(role), None) == "bob"


def test_a_reader_stores_nothing():
    with pytest.raises(Forbidden):
        access.check_store(caller("reader"), "team")


def test_nobody_stores_into_a_space_that_is_not_granted():
    with pytest.raises(Forbidden):
        access.check_store(caller("owner"), "elsewhere")
