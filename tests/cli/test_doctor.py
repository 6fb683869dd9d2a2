"""Doctor: every finding says what to do, nothing is written, and damage keeps it from nothing."""

from __future__ import annotations

import math
import os
import signal
import stat
import struct
import subprocess
import sys
import threading
import time
from contextlib import closing
from hashlib import sha256

import apsw
import pytest

from scrubjay.settings import load
from tests.embedders.test_remote import Server

pytestmark = pytest.mark.process


def findings(done):
    return {one["check"]: one for one in done.json["findings"]}


def states(done):
    return {name: one["state"] for name, one in findings(done).items()}


def test_a_home_without_a_store_is_no_problem_and_none_is_made(call, home):
    done = call("doctor", "--json")

    assert done.code == 0
    assert findings(done)["store"]["found"] == "None yet."
    assert not home.exists()


def make_broken_config(home):
    (home / "config.toml").write_text("space = ")


def make_file_of_home(home):
    home.rmdir()
    home.write_text("not a folder")


@pytest.mark.parametrize(
    ("spoil", "env", "check", "do"),
    [
        (lambda home: (home / "memories.db").symlink_to(home / "gone.db"), {}, "store", "Fix or remove the link."),
        (lambda home: (home / "memories.db").mkdir(), {}, "store", "Name a file in it."),
        (lambda _: None, {"SCRUBJAY_STORE": "carrier://pigeon"}, "store", ""),
        (make_broken_config, {}, "settings", ""),
        (make_file_of_home, {}, "home", ""),
        (lambda _: None, {"SCRUBJAY_EMBEDDER": "word2vec"}, "model", ""),
        (lambda _: None, {"SCRUBJAY_EMBEDDER": "folder:/missing"}, "model", ""),
    ],
    ids=["a link that leads nowhere", "what never was a store", "an unknown address", "a broken config",
         "a home that is a file", "an unknown model", "a missing folder of a model"],
)  # fmt: skip
def test_what_is_wrong_with_the_surroundings_is_a_problem_with_what_to_do(call, home, spoil, env, check, do):
    home.mkdir(mode=0o700)
    spoil(home)

    done = call("doctor", "--json", env=env)

    assert (done.code, states(done)[check]) == (1, "problem")
    assert findings(done)[check]["do"]
    assert do in findings(done)[check]["do"]


@pytest.mark.parametrize(
    ("name", "do"),
    [
        ("SCRUBJAY_DATABASE", "Set SCRUBJAY_STORE instead."),
        ("SCRUBJAY_EMBEDER", "Set SCRUBJAY_EMBEDDER instead."),
        ("SCRUBJAY_PIGEON", "Unset it; `scrubjay settings` lists those that there are."),
    ],
)
def test_a_variable_that_is_no_setting_is_named_with_the_one_that_was_meant(call, name, do):
    found = findings(call("doctor", "--json", env={name: "x", "SCRUBJAY_KEY": "x", "SCRUBJAY_LIMITS": "off"}))

    assert (found["environment"]["state"], found["environment"]["do"]) == ("warning", do)
    assert found["environment"]["found"] == f"{name} is not a setting and has no effect."
    assert "environment" not in findings(call("doctor", "--json"))


def test_a_healthy_store_is_well(call, stored, home):
    stored("User likes tea")

    done = call("doctor", "--deep", "--json")

    assert done.code == 0
    assert done.json["ok"]
    assert set(states(done).values()) <= {"ok", "note", "warning"}
    assert {"settings", "home", "model", "integrity", "hashes", "texts", "words", "vectors", "fingerprint"} <= set(
        states(done)
    )
    assert findings(done)["hashes"]["found"] == "Every text matches its hash."


def test_without_a_warning_all_is_well(call, real_model):
    done = call("doctor", env=real_model)

    assert done.code == 0
    assert {line.split("\t")[0] for line in done.out.splitlines()} == {"ok", "note"}
    assert done.err.splitlines()[-1] == "No problems found."


