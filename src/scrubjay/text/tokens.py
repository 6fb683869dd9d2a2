"""The words of a text as they are written, their stems, and the first clause."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


WORD = re.compile(r"[^\W\d_]+")
OPENING_LENGTH = 400  # characters of a question, or of how a memory begins: of these a search asks for the words often
REMEMBERED = 500  # texts that are kept, 2 MB at most
_LETTERS = bytes(ord(sign.lower()) if sign.isascii() and sign.isalpha() else ord(" ") for sign in map(chr, range(256)))

TOKEN = re.compile(r"`[^`]+`|[#.]?[^\W_]+(?:[-_'.:/][^\W_]+)*", re.UNICODE)
CLAUSE_END = re.compile(
    r"[,.;:!?](?=\s|$)|\s[-–—]\s|\b(?:but|because|since|as|so|after|until|though|although|if|when|while)\b"
)
FUNCTION_WORDS = word_set(
    "a an the this that these those our my your their his her its of in on at by for with from to into about over and "
    "or is are was were be been being do does did can could will would shall should may might must it he she they we i "
    "you there now own am i'm you're we're they're he's she's it's there's"
)
HAVING = word_set("have has had having")
FIRST_PERSON = word_set(
    "i my me mine we our us ich mich mir mein meine meinen meinem meiner wir uns unser unsere je mon ma mes moi "
    "nous notre nos yo mi mis nosotros nuestro nuestra"
)
TALKING = word_set("i me you your")  # of people who talk with one another
SAME = 6  # letters: "allergic" and "allergy" are one word


def stem(word: str) -> str:
    """Enough for "doctors" and "doctor's" to be the doctor."""
    word = word.removesuffix("'s")
    return word.removesuffix("s") if len(word) > 3 and not word.endswith("ss") else word


def root(word: str) -> str:
    """A rougher stem, for telling whether two statements speak of the same: "tried", "tries" and "trying"."""
    word = stem(word)
    for ending in ("ing", "ied", "ed", "ie", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word


def first_clause(text: str) -> list[str]:
    """The words of the first clause that has several, in lower case."""
    for part in CLAUSE_END.split(text.replace("’", "'")):
        if len(words := [token.lower() for token in TOKEN.findall(part)]) > 1:
            return words
    return []


def stems(words: Iterable[str]) -> tuple[str, ...]:
    """Short stems of the words that say something, in order."""
    return tuple("have" if word in HAVING else root(word)[:SAME] for word in words if word not in FUNCTION_WORDS)


def words_of(text: str) -> Sequence[str]:
    return _words_of_short(text) if len(text) <= OPENING_LENGTH else split_words(text)


@lru_cache(REMEMBERED)
def _words_of_short(text: str) -> tuple[str, ...]:
    return tuple(split_words(text))


def split_words(text: str) -> list[str]:
    """The same of a text that is asked for once."""
    if text.isascii():  # in a sixth of the time, and a search asks it of a hundred new texts
        return text.encode().translate(_LETTERS).decode().split()
    return WORD.findall(text.lower())
