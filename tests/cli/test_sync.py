"""`scrubjay sync`, as people type it."""

from __future__ import annotations

from contextlib import closing

import pytest

import scrubjay
from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.engine.parts import engine_on
from scrubjay.stores.sqlite.store import SqliteStore
from scrubjay.values.callers import Role
from tests.servers.sites import running
from tests.sync.lines import site_of

pytestmark = pytest.mark.process


def changed_on_both_sides(call, file) -> str:
    memory = call("store", "User lives in Austin").out.strip()
    call("sync", "add", "drive", str(file))
    call("sync", "run", "drive")
    with scrubjay.open(file, embedder=HashingEmbedder()) as drive:
        drive.update(memory, content="User lives in Paris")
    call("update", memory, "--content", "User lives in Rome")
    return memory


def test_a_store_is_named_synced_listed_and_removed(call, tmp_path):
    call("store", "User lives in Austin")

    assert call("sync", "add", "drive", str(tmp_path / "drive.db")).out == "drive\n"
    assert call("sync", "run", "drive", "--dry-run").out.startswith("Would be: 1 created")
    assert call("sync", "run", "drive").out == "Synced: 1 created, 0 updated, 0 deleted; 1 compared.\n"
    [endpoint] = call("sync", "list", "--json").json
    assert endpoint["name"] == "drive"
    assert endpoint["synced_at"]
    assert call("sync", "remove", "drive").code == 0
    assert call("sync", "list", "--json").json == []


def test_json_says_everything_of_a_call(call, tmp_path):
    call("store", "User lives in Austin")
    call("sync", "add", "drive", str(tmp_path / "drive.db"))

    done = call("sync", "run", "drive", "--json").json

    assert (done["created"], done["checked"], done["conflicts"]) == (1, 1, [])


def test_an_unknown_store_is_3_and_told_how_to_add(call):
    done = call("sync", "run", "nowhere")

    assert done.code == 3
    assert "scrubjay sync add nowhere FILE" in done.err


def test_a_store_that_is_not_there_is_1(call, tmp_path):
    call("sync", "add", "drive", str(tmp_path / "drive.db"))
    (tmp_path / "drive.db").unlink()

    done = call("sync", "run", "drive")

    assert done.code == 1
    assert "cannot be reached" in done.err


def test_a_conflict_is_listed_and_decided(call, tmp_path):
    memory = changed_on_both_sides(call, tmp_path / "drive.db")

    left = call("sync", "run", "drive", "--on-conflict", "manual")
    assert left.code == 1
    assert "1 conflict waits" in left.err
    [conflict] = call("sync", "conflicts", "--json").json
    assert conflict["memory"] == memory
    assert (conflict["ours"]["content"], conflict["theirs"]["content"]) == ("User lives in Rome", "User lives in Paris")
    assert "User lives in Rome" in call("sync", "conflicts").out
    assert call("sync", "resolve", str(conflict["number"]), "--keep", "theirs").code == 0
    assert call("sync", "run", "drive").code == 0

    assert "User lives in Paris" in call("show", memory).out
    [settled] = call("sync", "conflicts", "--settled", "--json").json
    assert settled["outcome"] == "theirs"


def test_a_restored_store_signs_under_another_origin(call, home, tmp_path):
    memory = call("store", "User lives in Austin").out.strip()
    call("sync", "add", "drive", str(tmp_path / "drive.db"))
    call("backup", str(tmp_path / "backup.db"))
    call("update", memory, "--content", "User lives in Paris")
    call("sync", "run", "drive")
    with scrubjay.open(home / "memories.db", embedder=HashingEmbedder()) as jay:
        before = jay.records.origin

    assert call("restore", str(tmp_path / "backup.db"), "--replace").code == 0
    assert call("sync", "run", "drive").code == 0

    with scrubjay.open(home / "memories.db", embedder=HashingEmbedder()) as jay:
        assert jay.records.origin != before
        assert jay.get(memory).content == "User lives in Paris"


# --- another scrubjay ------------------------------------------------------------------------------------------------


