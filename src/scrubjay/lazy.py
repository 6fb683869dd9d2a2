"""Modules that are imported at their first use, because a start should not wait for them.

`from scrubjay.lazy import numpy as np` reads like an import at the top of a file and costs nothing there: numpy takes
60 ms, and most windows of an editor store and search nothing.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

__all__ = [
    "argon2", "ctypes", "difflib", "futures", "json", "jwt", "logging", "numpy", "orjson", "resources", "tomllib",
    "yaml",
]  # fmt: skip

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

    class LazyModule(ModuleType):
        """Represents a module, which is imported when its first attribute is read."""

        def __getattr__(self, name: str) -> object:
            module = import_module(self.__name__)
            self.__dict__.update(module.__dict__)
            return getattr(module, name)

    argon2, ctypes, difflib, json, jwt, logging, numpy, orjson, tomllib, yaml = map(
        LazyModule, ["argon2", "ctypes", "difflib", "json", "jwt", "logging", "numpy", "orjson", "tomllib", "yaml"]
    )
    futures, resources = LazyModule("concurrent.futures"), LazyModule("importlib.resources")
