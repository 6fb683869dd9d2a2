"""Operations made of functions whose parameters are what is taken: a row has a title, what is given, perhaps a route.

    @reads("GET /memories/{id}/links", "List a memory's links", {"links": list[Link]})
    def list_links(engine: Engine, id: Id) -> Any:
        \"\"\"What a memory is linked to.\"\"\"
        return engine.links(id)

A parameter's type says what its argument may be, and `Annotated` adds to its schema, a text being its description; one
without a default is required. A parameter that is one of our values, such as a `Filter`, takes all arguments that are
its fields, and a `Body` takes the arguments as they came. A function returns the value of its field, or the values of
its fields in their order, or all of them by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from functools import partial
from inspect import Parameter, signature
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from scrubjay.dialects.base import PHRASES, WORDINGS, Body, Dialect, Route, Schema, Stream, object_schema
from scrubjay.dialects.schemas import argument, fields_of, fill_value, shape, to_json
from scrubjay.engine.engine import Engine

Run = TypeVar("Run", bound=Callable[..., Any])
Phrases = Annotated[tuple[str, ...], PHRASES]
Wordings = Annotated[tuple[str, ...], WORDINGS]


@dataclass(frozen=True)
class Tools:
    """How functions become operations of a dialect."""

    dialect: Dialect
    gives: Callable[[Any, Schema], Schema]  # the fields of a reply, and optional ones -> its schema
    reply: Callable[[Body], Body] = dict  # the fields of a reply -> all of it
    show: Callable[[Any], Any] = to_json  # a value -> as JSON

    def row(
        self, title: str, gives: Any, *, optional: Schema | None = None, accepts: Schema | None = None, **more: Any
    ) -> Callable[[Run], Run]:
        """Register a function as an operation. `accepts` are fields that take more than what is advertised, or all
        that is taken instead; `more`: see `Operation`."""

        def register(run: Run) -> Run:
            hints = get_type_hints(run, include_extras=True)
            taken = {name: (hints[name], one.default) for name, one in list(signature(run).parameters.items())[1:]}

            def call(engine: Engine, args: Body) -> Body | Stream:
                named = [(name, kind) for name, (kind, _) in taken.items() if name in args or whole(kind)]
                result = run(engine, **{name: value(kind, name, args) for name, kind in named})
                return result if isinstance(result, Stream) else self.reply(self._fields(gives, result))

            call.__name__, call.__doc__ = run.__name__, run.__doc__
            said = gives if is_whole_reply(gives) else self.gives(gives, optional or {})
            row = {"takes": takes(taken), "gives": said, **more}
            if accepts is not None:
                row["accepts"] = accepts if is_schema(accepts) else with_fields(row["takes"], **accepts)
            self.dialect.operation(title, **row)(call)
            return run

        return register

    @property
    def reads(self) -> Callable[..., Callable[[Run], Run]]:
        return partial(self.row, changes=False)

    @property
    def writes(self) -> Callable[..., Callable[[Run], Run]]:
        return partial(self.row, changes=True)

    def _fields(self, gives: Any, result: Any) -> Body:
        if is_dataclass(gives):
            return dict(self.show(result))
        whole_reply = is_schema(gives) or is_whole_reply(gives)
        if isinstance(result, dict) and (whole_reply or gives.keys() <= result.keys()):  # or with optional fields
            return result
        values = zip(gives, (result,) if len(gives) == 1 else result, strict=True)
        return {name: self.show(list(one) if get_origin(gives[name]) is list else one) for name, one in values}


@dataclass(frozen=True)
class Rows(Tools):
    """How functions become operations with addresses of their own."""

    root: str = ""

    def at(self, route: str, title: str, gives: Any, *, status: int = 200, **more: Any) -> Callable[[Run], Run]:
        """Register a function as the operation at this address. `more`: see `Operation`."""
        method, path = route.split(" ")
        return self.row(title, gives, route=Route(method, f"{self.root}{path}", status), **more)

    @property
    def reads(self) -> Callable[..., Callable[[Run], Run]]:
        return partial(self.at, changes=False)

    @property
    def writes(self) -> Callable[..., Callable[[Run], Run]]:
        return partial(self.at, changes=True)


def is_whole_reply(gives: Any) -> bool:
    """Whether a schema describes a success and a failure, so that nothing is to be added."""
    return isinstance(gives, dict) and "anyOf" in gives


def is_schema(gives: Any) -> bool:
    """Whether the reply of an operation is described by a whole schema, instead of field by field."""
    return isinstance(gives, dict) and "properties" in gives


def whole(kind: Any) -> bool:
    """Whether a parameter takes more than the argument of its name: all that are fields of a value, or simply all."""
    return is_dataclass(kind) or kind == Body


def with_fields(schema: Schema, **more: Schema) -> Schema:
    """An object's schema with these fields, new ones or instead of those of the same name."""
    return {**schema, "properties": {**schema["properties"], **more}}


def value(kind: Any, name: str, args: Body) -> Any:
    if whole(kind):
        return args if kind == Body else fill_value(kind, args)
    return argument(plain_kind(kind), name, args[name])


def plain_kind(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def takes(taken: dict[str, tuple[Any, Any]]) -> Schema:
    """What a function takes, from the types and defaults of its parameters."""
    properties: Schema = {}
    for name, (kind, default) in taken.items():
        one = isinstance(kind, type) and is_dataclass(kind)
        properties |= fields_of(kind) if one else {name: schema_of(kind, default)}
    needed = [name for name, (kind, default) in taken.items() if default is Parameter.empty and not whole(kind)]
    return object_schema(properties, required=needed)


def schema_of(kind: Any, default: Any) -> Schema:
    schema, description = dict(shape(plain_kind(kind))), {}
    for part in getattr(kind, "__metadata__", ()):
        if isinstance(part, str):
            description = {"description": part}
        else:
            schema |= part
    if default not in (Parameter.empty, None, (), ""):
        schema.setdefault("default", to_json(default))
    return schema | description