@pytest.fixture
def far(tmp_path):
    with engine_on(SqliteStore(tmp_path / "far.db"), HashingEmbedder()) as engine:
        yield engine


@pytest.fixture
def address(far):
    with running(site_of(far)) as address:
        yield address


def test_a_scrubjay_on_this_machine_is_named_only_where_a_setting_allows_it(call, address):
    done = call("sync", "add", "cloud", address, stdin="\n")

    assert done.code != 0
    assert "sync_private" in done.err


def test_the_key_of_another_scrubjay_is_asked_for_kept_and_never_shown(call, stored, environment, home, far, address):
    environment["SCRUBJAY_SYNC_PRIVATE"] = "on"
    key = far.callers.create("ann", role=Role.OWNER).secret
    stored("User lives in Austin")

    refused = call("sync", "add", "cloud", address, stdin="wrong-key\n")
    kept = home / "sync_keys.json"
    assert refused.code != 0
    assert not kept.exists() or "wrong-key" not in kept.read_text()
    shown = [
        refused,
        call("sync", "add", "cloud", address, "--json", stdin=f"{key}\n"),
        call("sync", "run", "cloud"),
        call("sync", "list"),
        call("sync", "list", "--json"),
        call("settings"),
    ]
    assert [done.code for done in shown[1:]] == [0] * 5
    assert not any(word in done.out + done.err for done in shown for word in (key, "wrong-key"))
    assert [memory.content for memory in far.list()] == ["User lives in Austin"]
    assert key in kept.read_text()
    assert call("sync", "remove", "cloud").code == 0
    assert key not in kept.read_text()


def test_a_key_from_the_environment_is_used_and_not_kept(call, environment, home, far, address):
    key = far.callers.create("ann", role=Role.OWNER).secret
    environment.update(SCRUBJAY_SYNC_PRIVATE="on", SCRUBJAY_SYNC_KEY=f"cloud={key}")

    assert call("sync", "add", "cloud", address).code == 0
    assert call("sync", "run", "cloud").code == 0
    assert not (home / "sync_keys.json").exists()
    assert key not in call("settings", "--json").out


# --- a clock that was lifted -----------------------------------------------------------------------------------------


@pytest.fixture
def lifted(call, home, tmp_path):
    """A store whose clock a peer carried two million years ahead, and which has stamped a change since."""
    call("store", "Tea is at four")
    call("sync", "add", "drive", str(tmp_path / "drive.db"))
    call("sync", "run", "drive")
    with closing(SqliteStore(home / "memories.db")) as store, store.writing() as tx:
        tx.clock.observe(2**62)
    call("store", "Coffee is at ten")


def clock_of(call):
    [finding] = [one for one in call("doctor", "--json").json["findings"] if one["check"] == "clock"]
    return finding


def test_a_lifted_clock_is_told_by_doctor_with_the_command_that_mends_it(call, lifted):
    finding = clock_of(call)
    said = call("doctor")

    assert finding["state"] == "warning"
    assert "years ahead of this machine's; others refuse to sync" in finding["found"]
    assert "scrubjay sync mend-clock" in finding["do"]
    assert said.code == 0
    assert "scrubjay sync mend-clock" in said.out
    assert "No problems found." not in said.out


def test_a_lifted_clock_keeps_a_store_from_syncing_until_it_is_mended(call, lifted):
    refused = call("sync", "run", "drive")
    assert refused.code != 0
    assert "ahead of this machine's clock" in refused.err
    assert "scrubjay sync mend-clock" in refused.err

    mended = call("sync", "mend-clock")

    assert (mended.code, mended.out + mended.err) == (0, "1 timestamp fixed.\n")
    assert clock_of(call)["state"] == "ok"
    assert call("sync", "run", "drive").out.startswith("Synced: 1 created")
    assert call("list").out.index("Coffee") < call("list").out.index("Tea")


def test_mending_says_in_json_how_much_it_did_and_nothing_twice(call, lifted):
    assert call("sync", "mend-clock", "--json").json == {"mended": 1}
    assert call("sync", "mend-clock", "--json").json == {"mended": 0}
    assert "nothing to fix" in (done := call("sync", "mend-clock")).out + done.err
