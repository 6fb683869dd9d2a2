"""Credentials, grants and the audit: what proves nothing, what is given, what is kept."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scrubjay.errors import Conflict, Forbidden, InvalidInput, NotFound, SpaceNotFound, Unauthenticated
from scrubjay.stores.promises.memories import Request
from scrubjay.values.callers import ActFilter, Caller, CredentialKind, Role


@pytest.fixture(autouse=True)
def made_spaces(jay):
    """Those that keys are made for."""
    for name in ("work", "play"):
        jay.known_spaces.create(name)


def owner_of(jay, *spaces):
    return jay.bound_to(caller=Caller(user="olga", role=Role.OWNER, spaces=frozenset(spaces), local=False))


# --- what proves nothing ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spoil",
    [
        lambda key: "",
        lambda key: "sj",
        lambda key: "sj__",
        lambda key: key[:-1],
        lambda key: key + "x",
        lambda key: key.upper(),
        lambda key: key.replace("sj_", "sk_", 1),
        lambda key: key.rpartition("_")[0] + "_",
        lambda key: "sj_nobodyknows1_" + key.rpartition("_")[2],
        lambda key: "sj_%_" + key.rpartition("_")[2],
        lambda key: "\ud800" + key,
        lambda key: "sj_" + "x" * 100_000,
    ],
)
def test_a_spoilt_key_is_refused(jay, spoil):
    key = jay.callers.create("alice").secret

    with pytest.raises(Unauthenticated):
        jay.callers.by_key(spoil(key))


def test_a_key_ends_when_it_expires(jay, clock):
    key = jay.callers.create("alice", expires_at=clock() + timedelta(days=1)).secret

    clock.move(days=1)

    with pytest.raises(Unauthenticated):
        jay.callers.by_key(key)
    assert jay.callers.locked(), "it opens no door by that"


def test_a_revoked_key_ends_at_once_with_its_sessions(jay):
    issued = jay.callers.create("alice")
    cookie = jay.callers.sign_in(key=issued.secret).cookie

    jay.callers.revoke(issued.credential.id)

    for prove, by in ((jay.callers.by_key, issued.secret), (jay.callers.by_session, cookie)):
        with pytest.raises(Unauthenticated):
            prove(by)
    assert (jay.callers.locked(), jay.callers.in_use()) == (True, False), "revoking the last key opens nothing"


def test_the_door_is_opened_by_hand_when_no_key_is_in_use(jay, clock):
    jay.callers.revoke(jay.callers.create("alice").credential.id)
    jay.callers.create("bob", expires_at=clock() + timedelta(days=1))
    with pytest.raises(Conflict, match="Still in use"):
        jay.callers.open_door()
    clock.move(days=2)

    assert jay.callers.open_door()

    assert not jay.callers.locked()
    assert not jay.callers.open_door()
    jay.callers.revoke(jay.callers.create("carol").credential.id)
    assert jay.callers.locked(), "the next key closes it"
    assert [act.action for act in jay.callers.audit()].count("door opened") == 1


@pytest.mark.parametrize("role", Role)
def test_the_door_is_not_opened_from_elsewhere(jay, role):
    key = jay.callers.create("olga", role=role, spaces=["*"])
    caller = jay.callers.by_key(key.secret)
    jay.callers.revoke(key.credential.id)

    with pytest.raises(Forbidden):
        jay.bound_to(caller=caller).callers.open_door()

    assert jay.callers.locked()


def test_a_rotated_key_has_another_secret(jay):
    issued = jay.callers.create("alice", role=Role.READER)

    rotated = jay.callers.rotate(issued.credential.id)

    assert jay.callers.by_key(rotated.secret).role is Role.READER
    with pytest.raises(Unauthenticated):
        jay.callers.by_key(issued.secret)


@pytest.mark.parametrize(("user", "password"), [("alice", "wrong password!"), ("nobody", "correct horse!"), ("", "")])
def test_a_wrong_password_opens_no_session(jay, user, password):
    jay.callers.create("alice", kind=CredentialKind.PASSWORD, password="correct horse!")

    with pytest.raises(Unauthenticated, match="Wrong name or password"):
        jay.callers.sign_in(user=user, password=password)


@pytest.mark.parametrize("password", [None, "", "short", "x" * 1001])
def test_a_password_has_a_decent_length(jay, password):
    with pytest.raises(InvalidInput):
        jay.callers.create("alice", kind=CredentialKind.PASSWORD, password=password)


def test_a_key_is_no_subject_and_a_subject_a_caller_once_an_owner_says_so(jay):
    jay.callers.create("alice")
    jay.callers.create("auth|42", kind=CredentialKind.TOKEN, spaces=["default"])

    with pytest.raises(Unauthenticated):
        jay.callers.by_subject("alice")
    assert jay.callers.by_subject("auth|42").spaces == {"default"}


@pytest.mark.parametrize("end", ["twelve hours", "signing out"])
def test_a_session_ends_by_itself_and_by_signing_out(jay, clock, end):
    cookie = jay.callers.sign_in_locally().cookie

    clock.move(hours=12) if end == "twelve hours" else jay.callers.sign_out(cookie)

    with pytest.raises(Unauthenticated):
        jay.callers.by_session(cookie)


# --- who may give what -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", [Role.MEMBER, Role.READER])
@pytest.mark.parametrize(
    "verb",
    [
        lambda callers: callers.create("mallory", role=Role.OWNER),
        lambda callers: callers.credentials(),
        lambda callers: callers.revoke("key_x"),
        lambda callers: callers.rotate("key_x"),
        lambda callers: callers.grants(),
        lambda callers: callers.grant("default", "mallory"),
        lambda callers: callers.withdraw("default", "alice"),
        lambda callers: callers.audit(),
    ],
)
def test_only_owners_manage_callers(jay, role, verb):
    jay.callers.create("alice")
    caller = Caller(user="alice", role=role, spaces=frozenset({"default"}), local=False)

    with pytest.raises(Forbidden):
        verb(jay.bound_to(caller=caller).callers)


def test_an_owner_of_some_spaces_gives_only_those(jay):
    olga = owner_of(jay, "work").callers
    jay.known_spaces.create("work")

    for spaces in (None, ["default"], ["*"], ["work", "default"]):
        with pytest.raises(Forbidden):
            olga.create("bob", spaces=spaces)
    with pytest.raises(Forbidden):
        olga.grant("*", "bob")

    assert olga.create("bob", spaces=["work"]).credential.spaces == ("work",)


@pytest.mark.parametrize(
    "known",
    [
        lambda callers: callers.create("alice", spaces=["play"]),
        lambda callers: callers.create("alice", spaces=["work", "play"]),
        lambda callers: callers.create("alice", role=Role.OWNER),
        lambda callers: callers.grant("play", "alice"),
        lambda callers: callers.revoke(callers.create("alice", spaces=["play"]).credential.id),
    ],
)
def test_only_an_owner_of_everything_makes_keys_in_the_name_of_a_user_of_other_spaces(jay, known):
    known(jay.callers)
    olga = owner_of(jay, "work").callers

    for user in ("alice", "local", "Alice", "alice ", "ａlice", "Local"):
        with pytest.raises(Forbidden, match="other spaces"):
            olga.create(user, spaces=["work"])

    assert jay.callers.create("alice", spaces=["work"]).credential.user == "alice"
    assert olga.create("olga", spaces=["work"]).credential.user == "olga"
    assert olga.create("bob", spaces=["work"]).credential.user == "bob"
    assert olga.create("bob", spaces=["work"]).credential.user == "bob"


@pytest.mark.parametrize(
    ("user", "reason"),
    [
        ("аlіce", "several scripts"),  # two letters of it are Cyrillic
        ("αlice", "several scripts"),
        ("ɑliсe", "several scripts"),
        ("аӏісе", "other spaces"),  # Cyrillic throughout, one letter of an unknown look
        ("ᎪᏞᎥᏟᎬ", "other spaces"),
        ("ɑlice", "other spaces"),
        ("àlice", "other spaces"),
        ("ІосаӀ", "other spaces"),
    ],
)
def test_letters_of_other_scripts_make_no_look_alike_of_a_user_of_other_spaces(jay, user, reason):
    jay.callers.create("alice", spaces=["play"])
    olga = owner_of(jay, "work").callers

    with pytest.raises(Forbidden, match=reason):
        olga.create(user, spaces=["work"])

    assert jay.callers.create(user, spaces=["work"]).credential.user == user


@pytest.mark.parametrize(
    "user", ["José", "Алиса", "Αλίκη", "田中さん", "김철수", "علي", "माया", "Łukasz", "O'Brien", "ann-3"]
)
def test_a_name_in_any_one_script_is_a_name(jay, user):
    for known in ("alice", "Инна", "山本", "bob"):
        jay.callers.create(known, spaces=["play"])

    assert owner_of(jay, "work").callers.create(user, spaces=["work"]).credential.user == user


def test_an_owner_of_some_spaces_takes_over_no_key_by_rotating_it(jay):
    jay.callers.create("alice", spaces=["play"])
    of_alice = jay.callers.create("alice", spaces=["work"]).credential
    jay.callers.grant("work", "bob")
    following = jay.callers.create("bob").credential
    own = jay.callers.create("bob", spaces=["work"]).credential
    olga = owner_of(jay, "work").callers

    for one in (of_alice, following):
        with pytest.raises(Forbidden):
            olga.rotate(one.id)
    assert olga.rotate(own.id).secret
    assert jay.callers.rotate(of_alice.id).secret


def test_an_owner_of_some_spaces_sees_and_revokes_only_what_stays_inside_them(jay):
    jay.known_spaces.create("work")
    everywhere = jay.callers.create("root", role=Role.OWNER).credential
    inside = jay.callers.create("bob", spaces=["work"]).credential
    olga = owner_of(jay, "work").callers

    assert [one.id for one in olga.credentials()] == [inside.id]
    with pytest.raises(NotFound):
        olga.revoke(everywhere.id)
    assert olga.revoke(inside.id).revoked_at is not None
    assert {one.space for one in olga.audit()} <= {"work"}


@pytest.mark.parametrize(
    "options", [{"spaces": []}, {"spaces": ["Bad Name"]}, {"name": "x" * 1000}, {"user": " "}, {"user": "a\x00b"}]
)
def test_bad_input_makes_no_credential(jay, options):
    with pytest.raises(InvalidInput):
        jay.callers.create(**{"user": "alice", **options})

    assert not jay.callers.locked()
    assert not jay.callers.grants()


def test_a_space_that_is_not_there_cannot_be_granted(jay):
    with pytest.raises(SpaceNotFound):
        jay.callers.grant("nowhere", "alice")
    with pytest.raises(SpaceNotFound, match="nowhere"):
        jay.callers.create("alice", spaces=["work", "nowhere"])

    assert not jay.callers.credentials()
    assert not jay.callers.grants()


# --- what is given ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "spaces", "reached"),
    [
        (Role.MEMBER, None, {"default"}),
        (Role.OWNER, None, None),
        (Role.READER, ["work", "play"], {"work", "play"}),
        (Role.MEMBER, ["*"], None),
    ],
)
def test_a_key_reaches_what_it_was_made_for(jay, role, spaces, reached):
    caller = jay.callers.by_key(jay.callers.create("alice", role=role, spaces=spaces).secret)

    assert caller.user == "alice"
    assert caller.role is role
    assert caller.spaces == reached
    assert not caller.local


def test_a_grant_widens_a_key_that_names_no_spaces_and_no_other(jay):
    jay.known_spaces.create("work")
    open_key = jay.callers.create("alice").secret
    narrow_key = jay.callers.create("alice", spaces=["default"]).secret

    jay.callers.grant("work", "alice")

    assert jay.callers.by_key(open_key).spaces == {"default", "work"}
    assert jay.callers.by_key(narrow_key).spaces == {"default"}


def test_a_withdrawn_grant_ends_what_every_key_of_the_user_reaches(jay):
    key = jay.callers.create("alice", spaces=["default"]).secret

    jay.callers.withdraw("default", "alice")

    assert jay.callers.by_key(key).spaces == frozenset()
    with pytest.raises(NotFound):
        jay.callers.withdraw("default", "alice")


def test_a_password_opens_a_session_of_its_role(jay):
    jay.callers.create("alice", kind=CredentialKind.PASSWORD, password="correct horse!", role=Role.READER)

    signed_in = jay.callers.sign_in(user="alice", password="correct horse!")

    caller, session = jay.callers.by_session(signed_in.cookie)
    assert (caller.user, caller.role) == ("alice", Role.READER)
    assert session.guard == signed_in.session.guard


# --- what is kept ----------------------------------------------------------------------------------------------------


def test_no_secret_is_in_the_store(jay, tmp_path):
    issued = jay.callers.create("alice")
    jay.callers.create("bob", kind=CredentialKind.PASSWORD, password="correct horse!")
    cookie = jay.callers.sign_in(key=issued.secret).cookie
    rotated = jay.callers.rotate(issued.credential.id)
    jay.close()

    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())

    for secret in (issued.secret, rotated.secret, cookie, "correct horse!"):
        assert secret[-20:].encode() not in kept


@pytest.mark.parametrize("verb", ["create", "rotate"])
def test_a_request_sent_again_makes_one_key_and_shows_it_once(jay, verb):
    first = jay.callers.create("alice")
    request = Request(caller="local", key="k", operation=verb, arguments=b"")

    def ask():
        callers = jay.bound_to(request=request).callers
        return callers.create("bob") if verb == "create" else callers.rotate(first.credential.id)

    once, twice = ask(), ask()

    assert once.credential == twice.credential
    assert jay.callers.by_key(once.secret)
    assert twice.secret is None


def test_the_audit_tells_who_made_the_key_that_was_used(jay):
    issued = owner_of(jay, "work").callers.create("alice", spaces=["work"])
    alice = jay.bound_to(caller=jay.callers.by_key(issued.secret), spaces=["work"])

    alice.store("Tea at four.")

    [act] = owner_of(jay, "work").callers.audit(ActFilter(action="stored"))
    assert (act.user, act.credential, act.credential_by) == ("alice", issued.credential.id, "olga")
    assert [event.credential for event in alice.feed.events()] == [None]


def test_the_audit_tells_who_changed_memories_and_rights(jay, clock):
    stored = jay.store("Tea at four.").memory
    clock.move(minutes=1)
    key = jay.callers.create("alice").credential
    clock.move(minutes=1)
    jay.callers.revoke(key.id, reason="lost")

    acts = jay.callers.audit()

    assert [(act.action, act.memory or act.subject) for act in acts] == [
        ("credential revoked", key.id),
        ("credential created", key.id),
        ("stored", stored.id),
    ]
    assert [act.action for act in jay.callers.audit(ActFilter(memory=stored.id))] == ["stored"]
    assert [act.reason for act in jay.callers.audit(ActFilter(action="credential revoked"))] == ["lost"]
    assert not jay.callers.audit(ActFilter(user="nobody"))
    assert len(jay.callers.audit(ActFilter(since=clock() - timedelta(seconds=90)))) == 2
