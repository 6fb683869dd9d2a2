"""The fast start says what the live server says, and loads almost nothing to say it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from itertools import permutations
from queue import SimpleQueue

import pytest

from scrubjay.dialects.table import DIALECTS, find
from scrubjay.errors import InvalidInput
from scrubjay.servers.mcp.server import run_streams
from scrubjay.servers.stdio.front import HANDSHAKE_VERSIONS, MODERN_VERSIONS, VERSION_KEY, Answers
from scrubjay.servers.stdio.manifest import main, sheet_of, stale, write_manifest
from scrubjay.servers.stdio.profile import MANIFESTS, compose, shipped_dialects, shipped_sheet
from tests.servers.peer import CLIENT, ENVELOPE, HANDSHAKE
from tests.servers.small_dialect import small_dialect

pytestmark = pytest.mark.process

HEAVY = {"mcp", "mcp_types", "pydantic", "numpy", "click", "anyio", "apsw", "onnxruntime", "jsonschema_rs", "orjson"}
SLOW = {"asyncio", "argparse", "dataclasses", "inspect", "logging", "ctypes", "socket", "ssl", "pathlib"}
MAX_MODULES = 55  # beyond those of a bare interpreter


def test_a_stale_manifest_is_noticed(tmp_path):
    for name in DIALECTS:
        text = write_manifest(find(name))
        (tmp_path / f"{name}.json").write_text(text.replace('"openWorldHint": false', '"openWorldHint": true'), "utf-8")

    assert stale(tmp_path) == list(DIALECTS)


def test_the_shipped_manifests_are_fresh():
    """If not: python -m scrubjay.servers.stdio.manifest"""
    assert main(["--check"]) == 0
    assert shipped_dialects() == sorted(DIALECTS)


def test_an_unknown_dialect_names_the_known_ones():
    with pytest.raises(InvalidInput) as error:
        find("klingon")

    assert "memento" in str(error.value.hint)


def test_a_manifest_says_which_tables_it_was_made_from():
    sheet, other = sheet_of(small_dialect()), sheet_of(small_dialect(extra=lambda engine, args: {}))

    assert sheet["hash"] != other["hash"]


def dialects(names):
    return [small_dialect() if name == "small" else find(name) for name in names]


def static(names, requests, extras=False):
    """What the fast start answers, out of files where there are any."""
    sheets = [shipped_sheet(name) if name in DIALECTS else sheet_of(small_dialect()) for name in names]
    answers = Answers(compose(json.loads(json.dumps(sheets)), extras=extras))
    return [answers.answer(request)[0] for request in requests]


def live(names, requests, extras=False):
    """What the real server answers to the same."""
    inbox, results = SimpleQueue(), {}

    def deliver(id, line):
        results[id] = json.loads(line)["result"]
        if len(results) == len(requests):
            inbox.put(None)

    for request in requests:
        inbox.put(request)
    run_streams(dialects(names), lambda: None, inbox, deliver, extras=extras, serving=threading.Event())
    return [results[request["id"]] for request in requests]


def requests_of(version):
    if version in MODERN_VERSIONS:
        asked = [("server/discover", ENVELOPE), ("tools/list", ENVELOPE)]
    else:
        asked = [("initialize", {**HANDSHAKE, "protocolVersion": version}), ("ping", None), ("tools/list", None)]
    return [
        {"jsonrpc": "2.0", "id": number, "method": method, **({"params": params} if params else {})}
        for number, (method, params) in enumerate(asked)
    ]


@pytest.mark.parametrize("version", [*HANDSHAKE_VERSIONS, *MODERN_VERSIONS, "1999-01-01"])
@pytest.mark.parametrize("names", [["memento"], ["small"], ["memento", "small"], ["small", "memento"]], ids="+".join)
@pytest.mark.parametrize("extras", [False, True], ids=["", "extras"])
def test_the_fast_answer_is_the_live_one(names, version, extras):
    requests = requests_of(version)

    answers = static(names, requests, extras)

    assert None not in answers
    assert answers == live(names, requests, extras)


def test_every_shipped_dialect_is_held_to_this():
    for name in DIALECTS:
        for version in ("2025-11-25", "2026-07-28"):
            assert static([name], requests_of(version)) == live([name], requests_of(version))


@pytest.mark.parametrize(
    "request_",
    [
        {"method": "tools/list"},  # before any handshake
        {"method": "tools/list", "params": {"_meta": {**ENVELOPE["_meta"], "progressToken": []}}},
        {"method": "tools/list", "params": {**ENVELOPE, "cursor": "2"}},
        {"method": "server/discover"},
        {"method": "server/discover", "params": {"_meta": {VERSION_KEY: "2026-07-28"}}},
        {"method": "server/discover", "params": {"_meta": {**ENVELOPE["_meta"], VERSION_KEY: "2031-01-01"}}},
        {"method": "initialize"},
        {"method": "initialize", "params": {"protocolVersion": 1, "capabilities": {}, "clientInfo": CLIENT}},
        {"method": "initialize", "params": {**HANDSHAKE, "capabilities": {"roots": True}}},
        {"method": "initialize", "params": {**HANDSHAKE, "clientInfo": {"name": "no version"}}},
        {"method": "tools/call", "params": {"name": "search_memories"}},
        {"method": "no/such/thing"},
    ],
    ids=str,
)
def test_whatever_is_unusual_is_left_to_the_library(request_):
    assert static(["memento"], [{"jsonrpc": "2.0", "id": 1, **request_}]) == [None]


def test_among_others_a_tool_carries_its_dialect_and_texts_name_it_so():
    """`search` is a tool only where it is written as code: we still search."""
    profile = compose([sheet_of(small_dialect()), sheet_of(find("memento"))])
    tool = profile["tools"][0]

    assert profile["name"] == "scrubjay"
    assert [tool["name"] for tool in profile["tools"]][:2] == ["small_echo_words", "memento_store_memory"]
    assert (
        "small_echo_words when told, or `small_search`. We search with `small_search`, or call small_search()."
        in (profile["instructions"])
    )
    assert "To search, use small_search; memento_search_memories does the same." in profile["instructions"]
    assert tool["description"] == "Says it again. Better than echo_words_twice."
    assert tool["inputSchema"]["properties"]["words"]["description"] == "For small_echo_words only."


def test_the_first_answers_load_almost_nothing():
    """Every editor window pays for what is imported here."""
    requests = json.dumps(requests_of("2025-11-25"))
    bare = set(modules("pass"))

    loaded = set(modules(STARTING.format(requests=requests)))

    roots = {name.partition(".")[0] for name in loaded - bare}
    assert not roots & (HEAVY | SLOW)
    heavy = ("scrubjay.dialects", "scrubjay.values.memory", "scrubjay.engine")
    assert not [name for name in loaded if name.startswith(heavy)]
    assert len(loaded - bare) <= MAX_MODULES, sorted(loaded - bare)


STARTING = """
import json
import re
import scrubjay.__main__
from scrubjay.servers.stdio import front
answers = front.Answers(front.compose([front.shipped_sheet("memento")]))
for request in json.loads('''{requests}'''):
    assert front.encode(answers.answer(front.decode(json.dumps(request).encode()))[0])
