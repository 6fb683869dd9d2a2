"""Doctor: every finding says what to do, nothing is written, and damage keeps it from nothing."""

from __future__ import annotations

import os
import stat
from hashlib import sha256

import pytest

from scrubjay.settings import load


def findings(done):
    return {one["check"]: one for one in done.json["findings"]}


def states(done):
    return {name: one["state"] for name, one in findings(done).items()}


def test_a_home_without_a_store_is_no_problem_and_none_is_made(call, home):
    done = call("doctor", "--json")

    assert done.code == 0
    assert findings(done)["store"]["found"] == "There is none yet."
    assert not home.exists()


def test_a_link_that_leads_nowhere_is_a_problem(call, home):
    home.mkdir(mode=0o700)
    (home / "memories.db").symlink_to(home / "gone.db")

    done = call("doctor", "--json")

    assert done.code == 1
    assert findings(done)["store"]["do"] == "Mend the link, or remove it."


def test_what_never_was_a_store_is_not_to_be_salvaged(call, home):
    (home / "memories.db").mkdir(mode=0o700, parents=True)

    assert findings(call("doctor", "--json"))["store"]["do"] == "Name a file in it."


def test_a_healthy_store_is_well(call, stored, home):
    stored("User likes tea")

    done = call("doctor", "--deep", "--json")

    assert done.code == 0
    assert done.json["ok"]
    assert set(states(done).values()) <= {"ok", "warning"}
    assert {"settings", "home", "model", "integrity", "hashes", "texts", "words", "vectors", "fingerprint"} <= set(
        states(done)
    )
    assert findings(done)["hashes"]["found"] == "Every text fits its hash."
    assert call("doctor").err.endswith("All is well.\n")


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"not a store at all" * 1000,
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: data[:5000] + b"\xff" * 40_000 + data[45_000:],
        lambda data: data[:16] + bytes(100) + data[116:],
    ],
    ids=["another file", "empty", "cut off", "overwritten", "no header"],
)
@pytest.mark.parametrize("options", [[], ["--deep"]], ids=["quick", "deep"])
def test_a_damaged_store_is_a_problem_and_stays_as_it_is(run, call, home, filled, damage, options):
    filled(20, 5_000)
    store = home / "memories.db"
    store.write_bytes(damage(store.read_bytes()))
    before = sha256(store.read_bytes()).digest()

    done = run("doctor", *options, "--json")

    assert done.code == 1
    assert not done.json["ok"]
    assert all(one["do"] for one in done.json["findings"] if one["state"] == "problem")
    assert sha256(store.read_bytes()).digest() == before
    assert "Traceback" not in call("doctor", *options).err


def test_rebuilding_a_damaged_store_is_refused(run, home, filled):
    filled(20, 5_000)
    store = home / "memories.db"
    store.write_bytes(store.read_bytes()[: store.stat().st_size // 2])

    done = run("doctor", "--rebuild", "--json")

    assert done.code == 1
    assert states(done)["rebuild"] == "problem"


def test_memories_that_wait_for_a_model_are_a_warning_and_rebuild_embeds_them(run):
    run("store", "User likes tea", env={"SCRUBJAY_EMBEDDER": "none"})

    waiting = run("doctor", "--json")
    rebuilt = run("doctor", "--rebuild", "--json")

    assert waiting.code == 0
    assert states(waiting)["vectors"] == "warning"
    assert "0 of 1" in findings(waiting)["vectors"]["found"]
    assert "--rebuild" in findings(waiting)["vectors"]["do"]
    assert states(rebuilt)["vectors"] == states(rebuilt)["rebuild"] == "ok"


def test_vectors_of_another_model_are_a_problem(run, stored):
    stored("User likes tea")

    done = run("doctor", "--json", env={"SCRUBJAY_EMBEDDER": "arctic-embed-s"})

    assert done.code == 1
    assert states(done)["fingerprint"] == "problem"
    assert "SCRUBJAY_EMBEDDER" in findings(done)["fingerprint"]["do"]


def test_a_missing_model_is_a_warning_that_names_the_command(run):
    done = run("doctor", "--json", env={"SCRUBJAY_EMBEDDER": "arctic-embed-s"})

    assert done.code == 0
    assert states(done)["model"] == "warning"
    assert findings(done)["model"]["do"] == "scrubjay model pull"


def test_the_default_model_is_said_to_read_english_best(run):
    default = {"SCRUBJAY_EMBEDDER": "arctic-embed-s", "SCRUBJAY_MODELS": str(load().models)}

    done = run("doctor", "--json", env=default)

    assert states(done)["model"] == "ok"
    assert "English best" in findings(done)["languages"]["found"]
    assert "SCRUBJAY_EMBEDDER" in findings(done)["languages"]["do"]


@pytest.mark.parametrize("embedder", ["none", "word2vec", "folder:/missing"])
def test_a_model_that_cannot_be_used_is_told(run, embedder):
    done = run("doctor", "--json", env={"SCRUBJAY_EMBEDDER": embedder})

    assert states(done)["model"] == ("warning" if embedder == "none" else "problem")
    assert findings(done)["model"]["do"]


def test_a_broken_config_is_a_finding(call, home):
    home.mkdir()
    (home / "config.toml").write_text("space = ")

    done = call("doctor", "--json")

    assert done.code == 1
    assert states(done) == {"settings": "problem"}


def test_a_home_that_is_a_file_is_a_finding(call, home):
    home.write_text("not a folder")

    done = call("doctor", "--json")

    assert done.code == 1
    assert states(done)["home"] == "problem"


@pytest.mark.skipif(os.name == "nt", reason="permissions are different there")
def test_files_that_others_may_read_are_found_with_the_command_that_mends_it(call, stored, home):
    stored("User likes tea")
    home.chmod(0o755)
    (home / "memories.db").chmod(0o644)

    done = call("doctor", "--json")

    assert states(done)["home"] == "warning"
    assert findings(done)["home"]["do"] == f"chmod 700 {home}"
    assert any("chmod 600" in one["do"] for one in done.json["findings"])
    assert stat.S_IMODE(home.stat().st_mode) == 0o755


def test_a_store_address_that_is_not_understood_is_a_finding(run):
    done = run("doctor", "--json", env={"SCRUBJAY_STORE": "carrier://pigeon"})

    assert done.code == 1
    assert states(done)["store"] == "problem"
