"""What a text denies."""

from __future__ import annotations

from scrubjay.text.statements import denies_another_thing


def test_a_denial_of_nothing_named_denies_no_other_thing():
    assert not denies_another_thing("User has not any", "User got a dog")
    assert not denies_another_thing("Not", "User got a dog")