"""


def modules(code):
    """What an interpreter has loaded after this code."""
    shown = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(' '.join(sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
    )
    return shown.stdout.split()


def test_the_manifests_lie_in_the_package():
    assert MANIFESTS.endswith("dialects/manifests")


def test_instructions_for_several_dialects_fit_into_what_clients_read():
    """Whichever are served, in whatever order: every tool that is named exists, and rivals are told apart."""
    sheets = {name: shipped_sheet(name) for name in DIALECTS}
    for count in range(1, len(sheets) + 1):
        for names in permutations(sheets, count):
            profile = compose([sheets[name] for name in names])
            tools = {tool["name"] for tool in profile["tools"]}
            prefixes = "|".join(names)
            named = set(re.findall(rf"\b(?:{prefixes})_\w+", profile["instructions"])) if count > 1 else set()

            assert len(profile["instructions"]) <= 2_048, names
            assert named <= tools, names


def test_the_dialect_that_was_named_first_is_the_one_to_use():
    told = compose([shipped_sheet("system"), shipped_sheet("memento")])["instructions"]

    assert "To store a fact, use system_store_memory; memento_store_memory does the same." in told


def test_a_tool_for_one_conversation_does_not_do_the_same_as_one_for_all():
    told = compose([shipped_sheet("chimera"), shipped_sheet("system")])["instructions"]

    assert "To search, use chimera_search; system_recall_memories does the same." in told
    assert "To list memories" not in told


MOST_BYTES = {"memento": 5_000, "system": 20_000, "all five": 48_000, "scrubjay": 8_000}


def test_definitions_cost_a_model_little(capsys):
    """What `tools/list` says is read by a model in every conversation."""
    sizes = {name: definitions(name) for name in DIALECTS} | {"all five": definitions(*DIALECTS)}
    with capsys.disabled():
        print("\nbytes of tool definitions: " + ", ".join(f"{name} {size:,}" for name, size in sizes.items()))

    for name, most in MOST_BYTES.items():
        assert sizes[name] <= most, name


def definitions(*dialects: str) -> int:
    tools = compose([shipped_sheet(name) for name in dialects])["tools"]
    return len(json.dumps(tools, ensure_ascii=False, separators=(",", ":")).encode())
