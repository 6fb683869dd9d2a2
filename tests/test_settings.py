"""Settings: where a value comes from, and what is refused."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from scrubjay.errors import InvalidInput
from scrubjay.settings import BOUNDS, Settings, load


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"SCRUBJAY_PORT": "many"}, "SCRUBJAY_PORT must be a whole number"),
        ({"SCRUBJAY_PORT": "70000"}, "SCRUBJAY_PORT must be a whole number from 0 to 65,535"),
        ({"SCRUBJAY_QUOTA": "-1"}, "from 0 to"),
        ({"SCRUBJAY_EMBED_WAIT": "nan"}, "from 0 to 86,400"),
        ({"SCRUBJAY_CALL_SECONDS": "0"}, "from 0.001 to"),
        ({"SCRUBJAY_LEAST_SIMILARITY": "2"}, "from 0 to 1"),
        ({"SCRUBJAY_MODEL_PULL": "sometimes"}, "auto, never"),
        ({"SCRUBJAY_LOG_LEVEL": "loud"}, "debug, info"),
        ({"SCRUBJAY_EMBED_WAIT": "soon"}, "SCRUBJAY_EMBED_WAIT must be a number"),
        ({"SCRUBJAY_HOME": "~nobody-of-that-name/x"}, "home begins with the home of an unknown user"),
        ({"SCRUBJAY_MODELS": "~nobody-of-that-name/x"}, "SCRUBJAY_MODELS begins with the home of an unknown user"),
        ({"CORTEX_DATA_PATH": "~nobody-of-that-name/x"}, "CORTEX_DATA_PATH begins with the home of an unknown user"),
        ({"SCRUBJAY_STRICT_EMBEDDING": "maybe"}, "on or off"),
    ],
)
def test_a_bad_value_is_refused_and_its_origin_named(tmp_path, environ, said):
    with pytest.raises(InvalidInput, match=said):
        load({"SCRUBJAY_HOME": str(tmp_path), **environ})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("port = = 1", "cannot be read"),
        ("colour = 'red'", "unknown setting colour"),
        ("quota = 1.5", "quota in config.toml must be a whole number"),
    ],
)
def test_a_broken_configuration_file_is_refused_and_left_alone(tmp_path, text, said):
    file = tmp_path / "config.toml"
    file.write_text(text)

    with pytest.raises(InvalidInput, match=said):
        load({"SCRUBJAY_HOME": str(tmp_path)})

    assert file.read_text() == text


def test_a_flag_beats_the_environment_which_beats_the_file_which_beats_the_default(tmp_path):
    home = {"SCRUBJAY_HOME": str(tmp_path)}
    assert load(home).port == 8377

    (tmp_path / "config.toml").write_text("port = 1111")
    assert load(home).port == 1111
    assert load({**home, "SCRUBJAY_PORT": "2222"}).port == 2222
    assert load({**home, "SCRUBJAY_PORT": "2222"}, port=3333).port == 3333


def test_the_store_lies_in_the_home_unless_said_otherwise(tmp_path):
    assert load({"SCRUBJAY_HOME": str(tmp_path)}).store == f"sqlite:///{tmp_path / 'memories.db'}"


def test_models_are_shared_by_all_homes(tmp_path):
    one, two = (load({"SCRUBJAY_HOME": str(tmp_path / name)}) for name in ("one", "two"))

    assert one.models == two.models


def test_an_empty_variable_counts_as_unset(tmp_path):
    assert load({"SCRUBJAY_HOME": str(tmp_path), "SCRUBJAY_SPACE": ""}).space == ""


def test_a_tilde_is_the_users_folder():
    assert load({"SCRUBJAY_HOME": "~/memories"}).home == Path.home() / "memories"


def test_every_number_has_bounds_that_hold_its_default():
    numbers = {one.name: one.default for one in fields(Settings) if type(one.default) in (int, float)}

    assert numbers.keys() == BOUNDS.keys()
    assert all(BOUNDS[name][0] <= default <= BOUNDS[name][1] for name, default in numbers.items())


@pytest.mark.parametrize("entry", fields(Settings), ids=lambda entry: entry.name)
def test_every_setting_has_a_sentence_of_help(entry):
    assert entry.metadata["help"].endswith(".")


@pytest.mark.parametrize(("word", "value"), [("on", True), ("OFF", False), ("true", True), ("0", False)])
def test_a_switch_is_on_or_off(tmp_path, word, value):
    environ = {"SCRUBJAY_HOME": str(tmp_path), "SCRUBJAY_STRICT_EMBEDDING": word}

    assert load(environ).strict_embedding is value


# --- another program's environment -----------------------------------------------------------------------------------


def test_the_mama_database_is_the_store_where_mama_is_served(tmp_path):
    environ = {"SCRUBJAY_HOME": str(tmp_path), "HOME": str(tmp_path), "MAMA_DB_PATH": str(tmp_path / "m.db")}

    assert load(environ, dialects=("mama",)).store == f"sqlite:///{tmp_path / 'm.db'}"
    assert load(environ, dialects=("memento",)).store == f"sqlite:///{tmp_path / 'memories.db'}"
    assert load(environ).store == f"sqlite:///{tmp_path / 'memories.db'}"


def test_our_own_variable_wins_over_mamas(tmp_path):
    environ = {"SCRUBJAY_HOME": str(tmp_path), "SCRUBJAY_STORE": "sqlite:////x.db", "MAMA_DB_PATH": "/y.db"}

    assert load(environ, dialects=("mama",)).store == "sqlite:////x.db"


@pytest.mark.parametrize("path", ["~/m.db", "${HOME}/m.db", "$HOME/m.db"])
def test_a_home_in_the_mama_path_is_filled_in(tmp_path, monkeypatch, path):
    monkeypatch.setenv("HOME", str(tmp_path))

    store = load({"SCRUBJAY_HOME": str(tmp_path), "MAMA_DATABASE_PATH": path}, dialects=("mama",)).store
    assert store == f"sqlite:///{tmp_path / 'm.db'}"


def test_the_mama_port_is_ours_where_mama_is_served(tmp_path):
    environ = {"SCRUBJAY_HOME": str(tmp_path), "MAMA_SERVER_PORT": "3000", "MAMA_EMBEDDING_PORT": "3847"}

    assert load(environ, dialects=("mama",)).port == 3000
    assert load(environ).port == 8377
