"""Every error, in every dialect."""

from __future__ import annotations

import re

import pytest

from scrubjay import errors
from scrubjay.dialects.table import DIALECTS, ONLY_REST, find
from scrubjay.dialects.validation import Checker


def tree(top: type[errors.Error]) -> list[type[errors.Error]]:
    return [top, *(each for below in top.__subclasses__() for each in tree(below))]


EVERY = tree(errors.Error)


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.__name__)
def test_every_error_has_a_code_of_its_own_and_a_sentence(kind):
    assert [other for other in EVERY if other.code == kind.code] == [kind]
    assert kind().message.endswith(".")


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.__name__)
def test_every_error_is_drawn_in_the_tree_with_its_code(kind):
    assert kind is errors.Error or re.search(rf"── {kind.__name__} +{kind.code}\b", errors.__doc__ or "")


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("dialect", [find(name) for name in [*DIALECTS, *ONLY_REST]], ids=lambda dialect: dialect.name)
def test_every_error_is_rendered_by_every_operation_inside_its_schema(dialect, kind):
    for operation in dialect.operations.values():
        reply = dialect.failure(kind("Something.", hint="Do this."), operation.name)

        assert reply.failed
        assert reply.text
        Checker(operation.gives).check(reply.body)


def test_half_a_character_in_a_callers_words_does_not_keep_the_answer_from_being_sent():
    error = errors.NotFound("No endpoint 'x\ud800'.", endpoint="x\ud800")

    assert error.message == "No endpoint 'x?'."
    assert error.details == {"endpoint": "x?"}


def test_who_waited_too_long_for_the_writer_is_told_to_try_again():
    """Over MCP an error is its text: no status and no header says so."""
    reply = find("memento").failure(errors.StorageBusy(), "store_memory")

    assert "try again" in reply.body["error"]["message"]
