"""Two memories below each other on a terminal, with the words marked in which they differ."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from rich.text import Text

from scrubjay.cli.output import clip_text, safe
from scrubjay.cli.tables import console, shorten_ids, style_cell, wrap_text
from scrubjay.values.memory import Memory
from scrubjay.values.times import ago, utc_now

Span = tuple[int, int]
WORD = re.compile(r"[A-Za-z0-9_']+|.", re.DOTALL)  # scripts without spaces are compared letter by letter
PLAIN = (("[-", "-]"), ("{+", "+}"))  # around what differs, where there are no colours


def print_pair(title: str, old: Memory, new: Memory, names: tuple[str, str] = ("old", "new"), first: int = 1) -> None:
    """`first` is the place of the older one in the remembered list: @1."""
    terminal = console()
    texts = clip_text(safe(old.text)), clip_text(safe(new.text))
    terminal.print(Text(title, style="bold"))
    for place, (name, memory, text, spans) in enumerate(
        zip(names, (old, new), texts, compare_words(*texts), strict=True)
    ):
        head = (
            Text(f"{name}  @{first + place}  ") + style_cell("id", memory.id) + f"  {ago(memory.created_at, utc_now())}"
        )
        head += f"  space {memory.space}" if old.space != new.space else ""
        body = mark_differences(text, spans, place, coloured=terminal.color_system is not None)
        lines = wrap_text(shorten_ids(head) if terminal.width < 100 else head, terminal, indent=0)
        for line in (*lines, *wrap_text(body, terminal, indent=2)):
            terminal.print(line)


def mark_differences(text: str, spans: Sequence[Span], place: int, *, coloured: bool) -> Text:
    if coloured:
        shown = Text(text)
        for start, end in spans:
            shown.stylize(("bold red", "bold green")[place], start, end)
        return shown
    before, after = PLAIN[place]
    for start, end in reversed(spans):
        text = f"{text[:start]}{before}{text[start:end]}{after}{text[end:]}"
    return Text(text)


def compare_words(old: str, new: str) -> tuple[list[Span], list[Span]]:
    """Where the first text has words that the second lacks, and the other way round."""
    words = [list(WORD.finditer(text)) for text in (old, new)]
    before, after = ([word[0].casefold() for word in some] for some in words)
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    found: tuple[list[Span], list[Span]] = ([], [])
    for kind, a, b, c, d in matcher.get_opcodes():
        for side, some, start, end in ((0, words[0], a, b), (1, words[1], c, d)):
            if kind != "equal" and start < end:
                found[side].append((some[start].start(), some[end - 1].end()))
    return found
