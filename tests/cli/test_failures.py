"""How the program ends when something is wrong: a line, a hint, an exit code, and never a traceback."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading

import pytest

from tests.embedders.test_remote import Server

pytestmark = pytest.mark.process

COMMANDS_BY_ID = (["show"], ["history"], ["update", "--title", "t"], ["forget"], ["forget", "--hard", "--yes"],
                  ["forget", "--undo"], ["undo"], ["supersede", "mem_000000000000"], ["archive"],
                  ["audit", "--shown"])  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS_BY_ID, ids=" ".join)
@pytest.mark.parametrize("id", ["mem_000000000000", "nope", "'; DROP TABLE memories; --", "../../etc/passwd"])
def test_an_unknown_id_is_exit_code_3(call, command, id):
    done = call(*command, id)

    assert done.code == 3
    assert done.out == ""
    assert done.err.startswith("Error: ")


@pytest.mark.parametrize("command", COMMANDS_BY_ID, ids=" ".join)
def test_an_unknown_id_is_told_to_programs_on_standard_error(call, command):
    done = call("--json", *command, "mem_000000000000")

    assert done.code == 3
    assert done.out in ("", "[]\n")
    assert done.error["code"] == "not_found"
    assert set(done.error) == {"code", "message", "hint"}


@pytest.mark.parametrize(
    "usage",
    [
        ["store"],
        ["store", "tea", "--expires", "5m"],
        ["store", "tea", "--expires", "yesterday"],
        ["store", "tea", "--expires", "2020-01-01"],
        ["store", "tea", "--importance", "1.5"],
        ["store", "tea", "--category", "drink"],
        ["store", "tea", "--source", "rumour"],
        ["search", "tea", "--since", "soon"],
        ["search", "tea", "--limit", "0"],
        ["list", "--limit", "1001"],
        ["list", "--order", "colour"],
        ["update", "mem_1"],
        ["update", "mem_1", "--expires", "1d", "--no-expiry"],
        ["history", "mem_1", "--restore", "0"],
        ["forget"],
        ["forget", "--hard", "--undo", "mem_1"],
        ["forget", "--hard", "mem_1"],
        ["import", "missing.jsonl"],
        ["model", "pull", "--from", "missing"],
        ["completion", "tcsh"],
        ["spaces", "destroy"],
        ["forget", "mem_1", "--client", "x"],
        ["forget", "--client", "x", "--hard", "--yes"],
        ["archive"],
        ["archive", "mem_x", "--below", "0.3"],
        ["archive", "--undo"],
        ["archive", "--undo", "--below", "0.3"],
        ["archive", "--undo", "mem_x", "--dry-run"],
        ["archive", "--tier", "warm", "mem_x"],
        ["archive", "--to", "moon"],
        ["archive", "--to", "database", "mem_x"],
        ["archive", "--to", "database", "--accept-folder"],
        ["archive", "--accept-folder", "--undo"],
        ["conflicts", "--keep", "a", "b", "--supersede", "a", "b"],
        ["conflicts", "--limit", "0"],
        ["conflicts", "--group", "mem_1"],
        ["conflicts", "--as", "same"],
        ["keys", "create"],
        ["keys", "create", "--user", "a", "--role", "king"],
        ["keys", "create", "--user", "a", "--expires", "yesterday"],
        ["audit", "--since", "soon"],
        ["update", "mem_1", "--also", "yacht", "--no-also"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_exit_code_2(call, home, usage):
    done = call(*usage)

    assert done.code == 2
    assert "Error: " in done.err
    assert done.out == ""
    assert not home.exists()

    for_programs = call(*usage, "--json")

    assert (for_programs.code, for_programs.out) == (2, "")
    assert for_programs.error["code"] == "usage"
    assert usage[0] == "completion" or for_programs.error["message"] in " ".join(done.err.split())


@pytest.mark.parametrize(
    "usage", [["--json"], ["serach", "--json"], ["list", "--bogus", "--json"], ["spaces", "--json"]]
)
def test_wrong_usage_is_json_even_where_the_option_was_not_read_yet(call, usage):
    assert call(*usage).error["code"] == "usage"
    assert call(*usage).code == 2


def test_a_text_that_looks_like_the_option_is_a_text(call):
    assert call("store", "--bogus", "--", "--json").err.startswith("Usage: ")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["archive", "--inactive", "5h"], 2),
        (["keys", "create", "--user", "a", "--in", "Bad Name"], 1),
        (["keys", "create", "--user", "a", "--in", "nowhere"], 3),
        (["keys", "create", "--user", "a", "--kind", "password"], 1),
        (["keys", "revoke", "key_nobody"], 3),
        (["keys", "rotate", "key_nobody"], 3),
        (["audit", "--in", "nowhere"], 3),
        (["spaces", "grant", "nowhere", "alice"], 3),
        (["spaces", "revoke", "default", "alice"], 3),
        (["decisions", "nope"], 3),
        (["jobs", "show", "job_unknown"], 3),
        (["sync", "resolve", "7", "--keep", "ours"], 3),
        (["forget", "--undo", "deed_unknown"], 3),
        (["conflicts", "--keep", "mem_000000000000", "mem_000000000000"], 3),
        (["conflicts", "--supersede", "mem_000000000000", "mem_000000000000"], 3),
        (["conflicts", "--group", "mem_000000000000", "--as", "same"], 3),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else str(one),
)
def test_what_cannot_be_done_is_said_with_its_code(call, words, code):
    done = call(*words, "--json")

    assert done.code == code
    assert done.error["code"] != "internal"


@pytest.mark.parametrize("text", ["", " ", "\n\t", "x" * 50_001], ids=["nothing", "blank", "white space", "too long"])
def test_a_text_that_cannot_be_kept_is_refused(call, text):
    done = call("store", text)

    assert done.code == 1
    assert done.out == ""
    assert "content" in done.err
    assert call("list", "--json").json == []


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"caf\xe9", "byte 4 is 0xe9"),
        (b"half \xed\xa0\x80", "byte 6 is 0xed"),  # a lone surrogate, as some programs write it
        (b"\xff\xfet\0e\0a\0", "byte 1 is 0xff"),
        (b"", "empty or blank"),
        (b"x" * 50_001, "50,001"),
        (b"x" * 1_000_000, "more than 50,000"),
    ],
    ids=["latin-1", "surrogate", "utf-16", "nothing", "too long", "endless"],
)
def test_input_that_is_no_text_is_refused(call, data, said):
    done = call("store", "-", stdin=data)

    assert done.code == 1
    assert said in done.err


@pytest.mark.skipif(sys.platform == "win32", reason="arguments are Unicode there")
def test_an_argument_that_is_no_text_is_refused(run):
    done = run("store", b"caf\xe9")

    assert done.code == 1
    assert "surrogate" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("space", ["Work", "a b", "-", "a--b", "../x", "", "x" * 101, "ünï"])
def test_a_space_that_is_no_name_is_refused(call, space):
    done = call("spaces", "create", "--", space)

    assert (done.code, "space" in done.err) == (1, True)
    assert not space or call("--space", space, "--json", "list").error["code"] in ("invalid_input", "usage")


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (b"space = ", "config.toml cannot be read"),
        (b"\xff", "config.toml cannot be read"),
        (b"colour = 1", "unknown setting colour"),
        (b'port = "high"', "port in config.toml"),
        (b'log_level = "loud"', "one of debug"),
    ],
)
def test_a_broken_config_is_named(call, home, config, said):
    home.mkdir()
    (home / "config.toml").write_bytes(config)

    for command in (["list"], ["settings"], ["serve"], ["model", "list"]):
        done = call(*command)
        assert done.code == 1
        assert said in done.err


def test_half_a_provider_is_refused(call):
    done = call("list", env={"SCRUBJAY_CHAT_URL": "http://127.0.0.1:9/v1"})

    assert (done.code, "chat_model" in done.err) == (1, True)


def test_a_home_that_is_a_file_is_an_error_of_one_line(call, home):
    home.write_text("not a folder")

    done = call("store", "tea")

    assert done.code == 1
    assert done.err.startswith("Error: ")
    assert "Traceback" not in done.err


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_home_that_may_not_be_written_is_an_error_of_one_line(call, home):
    home.mkdir(mode=0o500)

    done = call("store", "tea")

    assert done.code == 1
    assert "cannot be" in done.err


def test_a_model_that_is_not_known_is_named_with_those_that_are(call):
    done = call("store", "tea", env={"SCRUBJAY_EMBEDDER": "word2vec"})

    assert done.code == 1
    assert "word2vec" in done.err
    assert "arctic-embed-s" in done.err


def test_a_missing_model_keeps_nothing_from_being_stored_and_found_by_words(call):
    model = {"SCRUBJAY_EMBEDDER": "arctic-embed-s"}

    done = call("store", "User moved to Austin", env=model)
    found = call("search", "Austin", env=model)

    assert done.code == 0
    assert "by words only" in done.err
    assert "User moved to Austin" in found.out
    assert "by words only" in found.err
    for said in (done.err, found.err):
        assert "vocab.txt is missing." in said
        assert "run `scrubjay model pull`" in said


def test_a_closed_pipe_ends_quietly(start, filled):
    filled(30, 4_000)

    with start("list", "--limit", "1000") as process:
        process.stdout.close()
        err = process.stderr.read()

    assert process.returncode == 141
    assert err == b""


@pytest.mark.parametrize("command", [["--help"], ["list"], ["list", "--json"], ["export"], ["doctor"]], ids=" ".join)
def test_no_output_at_all_is_no_reason_for_a_traceback(start, stored, command):
    stored("tea")

    with start(*command, stdout=subprocess.DEVNULL) as process:
        assert process.stderr.read().find(b"Traceback") == -1

    assert process.returncode == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a full device")
@pytest.mark.parametrize("command", [["list"], ["list", "--json"], ["export"]], ids=" ".join)
def test_a_full_disk_behind_the_output_is_an_error(start, stored, command):
    stored("tea")

    with open("/dev/full", "wb") as full, start(*command, stdout=full) as process:
        err = process.stderr.read().decode()

    assert process.returncode == 1
    assert "No space left" in err
    assert "Traceback" not in err


@pytest.fixture
def interruptible():
    """Whoever runs tests in the background may have interrupts ignored, and children inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt(process, call, *, lines=256, written=128):
    """What an import says then. It reads from us, so the moment is certain: two batches are written, two are embedded,
    and it waits for more."""
    facts = (f'{{"content": "User likes tea number {number}"}}\n' for number in range(lines))
    process.stdin.write("".join(facts).encode())
    process.stdin.flush()
    while len(call("list", "--limit", str(written), "--json").json) < written:
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.stdin.close()
    return process.stderr.read().decode()


