"""Messages that a person chooses in a client, such as `/remember`. Stored text in them is labelled as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from scrubjay.dialects.agent import replies
from scrubjay.dialects.base import UserPrompt

if TYPE_CHECKING:
    from scrubjay.engine.engine import Engine

TAG, TOPIC = "A tag", "What it is about"


def remember(_engine: Engine, args: Mapping[str, str]) -> str:
    marks = [f"{name} {args[name]!r}" for name in ("tag", "topic") if args.get(name)]
    using = f", with {' and '.join(marks)}" if marks else ""
    if args.get("fact"):
        ask = "Settle what it may outdate; ask me if that is not clear."
        return f"Use the remember tool to keep this{using}. {ask}\n\n{args['fact']}"
    return (
        f"Look back over this conversation and use the remember tool{using} for what later sessions will need: facts "
        "and preferences I told you, corrections, decisions with their reasons, a checkpoint if work is unfinished. "
        "Recall first, so that nothing is stored twice. Then list what you stored in a few lines."
    )


def recall(_engine: Engine, args: Mapping[str, str]) -> str:
    only = f" Only memories with the tag {args['tag']!r}." if args.get("tag") else ""
    return (
        f"Use the recall tool to answer this from memory.{only} Say how sure memory is and how old what it says is; if "
        f"the verdict is none, say that memory does not know.\n\n{args['question']}"
    )


def brief(engine: Engine, _args: Mapping[str, str]) -> str:
    text = replies.brief_reply(engine.brief(), engine.now()).text
    return f"This is what memory holds for this session. Keep it in mind; do not repeat it to me.\n\n{text}"


def review_conflicts(engine: Engine, _args: Mapping[str, str]) -> str:
    text = replies.open_pairs(engine.conflicts.list(limit=10), engine.now()).text
    return (
        "Go through these pairs of memories with me. For each, say in a line what differs and what you would do; once "
        f"I agree, call the settle tool with replaces, both_true or same.\n\n{text}"
    )


def tidy(engine: Engine, _args: Mapping[str, str]) -> str:
    text = replies.untidy(engine.tidying.waiting(), engine.now()).text
    return (
        "Put memory in order. Give each of these memories other words with the revise tool: the general term, the "
        "question it answers, synonyms, the everyday word; of a text that is not in English some in English, too. "
        "Settle open pairs where it is clear; ask me where it is not. Then call recent with tidy for the next ones, "
        f"until none is left or I stop you.\n\n{text}"
    )


PROMPTS = (
    UserPrompt(
        name="remember",
        title="Remember something",
        description="Keep a fact, or what matters of this conversation",
        arguments={"fact": "What to remember; empty: what matters of this conversation", "tag": TAG, "topic": TOPIC},
        say=remember,
    ),
    UserPrompt(
        name="recall",
        title="Ask memory",
        description="Answer a question from memory, with how sure it is",
        arguments={"question": "What you want to know", "tag": TAG},
        required=("question",),
        say=recall,
    ),
    UserPrompt(
        name="brief", title="Brief this session", description="Put what memory holds into this session", say=brief
    ),
    UserPrompt(
        name="tidy",
        title="Tidy up memory",
        description="Give memories other words to be found by, and settle open pairs",
        say=tidy,
    ),
    UserPrompt(
        name="review_conflicts",
        title="Review conflicts",
        description="Go through memories that newer ones may have outdated",
        say=review_conflicts,
    ),
)
