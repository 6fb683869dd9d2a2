"""The tests themselves."""

from __future__ import annotations

import re
from pathlib import Path

from scrubjay import stores

FILES = [*Path(__file__).parent.rglob("*.py"), *Path(stores.__file__).parent.glob("contract*.py")]
OUTER = re.compile(r"^(?:async )?(def|class) |^ +(?:async )?def (test_\w+)", re.MULTILINE)


def test_no_test_is_hidden_inside_a_function():
    """A merge once left the promises of sync below a function's return, where nothing ran them."""
    hidden = []
    for file in FILES:
        outer = ""
        for kind, test in OUTER.findall(file.read_text("utf-8")):
            outer = kind or outer
            if test and outer == "def":
                hidden.append(f"{file.name}: {test}")

    assert hidden == []
