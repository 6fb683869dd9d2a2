"""Text to the numbers of a BERT vocabulary (uncased WordPiece).

    "Héllo, 世界!"  ->  hello  ,  世  界  !  ->  [7592, 1010, 1745, 100, 999]
                        words                    pieces, greedy: longest first, the rest as "##..."

Two steps: :func:`words` needs no vocabulary, :class:`WordPiece` looks the words up. All text is plain text here: a
"[SEP]" that someone typed is a bracket, three letters and a bracket, never the special token.

Everything is linear in the text: each character is classified once, a word past 100 characters is one unknown piece.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from scrubjay.embedders.base import Vocabulary

LONGEST_WORD = 100
REMEMBERED_CHARACTERS = 30_000  # so that no text fills the memory; beyond them the cache starts over

# Characters that BERT's authors treat as words. The gap before 2B920 is not ours: the reference
# implementation has it, and a model must see what it was trained on.
_IDEOGRAPHS = (
    range(0x3400, 0x4DC0),
    range(0x4E00, 0xA000),
    range(0xF900, 0xFB00),
    range(0x20000, 0x2A6E0),
    range(0x2A700, 0x2B820),
    range(0x2B920, 0x2CEB0),
    range(0x2F800, 0x2FA20),
)


def words(text: str) -> list[str]:
    """Lower-case words without accents; each punctuation mark and each ideograph is a separate word."""
    return text.translate(_FOLD).split()


def spans(text: str) -> Iterator[tuple[int, int]]:
    """Where the words are in `text`: ``words(text)`` is ``words(text[start:end])`` of each span, in order.

    A span may have no word at all (control characters, lone accents).
    """
    for match in _SPAN.finditer(text.translate(_KIND)):
        yield match.span()


class WordPiece(Vocabulary):
    def __init__(self, vocabulary: Path) -> None:
        """Read a vocabulary, one piece per line.

        :raises OSError: if it cannot be read
        :raises ValueError: if it is not one
        """
        super().__init__()
        lines = vocabulary.read_text("utf-8").rstrip("\n").split("\n")
        if not {"[UNK]", "[CLS]", "[SEP]"}.issubset(lines):
            raise ValueError("not a BERT vocabulary")
        self._numbers = {piece: number for number, piece in enumerate(lines)}
        self._longest_piece = max(map(len, lines))
        self.unknown = self._numbers["[UNK]"]
        self.start = self._numbers["[CLS]"]
        self.end = self._numbers["[SEP]"]

    def words(self, text: str) -> list[str]:
        return words(text)

    def cut(self, word: str) -> tuple[int, ...]:
        if len(word) > LONGEST_WORD:
            return (self.unknown,)
        found = []
        at = 0
        while at < len(word):
            mark = "##" if at else ""
            for end in range(min(len(word), at + self._longest_piece), at, -1):
                number = self._numbers.get(mark + word[at:end])
                if number is not None:
                    found.append(number)
                    at = end
                    break
            else:
                return (self.unknown,)
        return tuple(found)


# --- Characters -----------------------------------------------------------------------------------------------------


class _Fold(dict[int, str]):
    """What a character is mapped to, for `str.translate`; each is computed once.

    Decomposed one by one, not as a whole text: putting a long run of accents into Unicode's order takes quadratic time
    (50,000 of them: 2.7 s), and accents are dropped anyway. Letters are lower-cased one by one too: no final sigma.
    """

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if char in "\t\n\r":
            folded = " "
        elif char in "\0\ufffd" or unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co"):
            folded = ""
        elif char.isspace():
            folded = " "
        else:
            folded = "".join(map(_small_or_alone, unicodedata.normalize("NFD", char)))
            if any(code in block for block in _IDEOGRAPHS):
                folded = f" {folded} "
        if len(self) >= REMEMBERED_CHARACTERS:
            self.clear()
        self[code] = folded
        return folded


def _small_or_alone(char: str) -> str:
    category = unicodedata.category(char)
    if category == "Mn":
        return ""
    # BERT treats every printable ASCII symbol as punctuation, even "$" and "+".
    if category.startswith("P") or (char.isascii() and category.startswith("S")):
        return f" {char} "
    return char.lower()


class _Kind(dict[int, str]):
    """One letter for each character, so that offsets stay: (s)pace, (a)lone, or part of a (w)ord."""

    def __missing__(self, code: int) -> str:
        folded = _FOLD[code]
        kind = "s" if folded == " " else "a" if folded.startswith(" ") else "w"
        if len(self) >= REMEMBERED_CHARACTERS:
            self.clear()
        self[code] = kind
        return kind


_FOLD = _Fold()
_KIND = _Kind()
_SPAN = re.compile("a|w+")
