"""What is trained on is right: the worlds and their questions were written by hand."""

from __future__ import annotations

from importlib import import_module

import pytest
from training import folds, long, questions, worlds

from scrubjay.engine.conflicts.weights import INNER, OUTER

WORLDS = worlds.load()


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_a_world_and_its_questions_have_no_fault(world):
    assert worlds.faults(world) == []
    assert list(questions.faults(world)) == []


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_a_world_has_questions_that_nothing_answers(world):
    asked = questions.load(world)

    assert sum(not one.gold for one in asked) >= 10
    assert sum(bool(one.gold) for one in asked) >= 50


def test_what_was_said_before_or_again_answers_too():
    [world] = [world for world in WORLDS if world.name == "allotment"]

    assert questions.answers_too(world)["c6"] == {"c6a"}  # the same, said again
    assert questions.answers_too(world)["c2"] == {"c2a"}  # outdated, not c2b, which is about another lock


@pytest.mark.parametrize("module", ["hints", "labels", "long", "pairs"])  # the others need torch
def test_what_fits_weights_keeps_up_with_the_engine(module):
    assert import_module(f"training.{module}")


def test_a_long_text_is_asked_for_in_every_way():
    texts = [one for path in sorted(long.FOLDER.glob("*.txt")) for one in long.read(path)]

    assert len(texts) >= 12
    assert all(len(one.text) > 1_000 and {kind for kind, _ in one.questions} == {*long.KINDS} for one in texts)


def test_the_judges_that_were_fitted_without_a_world_weigh_the_same_features_as_the_shipped_one():
    for judge in folds.kept()["judge"].values():
        assert list(judge["inner"]) == sorted(INNER)
        assert {len(row.split(",")) for row in judge["inner"].values()} == {len(OUTER)}
