"""Which words a text holds: what goes into a full-text index, and what a query asks of it.

Every backend indexes `indexed(text)` with a plain tokenizer and asks for `query_words(text)`, so all of them agree on
what a word is. Stemming, case and accents are the backend's work. Three kinds of text need help:

    東京都に住む      scripts without spaces    東 京 都 に 住 む 東京 京都 都に に住 住む    (asked: the pairs)
    parseHttpURL     identifiers               parse http url parsehttpurl                 (asked: the same)
    snake_case.v2    compounds                 snake case v 2 snakecasev2                  (asked: the same)

Both functions are linear in the text, whatever it holds.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import pairwise, repeat
from math import log

from scrubjay.text.letters import normalise
from scrubjay.text.tokens import root
from scrubjay.values.memory import Memory

CALENDAR = frozenset(
    ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "january", "february", "march",
     "april", "june", "july", "august", "september", "october", "november", "december")
)  # fmt: skip
SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+|\s[-–—]\s|;\s")
PASSAGE = 2_500  # characters
MADE_PATHS = ("inbox/", "decisions/")  # their words are those of the text, and the id
MAX_PASSAGES = 256
MAX_QUERY_WORDS = 64
MAX_WORD = 100  # characters; what is longer is not a word, and is found by its beginning
ROWS_TO_COME = 50  # how many more rows than it has an index is taken to have when the rarity of a word is judged
RARE = 5.0  # inverse frequency from which on a word is as rare as can be
MAX_GROWTH = 3  # of a text whose signs are spelt out
WORDS_REMEMBERED = 20_000  # words of which each process remembers what was found out about them
MAX_WHOLE = 64  # an identifier longer than this is found by its parts only
SMALL_ROWS = 1_000  # an index in which most words are common by chance
DECIMALS = 9  # of a score by words: what FTS5 computes and what is computed elsewhere may differ in the last bit
COMMON_SHARE = 0.1  # a word in more rows than this share says little and costs much …
COMMON_FROM_ROWS = 5_000  # … in an index of this size

# Words that say nothing about what is looked for, and cost most: they are in nearly every row.
STOP_WORDS = frozenset(
    """
    a about after again all also am an and any are as at be because been before being between both but by can could
    did do does doing don down during each few for from further had has have having he her here hers him his how i if
    in into is it its itself just me more most my myself no nor not now of off on once only or other our ours out over
    own same she should so some such than that the their theirs them themselves then there these they this those
    through to too under until up us very was we were what when where which while who whom why will with would you
    your yours s t d ll m re ve
    """.split()  # noqa: SIM905 -- read as words
)

# Scripts that put no spaces between words, and Hangul, whose words carry their grammar as endings.
_UNSPACED = (
    "\u0e00-\u0e7f\u0e80-\u0eff\u0f00-\u0fbc\u1000-\u109f\u1780-\u17d3\ua9e0-\ua9fe\uaa60-\uaa7f"  # Thai … Myanmar
    "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"  # Hangul
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3041-\u309f\u30a1-\u30fa\u30fc-\u312f\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"  # kana and Han
)
# Vowel signs of Indic scripts are marks, not letters, but belong to the word (their full stops \u0964-5 do not).
_SIGNS = "\u0300-\u036f\u0900-\u0963\u0966-\u0dff"
_EMOJI = "[\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001f3fa\U0001f400-\U0001faff]"
# Signs that are written or left out at will: soft hyphens, joiners, Arabic and Hebrew vowels, tatweel.
_OPTIONAL = (
    "[\u00ad\u200b-\u200f\u2060\ufe00-\ufe0f\ufeff\u0591-\u05bd\u05bf\u05c1\u05c2"
    "\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc]+"
)

# Words joined to a compound, without what an apostrophe adds. Possessive, so that nothing is tried a second way.
_ENDING = r"(?:['’](?:[stdmSTDM]|ll|re|ve|LL|RE|VE)(?!\w))?"
_LETTERS = rf"[^\W_]++(?:[{_SIGNS}]++[^\W_]*+)*+"
_WORD = rf"({_LETTERS}(?:[_.\-]++{_LETTERS})*+|{_EMOJI}){_ENDING}"
_ASCII_WORD = re.compile(rf"([^\W_]++(?:[_.\-]++[^\W_]++)*+){_ENDING}", re.ASCII)

_JOINTS = re.compile(r"[_.\-]+")
_CAMEL = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_DIGITS = re.compile(r"\d+|\D+")

_pattern = cache(re.compile)  # large classes take milliseconds to compile, and most texts need none of them


def passages(text: str) -> list[str]:
    """A long text cut into stretches that are ranked each for itself; a short one is its only passage.

    BM25 takes a word for less the longer its text is: in one piece of 50,000 characters every word would count for
    nothing. Cuts are made at white space where there is any.
    """
    found: list[str] = []
    start = 0
    while len(text) - start > PASSAGE + PASSAGE // 4 and len(found) < MAX_PASSAGES - 1:
        space = max(text.rfind(" ", start + PASSAGE // 2, start + PASSAGE), text.rfind("\n", start, start + PASSAGE))
        end = space if space > start + PASSAGE // 2 else start + PASSAGE
        found.append(text[start:end])
        start = end
    return [*found, text[start:]]


def found_by(memory: Memory) -> list[str]:
    """The passages that a memory's words come from: of its text, its topic or title unless the text begins with that,
    and of its path and tags what neither holds; each with the phrases of `also`."""
    return found_by_parts(memory.text, memory.topic or memory.title, memory.path, memory.tags, memory.phrases)


def found_by_parts(text: str, heading: str, path: str, tags: tuple[str, ...], phrases: str) -> list[str]:
    """The same of a memory that is not made."""
    text = text if text.startswith(heading) else f"{heading}\n{text}"
    path = "" if path.startswith(MADE_PATHS) else path
    if path or tags:
        known = text.casefold()
        names = [name for name in (*path.split("/"), *tags) if name and name.casefold() not in known]
        text = "\n".join((text, " ".join(names))) if names else text
    return [f"{passage}\n{phrases}" for passage in passages(text)] if phrases else passages(text)


def words_to_index(text: str) -> str:
    """The words of a text, parts of words included, separated by spaces."""
    return " ".join(map(_spelt.__getitem__, _ASCII_WORD.findall(text)) if text.isascii() else _index_words(text))


def query_words(text: str) -> list[str]:
    """The words to look for, each once, in the order of the text and spelt as there.

    Stop words are left out unless there is nothing else.
    """
    return list(_query_words_of(text))


WHOLE_WORD = re.compile(r"\w+")


def place_of(words: Iterable[str], text: str) -> int:
    """Where the sentence of a text begins that has most of these words, rare ones before frequent ones; at the
    beginning, if none has any. Scripts without spaces have a word within a longer run."""
    wanted = {root(word.lower()) for word in words}
    runs = [re.escape(one) for one in wanted if not one.isascii()]
    found = [(said.start(), root(said[0].lower())) for said in WHOLE_WORD.finditer(text)]
    found += [(run.start(), run[0].lower()) for run in re.finditer("|".join(runs) or "(?!)", text, re.IGNORECASE)]
    starts = [0, *(end.end() for end in SENTENCE.finditer(text))]
    held: dict[int, set[str]] = {0: set()}
    for place, one in found:
        if one in wanted:
            held.setdefault(starts[bisect(starts, place) - 1], set()).add(one)
    often = Counter(one for has in held.values() for one in has)
    return max(sorted(held), key=lambda start: sum(1 / often[one] for one in held[start]))


@lru_cache(16)  # a search asks for those of its question several times
def _query_words_of(text: str) -> tuple[str, ...]:
    words: dict[str, str] = {}
    stopped: dict[str, str] = {}
    for word in _query_words(text):
        lower = word.lower()
        (stopped if lower in STOP_WORDS else words).setdefault(lower, word)
        if len(words) == MAX_QUERY_WORDS:
            break
    return tuple((words or stopped).values())[:MAX_QUERY_WORDS]


def weights_of(frequencies: Mapping[str, int], rows: int) -> dict[str, float]:
    """What each word of a question is worth; common ones are left out, if the index is large and knows rarer ones."""
    if rows >= COMMON_FROM_ROWS:
        rare = {word: frequency for word, frequency in frequencies.items() if frequency <= rows * COMMON_SHARE}
        frequencies = rare if any(rare.values()) else frequencies
    return {word: inverse_frequency(frequency, rows) for word, frequency in frequencies.items()}


def inverse_frequency(frequency: int, rows: int) -> float:
    """As FTS5 computes it, but in a small index as if there were more rows without the word."""
    if rows < SMALL_ROWS:
        return log(1 + (rows + ROWS_TO_COME - frequency + 0.5) / (frequency + 0.5))
    without = max(rows - frequency, 0)  # the rows may have been counted before the others
    return max(log((without + 0.5) / (frequency + 0.5)), 1e-6)


def rarity_of(rows_with_it: int, rows: int) -> float:
    """How much a word tells, from 0 (stands everywhere) to 1 (rare); a young store is taken to have rows to come."""
    more = rows + ROWS_TO_COME
    return min(1.0, log(1 + (more - rows_with_it + 0.5) / (rows_with_it + 0.5)) / RARE)


def term(word: str) -> str:
    """What the index has for a query word: tokenizers would cut `snake_case`, so it is kept as `snakecase`."""
    return _JOINTS.sub("", word)


def _index_words(text: str) -> Iterator[str]:
    for piece, unspaced in _pieces_of_any_script(text):
        if unspaced:
            yield from filter(str.isalnum, piece)  # a vowel sign alone is not a word
            yield from map("".join, pairwise(piece))
        elif spelt := _spelt[piece]:
            yield spelt


class _Spelt(dict[str, str]):
    """Words and compounds as the index is given them: with their parts. Texts share most of their words."""

    def __missing__(self, piece: str) -> str:
        if piece.isascii() and piece.isdigit():
            return piece[:MAX_WORD]
        parts = _parts(piece)
        whole = [term(piece)] if len(parts) > 1 and len(piece) <= MAX_WHOLE else []
        spelt = " ".join((*parts, *whole))
        if piece.isalpha() and len(piece) <= MAX_WHOLE:  # what may be a code or a number is not kept
            if len(self) >= WORDS_REMEMBERED:
                self.clear()
            self[piece] = spelt
        return spelt


_spelt = _Spelt()


def _query_words(text: str) -> Iterator[str]:
    seen: set[str] = set()  # a text that repeats itself asks for nothing more
    for piece, unspaced in _pieces(text):
        if piece in seen:
            continue
        seen.add(piece)
        if unspaced:
            yield from dict.fromkeys(map("".join, pairwise(piece))) if len(piece) > 1 else filter(str.isalnum, piece)
        else:
            parts = _parts(piece)
            if len(parts) > 1 and len(piece) <= MAX_WHOLE:
                yield piece
            yield from parts


def _pieces(text: str) -> Iterable[tuple[str, bool]]:
    """Words and compounds as they are in the text, and runs of an unspaced script, which are True."""
    return zip(_ASCII_WORD.findall(text), repeat(False)) if text.isascii() else _pieces_of_any_script(text)


def _pieces_of_any_script(text: str) -> Iterator[tuple[str, bool]]:
    for number, stretch in enumerate(_pattern(f"([{_UNSPACED}]+)").split(_normalise(text))):
        if number % 2:
            yield stretch, True
        else:
            yield from ((word[1], False) for word in _pattern(_WORD).finditer(stretch))


def _parts(word: str) -> list[str]:
    """A word cut at its joints; a plain one is its only part."""
    if word.isalpha() and (word.islower() or word[1:].islower() or word.isupper()):
        return [word[:MAX_WORD]]
    return [part for piece in _JOINTS.split(word) for part in _cut_piece(piece[:MAX_WORD])]


def _cut_piece(piece: str) -> list[str]:
    return (_CAMEL if piece.isascii() else _DIGITS).findall(piece)


def _normalise(text: str) -> str:
    """One spelling for what looks the same: full-width letters, half-width kana, letters composed of several signs."""
    text = _pattern(_OPTIONAL).sub("", text)
    if unicodedata.is_normalized("NFKC", text):
        return text
    plain = normalise("NFKC", text)
    # A few signs stand for whole sentences. A text made of nothing else would keep every other writer waiting.
    return plain if len(plain) <= MAX_GROWTH * len(text) + 1_000 else text
