"""Whoever types a command waits for its whole answer, whatever the machine has to do."""

from __future__ import annotations

import json

import pytest

OLD, NEW = "The demo runs on port 8080", "The demo runs on port 9090 now"


@pytest.fixture
def impatient(environment):
    """Limits that no server could keep."""
    environment |= {"SCRUBJAY_EMBED_WAIT": "0", "SCRUBJAY_JUDGE_WAIT": "0.000001"}


@pytest.mark.usefixtures("impatient")
def test_a_command_waits_for_the_model_and_the_judge(call, stored):
    stored(OLD)

    done = call("store", NEW)

    assert "It may outdate: The demo runs on port 8080" in done.err
    assert "yet" not in done.err
    assert "words only" not in call("search", "demo port").err


def test_what_could_not_be_compared_is_said_and_told_of_by_the_next_command(call, stored, environment):
    stored(OLD)
    there = environment["SCRUBJAY_EMBEDDER"]

    environment["SCRUBJAY_EMBEDDER"] = "arctic-embed-s"  # which is not in this home's folder of models
    done = call("store", NEW)
    assert "Not compared yet: 1 memory; `scrubjay conflicts` says later what it may outdate." in done.err

    environment["SCRUBJAY_EMBEDDER"] = there
    assert call("doctor", "--rebuild").code == 0
    told = call("brief").err
    assert "Compared since: The demo runs on port 9090 now" in told
    assert "It may outdate: The demo runs on port 8080" in told
    assert "Compared since" not in call("brief").err


def test_a_program_gets_it_as_json_beside_the_result(call, stored, environment):
    stored(OLD)
    there = environment["SCRUBJAY_EMBEDDER"]
    environment["SCRUBJAY_EMBEDDER"] = "arctic-embed-s"  # which is not in this home's folder of models
    assert call("store", NEW, "--json").json["compared"] is False

    environment["SCRUBJAY_EMBEDDER"] = there
    call("doctor", "--rebuild")

    done = call("search", "demo port", "--json")
    beside = {name: said for line in done.err.splitlines() for name, said in json.loads(line).items()}
    [pair] = beside["compared_since"]
    assert (pair["new"]["content"], pair["old"]["content"]) == (NEW, OLD)
    assert beside["doubts"] == {pair["old"]["id"]: pair["new"]["id"]}
    assert done.json
