"""Values as JSON text and back."""

from __future__ import annotations

import json

from scrubjay.values.callers import Caller, Role
from scrubjay.values.codec import read, write_json


def test_what_is_a_set_is_a_list_in_order_and_comes_back_as_a_set():
    caller = Caller(user="ann", role=Role.MEMBER, spaces=frozenset({"work", "default"}), sealed=frozenset({"vault"}))

    assert json.loads(write_json(caller))["spaces"] == ["default", "work"]
    assert read(Caller, write_json(caller)) == caller
    assert read(Caller, write_json(caller)).sealed == {"vault"}
