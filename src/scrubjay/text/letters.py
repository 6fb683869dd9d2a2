"""Unicode's normal forms in linear time, and names made from them.

Putting a run of combining marks into Unicode's order is quadratic in `unicodedata` (50,000 of them: 3 s). No language
writes more than a few on one letter, so a long run is cut, and each piece is put in order by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Literal
from unicodedata import category, combining, normalize

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]

LONGEST_RUN = 64  # marks that stay together; a text without a longer run comes out as `unicodedata` gives it
FILLERS = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"  # letters and marks that nothing is drawn for
PLAIN = re.compile("[a-z0-9]+")
# Two characters that each expand to a sentence (a blessing, a praise): a text of them would grow eighteenfold. For code
# that looks for certain words in a text, which these sentences do not contain.
SENTENCES = {0xFDFA: " ", 0xFDFB: " "}


def normalise(form: Form, text: str) -> str:
    """The text in a normal form."""
    if text.isascii():
        return text
    return "".join(normalize(form, piece) for piece in _pieces(text))


def _pieces(text: str) -> Iterator[str]:
    """The text, cut inside its long runs of marks and nowhere else."""
    begin = 0
    for place in range(LONGEST_RUN, len(text), LONGEST_RUN):  # no longer run fits between two of these
        if _is_mark(text[place]) and _starts_late(text, place):
            yield text[begin:place]
            begin = place
    yield text[begin:]


def _starts_late(text: str, place: int) -> bool:
    """Whether the run of marks that this one belongs to is a long one."""
    return all(map(_is_mark, set(text[place - LONGEST_RUN : place])))


def _is_mark(letter: str) -> bool:
    return combining(normalize("NFKD", letter)[0]) > 0  # some letters decompose into marks, and count as marks


def is_blank(text: str) -> bool:
    """Whether there is nothing to see in it: only white space, control characters, zero-width ones, fillers."""
    if text[:1].isascii() and text[:1].isalnum():  # as most texts begin
        return False
    return all(letter.isspace() or category(letter) in ("Cc", "Cf") or letter in FILLERS for letter in text)


def slug(text: str) -> str:
    """Lower-case letters, digits and single hyphens; a hash where nothing is left."""
    plain = normalise("NFKD", text).encode("ascii", "ignore").decode().lower()
    result = "-".join(PLAIN.findall(plain))[:60].strip("-")
    return result or "t" + sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def topic_key(topic: str) -> str:
    """The same for spellings that differ only in case, width, or in runs of spaces, `_` and `-`."""
    plain = normalise("NFKC", topic).casefold()
    return " ".join(plain.translate(TOPIC_JOINTS).split()) or plain


TOPIC_JOINTS = dict.fromkeys(map(ord, "_-\u2010\u2013\u2014"), " ")
