"""A dialect for tests: what servers do with one is a matter of its table, not of Memento."""

from __future__ import annotations

from scrubjay.dialects.base import Dialect, object_schema

ANY = {"type": "object"}


def small_dialect(**operations) -> Dialect:
    """Two tools that do little, and the ones given: functions of an engine and arguments."""
    dialect = Dialect(
        name="small",
        title="Small: a dialect for tests",
        server_name="small-server",
        instructions="Use echo_words when told, or `search`. We search with `search`, or call search().\n",
        brief="echo_words when told, or `search`. We search with `search`, or call search().",
        acts={"search": "search"},
        error_body=lambda error, operation: {"oops": error.message, "in": operation},
    )

    @dialect.reads(
        "Echo",
        gives=ANY,
        takes=object_schema(
            {"words": {"type": "array", "items": {"type": "string"}, "description": "For echo_words only."}}
        ),
    )
    def echo_words(engine, args):
        """Says it again. Better than echo_words_twice."""
        return {"words": args["words"]}

    @dialect.writes("Search", destructive=True, listed=False, takes=ANY, gives=ANY)
    def search(engine, args):
        """Nothing to search."""
        return {"space": list(engine.spaces), "provenance": repr(engine.provenance)}

    for name, run in operations.items():
        dialect.reads(name, name=name, takes=ANY, gives=ANY)(run)
    return dialect
