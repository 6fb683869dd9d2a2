"""Operations made of functions whose parameters are what is taken: a row has a route, a title and what is given.

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
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from scrubjay.dialects.base import Body, Dialect, Route, Schema, Stream, object_schema
from scrubjay.dialects.schemas import argument, fields_of, fill_value, shape, to_json
from scrubjay.engine.engine import Engine

Run = Callable[..., Any]


@dataclass(frozen=True)
class Rows:
    """How functions become operations of a dialect."""

    dialect: Dialect
    gives: Callable[[Any, Schema], Schema]  # the fields of a reply, and optional ones -> its schema
    reply: Callable[[Body], Body] = dict  # the fields of a reply -> all of it
    show: Callable[[Any], Any] = to_json  # a value -> as JSON
    root: str = ""

    def row(
        self, route: str, title: str, gives: Any, *, status: int = 200, optional: Schema | None = None, **more: Any
    ) -> Callable[[Run], Run]:
        """Register a function as the operation at this address. `more`: see `Operation`."""
        method, path = route.split(" ")

        def register(run: Run) -> Run:
            hints = get_type_hints(run, include_extras=True)
            taken = {name: (hints[name], one.default) for name, one in list(signature(run).parameters.items())[1:]}

            def call(engine: Engine, args: Body) -> Body | Stream:
                named = [(name, kind) for name, (kind, _) in taken.items() if name in args or whole(kind)]
                result = run(engine, **{name: value(kind, name, args) for name, kind in named})
                return result if isinstance(result, Stream) else self.reply(self._fields(gives, result))

            call.__name__, call.__doc__ = run.__name__, run.__doc__
            row = {"takes": takes(taken), "gives": self.gives(gives, optional or {}), **more}
            self.dialect.operation(title, route=Route(method, f"{self.root}{path}", status), **row)(call)
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
        if isinstance(result, dict) and (is_schema(gives) or gives.keys() <= result.keys()):  # or with optional fields
            return result
        values = zip(gives, (result,) if len(gives) == 1 else result, strict=True)
        return {name: self.show(list(one) if get_origin(gives[name]) is list else one) for name, one in values}


def is_schema(gives: Any) -> bool:
    """Whether the reply of an operation is described by a whole schema, instead of field by field."""
    return isinstance(gives, dict) and "properties" in gives


def whole(kind: Any) -> bool:
    """Whether a parameter takes more than the argument of its name: all that are fields of a value, or simply all."""
    return is_dataclass(kind) or kind == Body


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
    if default not in (Parameter.empty, None):
        schema.setdefault("default", to_json(default))
    return schema | description
