"""What a language model is asked for when it stores or asks: the very words that were measured."""

from __future__ import annotations

PHRASES_ASKED = (
    "Up to four short phrases (at most 80 characters each) under which somebody may look for this later: "
    "the general term, the question it answers, synonyms, the everyday word."
)
WORDINGS_ASKED = (
    "Up to three other wordings of the question: other words somebody may have used when storing the answer, "
    "the concrete thing asked for, key words."
)
LANGUAGES_ASKED = "If the text is not in English, some phrases in its language and some in English."