@pytest.mark.skipif(sys.platform == "win32", reason="signals are different there")
@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(
    ("options", "lines", "written", "resume"), [([], 256, 128, "65|129"), (["--embed", "later"], 600, 512, "513")]
)
def test_an_interrupted_import_is_one_line_and_exit_code_130(start, call, options, lines, written, resume):
    """Without a model the first batch is written, and the second waits for more lines."""
    with start("import", *options, "-") as process:
        err = interrupt(process, call, lines=lines, written=written)

    assert process.returncode == 130
    assert err.splitlines()[-1] == "Interrupted."
    assert re.search(rf"to resume, repeat the command with --from-line ({resume})\b", err)
    assert "Traceback" not in err


# The real command, interrupted when it closes the store.
INTERRUPTED_AT_THE_END = """
import os, signal, sys
from scrubjay.cli.main import main
from scrubjay.stores.sqlite.store import SqliteStore

close = SqliteStore.close
SqliteStore.close = lambda store: (os.kill(os.getpid(), signal.SIGINT), close(store))
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv = ["scrubjay", "import", sys.argv[1]]
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are different there")
def test_an_import_interrupted_when_all_is_in_says_so(tmp_path, environment):
    """Repeated from the last line that was named, lines without ids would come twice."""
    file = tmp_path / "two.jsonl"
    file.write_text('{"content": "User likes tea"}\n' * 2)
    command = [sys.executable, "-c", INTERRUPTED_AT_THE_END, str(file)]

    done = subprocess.run(command, env=environment, timeout=240, capture_output=True, text=True)

    assert done.returncode == 130
    assert "Lines 1 to 2 are imported" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals are different there")
@pytest.mark.usefixtures("interruptible")
def test_a_program_that_interrupts_an_import_is_told_how_to_resume(start, call):
    with start("--json", "import", "-") as process:
        err = interrupt(process, call)

    error = json.loads(err.splitlines()[-1])["error"]
    assert (process.returncode, error["code"], error["message"]) == (130, "interrupted", "Interrupted.")
    assert re.search("to resume, repeat the command with --from-line (65|129)", error["hint"])


@pytest.mark.skipif(sys.platform == "win32", reason="signals are different there")
@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_import_does_not_wait_for_the_model(start, call, tmp_path):
    """What is being embedded is given up, what is written stays, and the last words say how to go on."""
    file, asked, ended = tmp_path / "many.jsonl", threading.Event(), threading.Event()
    file.write_text("".join(json.dumps({"content": f"Fact number {number}"}) + "\n" for number in range(640)))
    with Server() as server:
        quick = server.answers[0]

        def held(_handler, _body):
            asked.set()
            ended.wait()

        server.answers = [quick, quick, held]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        remote = {"SCRUBJAY_EMBEDDER": "remote", "SCRUBJAY_REMOTE_URL": server.url, "SCRUBJAY_REMOTE_MODEL": "m"}
        with start("import", str(file), env=remote) as process:
            assert asked.wait(60)
            while not call("list", "--json").json:
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
            try:
                err = process.communicate(timeout=20)[1].decode()
            finally:
                ended.set()  # or a program that waits would never end
        server.shutdown()

    assert process.returncode == 130
    [line] = re.findall(r"Lines 1 to \d+ are imported; to resume, repeat the command with --from-line (\d+)\.", err)
    assert len(call("list", "--limit", "500", "--json").json) == int(line) - 1


def test_what_nobody_foresaw_is_one_line_with_how_to_learn_more(call, home):
    """A folder where the config should be: an error of the system's that nobody translates."""
    (home / "config.toml").mkdir(parents=True)

    done = call("list")
    told = call("list", "--debug")
    as_json = call("list", "--json")

    assert done.code == told.code == as_json.code == 1
    assert "Traceback" not in done.err
    assert "--debug" in done.err
    assert "Traceback" in told.err
    assert as_json.error["code"] == "internal"