def test_a_warning_alone_is_no_failure_is_named_last_and_what_is_ok_needs_nothing_done(call, stored):
    stored("User likes tea")

    done, found = call("doctor"), call("doctor", "--json").json["findings"]

    assert done.code == 0
    assert done.err.splitlines()[-1] == "Works, with warnings about: model."
    assert {one["state"] for one in found if one["do"]} <= {"note", "warning"}
    assert {one["state"] for one in found if not one["do"]} == {"ok"}
    assert states(call("doctor", "--json"))["hashes"] == "note"
    assert states(call("doctor", "--json", env={"SCRUBJAY_EMBEDDER": "none"}))["model"] == "warning"


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
def test_a_damaged_store_is_a_problem_and_stays_as_it_is(call, home, filled, damage, options):
    filled(20, 5_000)
    store = home / "memories.db"
    store.write_bytes(damage(store.read_bytes()))
    before = sha256(store.read_bytes()).digest()

    done = call("doctor", *options, "--json")

    assert done.code == 1
    assert not done.json["ok"]
    assert all(one["do"] for one in done.json["findings"] if one["state"] == "problem")
    assert sha256(store.read_bytes()).digest() == before
    assert "Traceback" not in call("doctor", *options).err


def test_rebuilding_a_damaged_store_is_refused(call, home, filled):
    filled(20, 5_000)
    store = home / "memories.db"
    store.write_bytes(store.read_bytes()[: store.stat().st_size // 2])

    done = call("doctor", "--rebuild", "--json")

    assert done.code == 1
    assert states(done)["rebuild"] == "problem"


def test_memories_that_wait_for_a_model_are_a_warning_and_rebuild_embeds_them(call):
    call("store", "User likes tea", env={"SCRUBJAY_EMBEDDER": "none"})

    waiting = call("doctor", "--json")
    rebuilt = call("doctor", "--rebuild", "--json")

    assert waiting.code == 0
    assert states(waiting)["vectors"] == "warning"
    assert "0 of 1" in findings(waiting)["vectors"]["found"]
    assert "--rebuild" in findings(waiting)["vectors"]["do"]
    assert states(rebuilt)["vectors"] == states(rebuilt)["rebuild"] == "ok"


def test_a_vector_that_is_not_made_of_numbers_is_a_problem_that_reembed_repairs(call, stored, home):
    stored("User likes tea")
    with closing(apsw.Connection(str(home / "memories.db"))) as file:
        file.execute("UPDATE vectors SET vector = ?", (struct.pack("<f", math.nan) * 384,))

    found = call("doctor", "--json")
    assert (found.code, states(found)["vectors"]) == (1, "problem")
    assert "1 of 1" in findings(found)["vectors"]["found"]
    assert findings(found)["vectors"]["do"] == "scrubjay reembed"

    assert "1 memory has new vectors" in call("reembed").err
    assert states(call("doctor", "--json"))["vectors"] == "ok"


def test_a_rebuild_without_its_model_says_what_to_do_and_nothing_of_rescue(call):
    call("store", "User likes tea", env={"SCRUBJAY_EMBEDDER": "none"})

    found = findings(call("doctor", "--rebuild", "--json", env={"SCRUBJAY_EMBEDDER": "arctic-embed-s"}))["rebuild"]

    assert "scrubjay model pull" in found["found"]
    assert found["do"] == "Then: scrubjay doctor --rebuild"


def test_a_damaged_word_index_is_a_problem_that_rebuild_repairs(call, stored, home):
    stored("User likes tea")
    with closing(apsw.Connection(str(home / "memories.db"))) as file:
        file.execute("DELETE FROM words_data WHERE id > 10")

    found = call("doctor", "--json")
    assert (found.code, findings(found)["integrity"]["do"]) == (1, "scrubjay doctor --rebuild")
    assert "word index is damaged" in findings(found)["integrity"]["found"]

    assert states(call("doctor", "--rebuild", "--json"))["integrity"] == "ok"


def test_vectors_of_another_model_are_a_problem(call, stored):
    stored("User likes tea")

    done = call("doctor", "--json", env={"SCRUBJAY_EMBEDDER": "arctic-embed-s"})

    assert done.code == 1
    assert states(done)["fingerprint"] == "problem"
    assert "SCRUBJAY_EMBEDDER" in findings(done)["fingerprint"]["do"]


@pytest.fixture
def real_model():
    return {"SCRUBJAY_EMBEDDER": "arctic-embed-s", "SCRUBJAY_MODELS": str(load().models)}


@pytest.mark.parametrize("there", [False, True], ids=["missing", "damaged"])
def test_a_missing_or_damaged_model_is_a_problem_that_the_last_line_names(call, home, there):
    if there:
        (home / "models" / "arctic-embed-s").mkdir(parents=True)
        (home / "models" / "arctic-embed-s" / "vocab.txt").write_text("half a file")

    done = call("doctor", env={"SCRUBJAY_EMBEDDER": "arctic-embed-s"})

    last = done.err.splitlines()[-1]
    assert done.code == 1
    assert last.startswith("Problem: model: arctic-embed-s: ")
    assert "Fix: scrubjay model pull" in last


# --- a log that was deleted by hand ----------------------------------------------------------------------------------


@pytest.fixture
def left_behind(home, stored):
    """A store whose server was killed: its last memory is in the log only. Gives what deletes the log."""
    stored("User likes tea")
    store = home / "memories.db"
    child = subprocess.run(
        [sys.executable, "-c", KILLED, str(store)], capture_output=True, timeout=240, env={**os.environ}
    )
    assert child.returncode == -signal.SIGKILL, child.stderr
    log = store.with_name("memories.db-wal")
    assert log.stat().st_size > 0
    return log


KILLED = """
import os, signal, sys
from pathlib import Path
from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.engine import Engine
from scrubjay.engine.parts import engine_on
from scrubjay.stores.sqlite.store import SqliteStore

jay = engine_on(SqliteStore(Path(sys.argv[1])), HashingEmbedder())
jay.store("User has learnt to knit")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(os.name == "nt", reason="kills a process")
def test_a_log_that_was_deleted_is_told_until_the_store_is_put_in_order(call, stored, left_behind):
    left_behind.unlink()
    left_behind.with_name("memories.db-shm").unlink(missing_ok=True)

    at_once = call("doctor")
    again = call("doctor", "--json")
    stored("User is back")
    later = call("doctor", "--json")
    call("doctor", "--rebuild")

    assert at_once.code == 1
    assert "-wal file was deleted" in at_once.err.splitlines()[-1]
    assert findings(again)["integrity"]["state"] == "problem"  # looking changes nothing
    assert "newer backup" in findings(again)["integrity"]["do"]
    assert later.code == 0
    assert findings(later)["changes"]["state"] == "warning"
    assert "changes" not in states(call("doctor", "--json"))


@pytest.mark.skipif(os.name == "nt", reason="kills a process")
def test_a_log_that_is_still_there_is_no_matter_and_its_memory_is_kept(call, left_behind):
    done = call("doctor", "--json")

    assert done.code == 0
    assert findings(done)["texts"]["found"] == "2 memories."


def test_a_store_that_is_restored_or_begun_anew_lacks_nothing(call, stored, home, tmp_path):
    stored("User likes tea")
    call("backup", str(tmp_path / "backup.db"))
    stored("User likes coffee")

    restored = call("restore", str(tmp_path / "backup.db"), "--replace")
    after_restoring = call("doctor", "--json")
    (home / "memories.db").unlink()
    stored("User likes water")

    assert restored.code == 0, restored.err
    assert after_restoring.code == call("doctor", "--json").code == 0


@pytest.mark.skipif(os.name == "nt", reason="kills a process")
def test_an_older_copy_in_the_stores_place_is_told_too(call, stored, home):
    stored("User likes tea")
    before = (home / "memories.db").read_bytes()
    stored("User likes coffee")

    (home / "memories.db").write_bytes(before)

    assert "older copy" in call("doctor").err.splitlines()[-1]


def test_the_model_for_other_languages_is_told_of(call, tmp_path):
    default = {"SCRUBJAY_EMBEDDER": "arctic-embed-s", "SCRUBJAY_MODELS": str(tmp_path / "models")}

    missing = call("doctor", "--json", env=default)
    off = call("doctor", "--json", env={**default, "SCRUBJAY_LANGUAGES": "off"})

    assert "multilingual-e5-small" in findings(missing)["languages"]["found"]
    assert "model pull" in findings(missing)["languages"]["do"]
    assert "by their words only" in findings(off)["languages"]["found"]


@pytest.mark.parametrize(
    ("chosen", "state", "do"),
    [
        ({"SCRUBJAY_EMBEDDER": "multilingual-e5-small"}, "ok", ""),
        ({"SCRUBJAY_EMBEDDER": "multilingual-e5-small", "SCRUBJAY_LANGUAGES": "off"}, "ok", ""),
        ({"SCRUBJAY_EMBEDDER": "arctic-embed-s", "SCRUBJAY_LANGUAGES": "off"}, "warning", "Unset SCRUBJAY_LANGUAGES."),
        ({"SCRUBJAY_EMBEDDER": "hashing"}, "note", "If the chosen model knows English only: SCRUBJAY_LANGUAGES=on"),
    ],
)
def test_what_is_said_of_texts_in_other_languages_depends_on_the_model(call, home, chosen, state, do):
    """Without the further model: it may be switched off, or not needed, since the chosen one knows these languages."""
    call("store", "Die Katze heißt Mimi")
    with closing(apsw.Connection(str(home / "memories.db"))) as file:
        file.execute("INSERT INTO facts (key, value) VALUES ('further_models', json_array('of a time before'))")

    found = findings(call("doctor", "--json", env=chosen))["other languages"]

    assert (found["state"], found["do"]) == (state, do)


def test_a_model_that_is_here_is_not_to_be_pulled(call, real_model, tmp_path):
    """What waits for the model for other languages is embedded by the command that embeds what waits."""
    both = {**real_model, "SCRUBJAY_LANGUAGES": "on"}
    call("import", "-", "--embed", "later", stdin=b'{"content": "Die Katze hei\\u00dft Mimi"}\n', env=both)

    away = call("doctor", "--json", env={**both, "SCRUBJAY_MODELS": str(tmp_path / "none")})
    here = call("doctor", "--json", env=both)
    after = call("doctor", "--rebuild", "--json", env=both)

    assert findings(away)["other languages"]["do"].endswith("or: scrubjay model pull, then scrubjay doctor --rebuild")
    assert findings(here)["other languages"]["do"] == "A running server does it; or: scrubjay doctor --rebuild"
    assert states(after)["vectors"] == states(after)["other languages"] == "ok"


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


def test_an_archive_folder_that_is_away_is_a_problem_until_it_is_back_or_accepted(call, stored, home):
    id = stored("The harbour master is called Ottilie")
    call("archive", id, "--tier", "glacier")
    assert "archive folder" not in findings(call("doctor", "--json"))
    (home / "archive").rename(home / "away")

    done = call("doctor", "--json")

    assert done.code == 1
    assert str(home / "archive") in findings(done)["archive folder"]["found"]
    assert "scrubjay archive --accept-folder" in findings(done)["archive folder"]["do"]
    refused = call("archive", stored("The lighthouse is red"), "--tier", "glacier")
    assert refused.code == 1
    assert "Is its disk mounted?" in refused.err

    accepted = call("archive", "--accept-folder")
    assert accepted.out.startswith("glacier: most archived memories are missing")
    assert call("archive", stored("The lighthouse is blue"), "--tier", "glacier").code == 0


def test_a_remote_model_is_asked(call, environment):
    with Server() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        environment.update(SCRUBJAY_EMBEDDER="remote", SCRUBJAY_REMOTE_URL=server.url, SCRUBJAY_REMOTE_MODEL="m")

        well = call("doctor", "--json")
        server.answers = [lambda handler, _body: handler.give({}, status=401)]
        refused = call("doctor", "--json")
        server.shutdown()

    assert [one["state"] for one in well.json["findings"] if one["check"] == "model"] == ["ok"]
    [finding] = [one for one in refused.json["findings"] if one["check"] == "model"]
    assert (refused.code, finding["state"]) == (1, "problem")
    assert "SCRUBJAY_REMOTE_KEY" in finding["do"]
    assert len(server.asked) >= 2


@pytest.mark.long
def test_a_command_waits_for_the_model_at_a_terminal_and_elsewhere(call, terminal, environment):
    """Longer than the two seconds after which a server falls back to words."""
    call("store", "User moved to Austin")
    with Server() as server:
        quick = server.answers[0]

        def slow(handler, body):
            time.sleep(3)
            quick(handler, body)

        server.answers = [slow]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        remote = {"SCRUBJAY_EMBEDDER": "remote", "SCRUBJAY_REMOTE_URL": server.url, "SCRUBJAY_REMOTE_MODEL": "m"}
        del environment["SCRUBJAY_EMBED_WAIT"]
        person = terminal("store", "User likes tea", "--home", str(environment["SCRUBJAY_HOME"] + "2"), **remote)
        program = call("store", "User likes tea", "--home", str(environment["SCRUBJAY_HOME"] + "3"), env=remote)
        server.shutdown()

    assert person.code == program.code == 0
    assert "words only" not in person.out
    assert "did not answer in time" not in program.err
    assert "words only" not in program.err
