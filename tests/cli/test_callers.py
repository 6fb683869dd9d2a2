"""Keys, grants and the audit, as their owner types them."""

from __future__ import annotations


def test_a_key_is_shown_once_and_alone_on_standard_output(call):
    call("spaces", "create", "work")

    done = call("keys", "create", "--user", "alice", "--in", "work", "--role", "reader")

    assert done.code == 0
    assert done.out.startswith("sj_")
    assert len(done.out.split()) == 1
    assert done.out.strip() not in call("keys", "list", "--json").out


def test_keys_are_listed_with_their_state(call):
    key = call("keys", "create", "--user", "alice", "--json").json
    call("keys", "revoke", key["id"], "--reason", "lost")

    [listed] = call("keys", "list", "--json").json

    assert (listed["user"], listed["role"], listed["kind"]) == ("alice", "member", "key")
    assert listed["revoked_at"]
    assert "secret" not in listed
    assert "revoked" in call("keys", "list").out


def test_revoking_the_last_key_says_what_follows(call):
    first, last = (call("keys", "create", "--user", "alice", "--json").json["id"] for _ in range(2))

    assert "keys open" not in call("keys", "revoke", first).err
    said = call("keys", "revoke", last).err

    assert "stays locked" in said
    assert "scrubjay keys create" in said
    assert "scrubjay keys open" in said
    assert call("keys", "revoke", last, "--json").json["locked_out"] is True


def test_the_door_is_opened_only_by_who_confirms_it(call):
    key = call("keys", "create", "--user", "alice", "--json").json["id"]
    refused = call("keys", "open", "--yes")
    assert refused.code == 1
    assert key in refused.err
    call("keys", "revoke", key)

    assert call("keys", "open").code == 2
    assert call("keys", "open", "--yes", "--json").json == {"opened": True}
    assert call("keys", "open", "--json").json == {"opened": False}


def test_a_rotated_key_is_another(call):
    key = call("keys", "create", "--user", "alice", "--json").json

    rotated = call("keys", "rotate", key["id"], "--json").json

    assert rotated["id"] == key["id"]
    assert rotated["secret"] != key["secret"]


def test_a_password_comes_from_standard_input_where_there_is_no_terminal(call):
    done = call("keys", "create", "--user", "alice", "--kind", "password", stdin="correct horse!\n")

    assert done.out.startswith("key_")


def test_grants_are_given_listed_and_taken_back(call):
    call("spaces", "create", "work")

    assert call("spaces", "grant", "work", "alice").code == 0
    assert [(one["space"], one["user"]) for one in call("spaces", "grants", "--json").json] == [("work", "alice")]
    assert call("spaces", "revoke", "work", "alice").code == 0
    assert call("spaces", "grants", "--json").json == []


def test_the_audit_tells_who_did_what(call, stored):
    memory = stored("Tea at four.")
    key = call("keys", "create", "--user", "alice", "--json").json

    acts = call("audit", "--json").json

    assert {(act["action"], act.get("memory") or act["subject"]) for act in acts} == {
        ("stored", memory),
        ("credential created", key["id"]),
    }
    assert all(act["transport"] == "cli" for act in acts)
    assert [act["action"] for act in call("audit", "--memory", memory, "--json").json] == ["stored"]
    assert "Tea at four" not in call("audit").out
