"""Strange text through real servers: kept to the code point and found again, or refused with a reason."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.servers.peer import Peer
from tests.servers.test_http import modern, real_server

pytestmark = pytest.mark.process

Call = Callable[..., dict]

# What is stored, and a word that finds it.
KEPT = {
    "emoji": ("🦜🏳️‍🌈👩‍👩‍👧 brought a flummox", "flummox"),
    "only emoji": ("🪺🪹", "🪺"),
    "right to left": ("\u202bמחר בשעה שבע\u202c quillback", "quillback"),
    "NUL": ("before \0 after trellis", "trellis"),
    "control characters": ("\x01\x1b[31mred\x1b[0m\x7f\x85 gantry\r\n\t", "gantry"),
    "line separators": ("one\u2028two\u2029three bollard", "bollard"),
    "byte order mark": ("\ufeffcorvette", "corvette"),
    "not a character": ("\ufffe\uffff\U0010ffff parapet", "parapet"),
    "many marks": ("z\u0300" + "\u0301" * 2_000 + " drumlin", "drumlin"),
    "SQL": ("Robert'); DROP TABLE memories; -- tinsmith", "tinsmith"),
    "search syntax": ('NEAR("a" b) AND * OR col:x ^ lapwing', "lapwing"),
    "HTML": ("<img src=x onerror=alert(1)>&amp;</script> pergola", "pergola"),
    "JSON in JSON": (json.dumps({"content": json.dumps({"a": '\\"\\u0000'})}) + " mizzen", "mizzen"),
    "format strings": ("%s %n {0} ${HOME} $(id) `id` cornice", "cornice"),
    "white space around": ("  \n farthing \n\n", "farthing"),
    "50,000 characters": ("x " * 24_990 + "y ossuary" + "z " * 5 + "!", "ossuaryz"),
    "50,000 characters of four bytes": ("𝄞" * 49_990 + " balustrad", "balustrad"),
    "50,000 characters of escapes": ("\0" * 49_991 + " marzipan", "marzipan"),
}
REFUSED = {
    "50,001 characters": "x" * 50_001,
    "50,001 characters of four bytes": "𝄞" * 50_001,
    "a megabyte": "word " * 200_000,
    "half a pair, the first": "text \ud83e text",
    "half a pair, the second": "\udd9c",
    "two halves in the wrong order": "\udd9c\ud83e",
    "nothing": "",
    "only white space": " \n\t\u3000",
}
SCRIPTS = {
    "Latin with accents": ("L'œuvre du café naïf à Besançon", "besancon"),
    "Greek": ("Η βιβλιοθήκη ανοίγει στις οκτώ", "βιβλιοθήκη"),
    "Cyrillic": ("Ёжик живёт под крыльцом", "крыльцом"),
    "Arabic": ("القطة تنام على السجادة", "السجادة"),
    "Hebrew": ("החתול ישן על השטיח", "השטיח"),
    "Devanagari": ("बिल्ली चटाई पर सोती है", "चटाई"),
    "Thai": ("แมวนอนอยู่บนเสื่อ", "เสื่อ"),
    "Chinese": ("猫睡在垫子上面", "垫子"),
    "Japanese": ("猫がマットの上で寝ている", "マット"),
    "Korean": ("고양이가 매트 위에서 잔다", "고양이"),
    "Latin glued to Chinese": ("部署在Kubernetes集群", "kubernetes"),
}


@pytest.fixture(scope="module", params=["stdio", "http"])
def call(request, tmp_path_factory) -> Iterator[Call]:
    """A tool of a real server, called with arguments that are written with escapes only."""
    home = tmp_path_factory.mktemp(request.param)
    if request.param == "stdio":
        with Peer(home) as peer:
            peer.greet()
            yield peer.call
        return
    with real_server(home) as (address, _), httpx.Client(timeout=60) as http:

        def posted(tool: str, **arguments: object) -> dict:
            request = modern(tool, **arguments)
            reply = http.post(f"{address}/mcp/memento", content=json.dumps(request["json"]), headers=request["headers"])
            return reply.json()["result"]

        yield posted


def newest(call: Call) -> str | None:
    memories = call("list_recent_memories", limit=1)["structuredContent"]["memories"]
    return memories[0]["content"] if memories else None


@pytest.mark.parametrize("name", KEPT)
def test_text_comes_back_as_it_was_and_is_found_by_its_word(call, name):
    text, word = KEPT[name]

    stored = call("store_memory", content=text)
    found = call("search_memories", query=word)

    assert not stored["isError"]
    assert stored["structuredContent"]["created"]["content"] == text
    assert json.loads(stored["content"][0]["text"]) == stored["structuredContent"]
    assert newest(call) == text
    assert text in [memory["content"] for memory in found["structuredContent"]["memories"]]


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_kept_is_refused_with_a_reason_and_leaves_no_trace(call, name):
    before = newest(call)

    refused = call("store_memory", content=REFUSED[name])

    assert refused["isError"]
    error = refused["structuredContent"]["error"]
    assert error["code"] == "INVALID_PARAMETER"
    assert "content" in error["message"]
    assert len(error["message"]) < 500
    assert newest(call) == before


@pytest.mark.parametrize("query", [*(text for text, _ in KEPT.values() if len(text) < 50_000), *REFUSED.values()])
def test_a_strange_question_is_answered_or_refused_with_a_reason(call, query):
    result = call("search_memories", query=query)

    if result["isError"]:
        assert result["structuredContent"]["error"]["code"] == "INVALID_PARAMETER"
    else:
        assert "memories" in result["structuredContent"]
    assert not call("list_recent_memories", limit=1)["isError"]


@pytest.mark.parametrize("id", ["mem_\0", "mem_' OR 1=1 --", "../../etc/passwd", "𝄞" * 10, "x" * 100_000, "mem_\ud800"])
def test_a_strange_id_names_no_memory(call, id):
    result = call("supersede_memory", old_memory_id=id, new_memory_id=id)

    assert result["isError"]
    assert result["structuredContent"]["error"]["code"] in ("MEMORY_NOT_FOUND", "INVALID_PARAMETER")


def test_a_memory_in_any_script_is_found_by_a_word_of_it(call):
    for text, _ in SCRIPTS.values():
        assert not call("store_memory", content=text)["isError"]

    found = {
        name: [memory["content"] for memory in call("search_memories", query=word)["structuredContent"]["memories"]]
        for name, (_, word) in SCRIPTS.items()
    }

    assert {name: text for name, (text, _) in SCRIPTS.items() if text not in found[name]} == {}
