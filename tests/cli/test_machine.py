"""Models, settings and servers, as far as the command line goes."""

from __future__ import annotations

import os
import shutil
import socket
from contextlib import closing

import pytest

from scrubjay.embedders import catalogue
from scrubjay.embedders.hashing import HashingEmbedder
from scrubjay.embedders.lending import Lending
from scrubjay.engine.parts import engine_on
from scrubjay.hooks.listening import listen
from scrubjay.settings import Settings, load
from tests.conftest import sqlite_store

ARCTIC = {"SCRUBJAY_EMBEDDER": "arctic-embed-s"}


def test_a_model_is_taken_from_a_folder_and_then_whole(call):
    ours = catalogue.find("arctic-embed-s").folder(load().models)

    before = call("model", "check", env=ARCTIC)
    pulled = call("model", "pull", "--from", str(ours), "--json", env=ARCTIC)
    after = call("model", "check", "--json", env=ARCTIC)
    again = call("model", "pull", "--quiet", env=ARCTIC)

    assert before.code == 1
    assert "is missing" in before.out
    assert "model pull" in before.err
    assert pulled.code == 0, pulled.err
    assert pulled.json["model"] == "arctic-embed-s"
    assert after.json == {"model": "arctic-embed-s", "ok": True, "problems": []}
    assert (again.code, again.out, again.err) == (0, "", "")


def test_a_pull_does_not_show_a_total_that_it_does_not_know(terminal):
    ours = catalogue.find("arctic-embed-s").folder(load().models)

    done = terminal("model", "pull", "--from", str(ours), **ARCTIC)

    assert done.code == 0, done.out
    assert "Fetching arctic-embed-s" in done.out
    assert "/?" not in done.out


def test_the_commands_for_models_are_explained_in_whole_sentences(call):
    listed = call("model", "--help").out.partition("Commands:")[2].partition("Options of all")[0]

    assert listed.count(".") == 4


def test_files_that_are_not_the_model_are_refused(call, tmp_path):
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "model_int8.onnx").write_text("not a model")

    done = call("model", "pull", "--from", str(tmp_path / "given"), "--json", env=ARCTIC)

    assert done.code == 1
    assert done.error["code"] == "model_missing"


def test_a_changed_model_file_is_found(call, home):
    ours = catalogue.find("arctic-embed-s")
    place = ours.folder(home / "models")
    shutil.copytree(ours.folder(load().models), place)
    (place / "vocab.txt").write_text("changed")

    done = call("model", "check", env=ARCTIC)

    assert done.code == 1
    assert done.out == "vocab.txt has the wrong content.\n"


def test_models_are_listed(call):
    shown = {one["name"]: one for one in call("model", "list", "--json").json}

    assert shown["arctic-embed-s"]["dimension"] == 384
    assert not shown["arctic-embed-s"]["here"]
    assert "all-minilm-l6-v2" in call("model", "list").out


def test_who_lends_a_model_is_told(call, home):
    home.mkdir(mode=0o700)
    nobody = call("model", "status")
    lending = Lending(home)
    with closing(engine_on(sqlite_store(home / "memories.db"), None, lending=lending)) as jay:
        stop = listen(load(home=home), jay, lambda: "an editor")
        lending.shared(HashingEmbedder()).load()
        shown, [one] = call("model", "status"), call("model", "status", "--json").json
        told = [finding for finding in call("doctor", "--json").json["findings"] if finding["check"] == "lending"]
        stop()

    assert (nobody.out, "No process" in nobody.err) == ("", True)
    assert one.keys() == {"process", "client", "model", "since", "askers", "texts_per_second"}
    assert (one["process"], one["client"], one["model"]) == (os.getpid(), "an editor", "hashing")
    assert f"{os.getpid()}\tan editor\thashing\t" in shown.out
    assert f"an editor (process {os.getpid()}) lends hashing since" in told[0]["found"]
    assert "0 askers, 0.00 texts a second" in told[0]["found"]


@pytest.mark.parametrize("embedder", ["none", "hashing", "remote"])
@pytest.mark.parametrize("command", ["pull", "check", "list"])
def test_an_embedder_without_files_needs_none(call, environment, command, embedder):
    environment["SCRUBJAY_EMBEDDER"] = embedder

    done = call("model", command)

    assert done.code == 0, done.err
    assert {"none": "No embedding model", "hashing": "needs no files", "remote": "another server"}[embedder] in done.err


def test_every_setting_is_shown_with_its_origin(call, home):
    home.mkdir()
    (home / "config.toml").write_text('user = "ann"\nport = 9000\n')

    shown = {one["name"]: one for one in call("settings", "--space", "work", "--json").json}

    assert list(shown) == [*Settings.__dataclass_fields__]
    assert {name: shown[name]["from"] for name in ("space", "home", "embedder", "user", "host")} == {
        "space": "flag",
        "home": "environment",
        "embedder": "environment",
        "user": "config.toml",
        "host": "default",
    }
    assert shown["user"]["value"] == "ann"
    assert shown["port"]["value"] == "9000"
    assert all(one["help"] for one in shown.values())
    assert shown["space"]["environment"] == "SCRUBJAY_SPACE"


@pytest.mark.parametrize(
    ("variable", "value", "secret", "shown"),
    [
        ("STORE", "postgresql://ann:hunter2@db/memories", "hunter2", "postgresql://ann:…@db/memories"),
        ("STORE", "postgresql://db/memories?password=hunter2&user=ann", "hunter2", "?password=…&user=ann"),
        ("SYNC", "base=postgresql://ann:hunter2@db/memories", "hunter2", "sync"),
        ("SYNTHESIS_KEY", "sk-secret", "sk-secret", "synthesis_key"),
        ("CHAT_KEY", "sesame", "sesame", "chat_key"),
    ],
)
def test_a_secret_in_a_setting_is_not_shown(call, environment, variable, value, secret, shown):
    environment[f"SCRUBJAY_{variable}"] = value

    for command in (["settings"], ["settings", "--json"], *([["sync", "list"]] if variable == "SYNC" else [])):
        done = call(*command)
        assert secret not in done.out + done.err
        assert shown in done.out or command[0] == "sync"


def test_a_taken_port_is_an_error_of_one_line(run):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = run("serve", "--port", str(taken.getsockname()[1]))

    assert done.code == 1
    assert "--port" in done.err
    assert "Traceback" not in done.err


def test_global_options_may_stand_before_mcp(run, home):
    ping = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n'

    done = run("--space", "work", "mcp", "--dialect", "memento", stdin=ping)

    assert done.code == 0
    assert done.json["id"] == 1


def test_mcp_help_comes_from_the_server_itself(run):
    done = run("--home", "elsewhere", "mcp", "--help")

    assert done.code == 0
    assert "--dialect" in done.out
