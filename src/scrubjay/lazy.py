"""Modules that are imported at their first use, because a start should not wait for them.

`from scrubjay.lazy import numpy as np` reads like an import at the top of a file and costs nothing there: numpy takes
60 ms, and most windows of an editor store and search nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

__all__ = [
    "argon2", "ctypes", "difflib", "futures", "json", "jwt", "logging", "numpy", "orjson", "resources", "tomllib",
    "yaml",
]  # fmt: skip

Kind = TypeVar("Kind")


class LazyModule(ModuleType):
    """Represents a module, which is imported when its first attribute is read."""

    def __getattr__(self, name: str) -> Any:
        module = import_module(self.__name__)
        self.__dict__.update(module.__dict__)
        return getattr(module, name)


def modules(package: str, names: str) -> Iterator[Any]:
    """Modules below a package, by their names with spaces between."""
    return (LazyModule(f"{package}.{name}") for name in names.split())


class Part(Generic[Kind]):
    """Makes a value of a class for the object that it is read from; the class is imported when that happens first."""

    def __init__(self, place: str) -> None:
        self._module, _, self._name = f"scrubjay.{place}".rpartition(".")

    def __get__(self, whole: object, _kind: type) -> Kind:
        made: Kind = getattr(import_module(self._module), self._name)(whole)
        return made


if TYPE_CHECKING:
    import ctypes
    import difflib
    import json
    import logging
    import tomllib
    from concurrent import futures
    from importlib import resources

    import argon2
    import jwt
    import numpy
    import orjson
    import yaml
else:
    argon2, ctypes, difflib, json, jwt, logging, numpy, orjson, tomllib, yaml = map(
        LazyModule, ["argon2", "ctypes", "difflib", "json", "jwt", "logging", "numpy", "orjson", "tomllib", "yaml"]
    )
    futures, resources = LazyModule("concurrent.futures"), LazyModule("importlib.resources")
