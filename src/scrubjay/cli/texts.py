"""Texts from the command line or, for `-`, from standard input."""

from __future__ import annotations

import sys

from scrubjay.errors import InvalidInput
from scrubjay.values.memory import MAX_CONTENT

MOST_BYTES = 4 * MAX_CONTENT + 8  # the longest text, a byte order mark and a line's end


def given_text(text: str) -> str:
    """The text itself, or all of standard input without the final newline.

    :raises InvalidInput: if standard input is too long or not UTF-8
    """
    if text != "-":
        return text
    data = sys.stdin.buffer.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise InvalidInput(f"Standard input has more than {MAX_CONTENT:,} characters.", hint="Store it in parts.")
    try:
        read = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"Standard input is not UTF-8: byte {error.start + 1:,} is 0x{data[error.start]:02x}.",
            hint="Convert it first, for example with: iconv -f latin1 -t utf-8",
        ) from None
    return read.removesuffix("\n").removesuffix("\r")
