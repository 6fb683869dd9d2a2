"""Our quick frozen dataclass does what the standard one does."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, field, fields, is_dataclass
from dataclasses import dataclass as standard
from dataclasses import replace as replaced_by_the_standard

import pytest

from scrubjay.values.frozen import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Ours:
    a: int
    b: str = "b"
    c: dict[str, int] = field(default_factory=dict)
    d: int = field(default=4, metadata={"help": "four"})

    @property
    def double(self) -> int:
        return 2 * self.a


@standard(frozen=True, slots=True, kw_only=True)
class Theirs:
    a: int
    b: str = "b"
    c: dict[str, int] = field(default_factory=dict)
    d: int = field(default=4, metadata={"help": "four"})


@dataclass(frozen=True, slots=True)
class Pair:
    one: int
    two: int = 2


@pytest.mark.parametrize(
    "change", [lambda v: setattr(v, "a", 2), lambda v: delattr(v, "a"), lambda v: setattr(v, "z", 1)]
)
def test_a_value_cannot_be_changed(change):
    with pytest.raises(FrozenInstanceError):
        change(Ours(a=1))


@pytest.mark.parametrize("arguments", [{}, {"a": 1, "z": 2}])
def test_missing_and_unknown_fields_are_refused(arguments):
    with pytest.raises(TypeError):
        Ours(**arguments)


@pytest.mark.parametrize("body", [{"__slots__": ()}, {}])
def test_a_subclass_stays_what_it_is(body):
    sub = type("Sub", (Ours,), body)

    made = sub(a=1, c={"x": 1})

    assert (type(made), made.a, made.b, made.c) == (sub, 1, "b", {"x": 1})
    with pytest.raises(FrozenInstanceError):
        made.a = 2


def test_keyword_only_means_keyword_only():
    with pytest.raises(TypeError):
        Ours(1)
    assert Pair(1).two == 2


def test_it_shows_itself_like_the_standard_one():
    assert repr(Ours(a=1)) == repr(Theirs(a=1)).replace("Theirs", "Ours")


def test_fields_and_their_metadata_are_the_same():
    assert [(one.name, one.default, dict(one.metadata)) for one in fields(Ours)] == [
        (one.name, one.default, dict(one.metadata)) for one in fields(Theirs)
    ]
    assert is_dataclass(Ours)


def test_equal_values_are_equal_and_others_are_not():
    assert Ours(a=1) == Ours(a=1)
    assert Ours(a=1) != Ours(a=2)
    assert Ours(a=1) != Theirs(a=1)
    assert hash(Pair(1)) == hash(Pair(1))


def test_a_default_made_by_a_factory_is_not_shared():
    assert Ours(a=1).c is not Ours(a=1).c
    assert Ours(a=1, c={"x": 1}).c == {"x": 1}


def test_a_default_that_could_be_changed_is_refused():
    with pytest.raises(ValueError, match="mutable default"):

        @dataclass(frozen=True, slots=True)
        class Shared:
            all: list[int] = []  # noqa: RUF012 - that is what is tested


def test_replace_and_copies_work():
    value = Ours(a=1)

    assert replace(value, a=5) == Ours(a=5)
    assert copy.copy(value) == copy.deepcopy(value) == value
    assert pickle.loads(pickle.dumps(value)) == value


def test_methods_and_slots_are_kept():
    assert Ours(a=2).double == 4
    assert not hasattr(Ours(a=2), "__dict__")


def test_a_value_is_replaced_as_by_the_standard_function():
    value = Ours(a=1, c={"one": 1})
    changed = replace(value, b="other", d=5)
    assert changed == replaced_by_the_standard(value, b="other", d=5) == Ours(a=1, b="other", c={"one": 1}, d=5)
    assert value == Ours(a=1, c={"one": 1})
    with pytest.raises(TypeError, match="Ours has no field 'z'"):
        replace(value, z=1)
