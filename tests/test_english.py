"""Comments, docstrings and messages are written in plain English: phrases that crept in from elsewhere stay out."""

from __future__ import annotations

import ast
import re
import tokenize
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[1] / "src" / "scrubjay"
# Strings there are words to look for and sentences to compare with, not sentences of ours.
VOCABULARIES = {
    f"{SOURCES}/{file}.py"
    for file in ("engine/conflicts/fact_kinds", "text/reading", "engine/store/categories",
                 "engine/store/enrichment", "engine/trust", "text/secrets",
                 "text/secret_shapes", "text/statements", "text/tokens", "text/wording", "text/words")
}  # fmt: skip

# What is found, and what to write instead.
PHRASES = {
    r"\banew\b": "again, or rebuilt",
    r"\bwhom\b": "who",
    r"\bshall\b": "must, should, or will",
    r"\b(?:some|no)body\b": "someone, no one, or what it is",
    r"(?<!there )\b(?:is|are) no (?!longer|more\b|better|faster|such)[a-z]+\b": "is not a …",
    r"\bsoftly\b": "soft-deleted",
    r"\bput(?:s|ting)? away\b": "archived",
    r"(?<!clock )\bmend(?:s|ed|ing)?\b(?!-clock)": "fix",  # names of a command and of a resolution
    r"\bstands? in\b": "is in",
    r"\bstands? twice\b": "is repeated",
    r"\bin the clear\b": "unencrypted",
    r"\b(?:is|are|was|were) not understood\b": "invalid …",
    r"\bgoes on where it\b": "resumes",
    r"\bbr(?:oke|eaks|oken) off\b": "interrupted",
    r"\bthe most is\b": "too long: … (maximum …)",
    r"\bwho asks\b": "the caller, or a question",
    r"(?:programs|stamps|versions|those) of before\b": "earlier …",
    r"\b(?:is|are) told at once\b": "is recognised",
    r"\bprogress` is told\b": "is called with",
    r"\bso many steps far\b": "within this many steps",
}
UNWANTED = re.compile("|".join(f"(?:{phrase})" for phrase in PHRASES), re.IGNORECASE)


def prose(file: Path):
    """Line number and text of every comment, and of every string that is a sentence; names on the wire are not."""
    with tokenize.open(file) as lines:
        for token in tokenize.generate_tokens(lines.readline):
            is_string = tokenize.tok_name[token.type] in ("STRING", "FSTRING_MIDDLE") and str(file) not in VOCABULARIES
            if token.type == tokenize.COMMENT or is_string:
                for offset, line in enumerate(token.string.splitlines()):
                    text = re.sub(r"\{[^{}]*\}", "", line)  # what an f-string computes
                    if " " in text.strip():
                        yield token.start[0] + offset, text


def find_phrases(file: Path) -> list[str]:
    return [
        f"{file.relative_to(SOURCES)}:{number}: {match[0]!r} in: {text.strip()}"
        for number, text in prose(file)
        if (match := UNWANTED.search(text))
    ]


@pytest.mark.parametrize("folder", sorted(one.name for one in SOURCES.iterdir()))
def test_no_phrase_reads_as_translated(folder):
    place = SOURCES / folder
    files = [place] if place.suffix == ".py" else sorted(place.rglob("*.py"))

    assert [line for file in files for line in find_phrases(file)] == []


@pytest.mark.parametrize(
    "text",
    ["# colour is no setting", '"Mend it or move it away."', "# made anew", '"x stands in the query."'],
)
def test_the_phrases_are_recognised(text):
    assert UNWANTED.search(text)


@pytest.mark.parametrize("text", ["# there is no such space", '"is no longer in use"', '"scrubjay sync mend-clock"'])
def test_plain_sentences_pass(text):
    assert not UNWANTED.search(text)


# --- names ------------------------------------------------------------------------------------------------------------

# A function is named by a verb and what it does it to: `told` and `kept` leave open who does what to which thing.
PARTICIPLE = re.compile(
    r"_?(?:[a-z]+ed|told|kept|seen|found|said|made|written|given|known|shown|held|sent|left|met|begun|gone|done|taken|"
    r"built|bound|heard|meant|lost|cut|brought|paid|chosen|thought|drawn)$"
)
VERBS = {"embed", "feed", "reembed"}  # and their private twins


def functions(file: Path) -> list[str]:
    body = ast.parse(file.read_text("utf-8")).body
    return [node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def test_no_function_is_called_by_a_bare_participle():
    bare = {
        f"{file.relative_to(SOURCES)}: {name}"
        for file in SOURCES.rglob("*.py")
        for name in functions(file)
        if PARTICIPLE.match(name) and name.lstrip("_") not in VERBS
    }

    assert bare == set()


@pytest.mark.parametrize(("name", "bare"), [("told", True), ("_checked", True), ("tell_changes", False)])
def test_a_bare_participle_is_recognised(name, bare):
    assert bool(PARTICIPLE.match(name)) is bare
