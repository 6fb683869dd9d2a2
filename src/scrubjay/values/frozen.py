"""`@dataclass(frozen=True, slots=True, …)`, defined many times as fast.

The standard one compiles six methods for each class, which for our ninety values is a third of a command's total time,
and every editor window and every hook pays it. Here `__init__` is compiled when the first value is made, and the other
methods are shared. The result is still a dataclass: `fields`, `replace` and type checkers see no difference.
"""

from __future__ import annotations

from dataclasses import _FIELD, MISSING, Field, FrozenInstanceError, field  # type: ignore[attr-defined]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - what type checkers are to see
    from dataclasses import replace as replace  # noqa: PLC0414
    from typing import Any
else:

    def dataclass(*, frozen: bool, slots: bool, kw_only: bool = False) -> Callable[[type], type]:
        """Only for frozen values with slots, without bases; the standard one handles the others."""
        assert frozen
        assert slots
        return lambda cls: _frozen(cls, kw_only)

    def replace(value: Any, /, **changes: Any) -> Any:
        """The value with other fields, in a third of the time of the standard one: fields are copied, not handed in."""
        return value.__replace__(**changes)


def _frozen(cls: type, kw_only: bool) -> type:
    types = cls.__dict__.get("__annotations__", {})  # noqa: RUF063 - inspect is slow to import
    types = {name: kind for name, kind in types.items() if not str(kind).startswith("ClassVar")}
    fields = {name: _field(cls, name, types[name], kw_only) for name in types}
    body = {name: value for name, value in cls.__dict__.items() if name not in {*fields, "__dict__", "__weakref__"}}

    def first(self: Any, *args: Any, **given: Any) -> None:
        made.__init__ = _init(made, fields, kw_only)  # type: ignore[misc]
        made.__init__(self, *args, **given)  # type: ignore[misc]

    def first_replaced(self: Any, /, **changes: Any) -> Any:
        made.__replace__ = _copier(made, fields)  # type: ignore[attr-defined]
        return made.__replace__(self, **changes)  # type: ignore[attr-defined]

    body |= {
        "__slots__": tuple(fields),
        "__dataclass_fields__": fields,
        "__init__": first,
        "__replace__": first_replaced,
        "__setattr__": _refuse,
        "__delattr__": _refuse,
        "__eq__": _equal,
        "__hash__": _hash,
        "__repr__": _show,
        "__getstate__": _values,
        "__setstate__": _restore,
    }
    made = type(cls)(cls.__name__, cls.__bases__, body)
    return made


def _field(cls: type, name: str, kind: Any, kw_only: bool) -> Field[Any]:
    given = cls.__dict__.get(name, MISSING)
    made: Any = given if isinstance(given, Field) else field(default=given)
    if made.default.__class__.__hash__ is None:
        raise ValueError(f"mutable default for field {name}: use default_factory")
    made.name, made.type, made.kw_only, made._field_type = name, kind, kw_only, _FIELD
    return made  # type: ignore[no-any-return]


def _init(made: type, fields: dict[str, Field[Any]], kw_only: bool) -> Callable[..., None]:
    """An initialiser as written by hand: `def __init__(self, *, a, b=default)`, setting each. A subclass cannot become
    the open twin, so its fields are set through the slots themselves."""
    known: dict[str, Any] = {"_unset": MISSING, "_become": _become, "_open": _open_twin(made), "_made": made}
    known |= {f"put_{name}": made.__dict__[name].__set__ for name in fields}
    parameters, open_lines, slot_lines = ["self", *(["*"] if kw_only else [])], list[str](), list[str]()
    for name, one in fields.items():
        value = name
        if one.default is not MISSING:
            known[f"default_{name}"] = one.default
            parameters.append(f"{name}=default_{name}")
        elif one.default_factory is not MISSING:
            known[f"factory_{name}"] = one.default_factory
            parameters.append(f"{name}=_unset")
            value = f"factory_{name}() if {name} is _unset else {name}"
        else:
            parameters.append(name)
        open_lines.append(f" self.{name} = {value}")
        slot_lines.append(f" put_{name}(self, {value})")
    lines = ["if self.__class__ is _made:", " _become(self, _open)", *open_lines, " _become(self, _made)"]
    lines += ["else:", " pass", *slot_lines]
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines), known)  # noqa: S102 - names of our own fields
    initialiser: Callable[..., None] = known["__init__"]
    return initialiser


def _copier(made: type, fields: dict[str, Field[Any]]) -> Callable[..., Any]:
    """A copier as written by hand."""
    known: dict[str, Any] = {"made": made, "open": _open_twin(made), "new": object.__new__, "become": _become}
    known |= {"fields": frozenset(fields), "unknown": _unknown}
    lines = ["if not fields.issuperset(changes):", "    unknown(made, changes.keys() - fields)"]
    lines += ["copy = new(open)", *(f"copy.{name} = self.{name}" for name in fields)]
    lines += ["for name, value in changes.items():", "    setattr(copy, name, value)"]
    lines += ["become(copy, made)", "return copy"]
    exec("def replaced(self, /, **changes):\n " + "\n ".join(lines), known)  # noqa: S102
    copier: Callable[..., Any] = known["replaced"]
    return copier


_become = object.__dict__["__class__"].__set__


def _open_twin(made: type) -> type:
    """A class with the same slots whose values may be changed. A value is one of it while it is made: fields are then
    set as anywhere else, which takes a tenth of the time of going around `_refuse` for each."""
    return type(made.__name__, (), {"__slots__": made.__dict__["__slots__"]})


def _unknown(made: type, names: set[str]) -> None:
    raise TypeError(f"{made.__name__} has no field {min(names)!r}")


def _values(self: Any) -> tuple[Any, ...]:
    return tuple(getattr(self, name) for name in self.__slots__)


def _restore(self: Any, values: tuple[Any, ...]) -> None:
    for name, value in zip(self.__slots__, values, strict=True):
        object.__setattr__(self, name, value)


def _refuse(_self: Any, name: str, *_value: Any) -> None:
    raise FrozenInstanceError(f"cannot change field {name!r}")


def _equal(self: Any, other: object) -> bool:
    return _values(self) == _values(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: Any) -> int:
    return hash(_values(self))


def _show(self: Any) -> str:
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
    return f"{type(self).__name__}({shown})"
