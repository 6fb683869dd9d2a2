"""What can be known of a session without a model: files, commands, and what its user said should be kept.

Nothing is made up: a suggestion is a sentence of the user's own, or a list of what happened. Transcripts of clients
differ and change, so none is parsed by a schema: whatever was said by a `user` is theirs, and whatever has a name and
arguments is a call of a tool.
"""

from __future__ import annotations

import json
import os
import re
from bisect import bisect_right
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrubjay.machine.projects import project_root, project_space
from scrubjay.machine.suggestions import Suggestions
from scrubjay.text.secrets import secrets_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrubjay.hooks.run import Hook
    from scrubjay.settings import Settings

LARGEST = 4_000_000  # bytes of a transcript that are read, from its end
DEEPEST = 12
NOT_THE_USER = ("isMeta", "isSidechain", "isCompactSummary")  # the client's own words, or another agent's
FILES, COMMANDS, SENTENCES = 20, 10, 20
SAYS_SO = re.compile(
    r"\b(?:remember|don[’']?t forget|always|never(?! mind)|from now on|we(?:[’']ve| have)? (?:decided|agreed))\b",
    re.IGNORECASE,
)
# A password is named and something that may be one follows: in quotes, behind a sign, at the end, or with digits in it.
TELLS_SECRET = re.compile(
    r"""\b(?:pass(?:word|phrase|code|wd)s?|pwd|pin|(?:api|access|private|secret)[ _-]?keys?|tokens?|secrets?
      |credentials?)\b
    (?: [^.!?]*?\s['"`“‘«].+ | \W*[:=]\s*\S | \s(?:is|are|was)\s(?:\w+\s)?\S+$
      | .*?(?<!\S)(?=\S*\d)(?:\S*[^\W\d]\S*|\S{4,}) )
    | (?<!\S)\S*\d\S*\sis\s(?:\w+\s){1,3}(?:password|passphrase|pin|key|token|secret)\b""",
    re.IGNORECASE | re.VERBOSE,
)
FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
TAG = re.compile(r"<(/?)([a-z_-]+)>")
LONGEST = 100_000  # characters of a message that are read
SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
PATCHED = re.compile(r"^\*\*\* (?:Add|Update) File: (.+)$", re.MULTILINE)
WRITES = re.compile(r"edit|write|patch|replace|create|insert", re.IGNORECASE)


def suggest(hook: Hook, settings: Settings, folder: str) -> dict[str, Any]:
    """Keep suggestions; the result is what the log says of it."""
    if not settings.home.is_dir():  # no memory, no suggestions
        return {"how": "nothing"}
    place = hook.given.get("transcript_path")
    if not isinstance(place, str) or not os.path.isfile(place):
        return {"how": "nothing"}
    session = HookSession(place)
    root = project_root(Path(folder))
    space = hook.space if hook.space != "auto" else project_space(root) or "default"
    about = {"space": space, "client": hook.client, "session": str(hook.given.get("session_id") or place)}
    found = [{"kind": "memory", "text": text, **about} for text in session.sentences()]
    if said := session.describe_work(root):
        found.append({"kind": "checkpoint", "text": said, **about})
    return {"how": "suggested", "suggestions": Suggestions(settings.home).add(found)} if found else {"how": "nothing"}


def without_quotes(text: str) -> str:
    """A message without what was pasted, or put there by the client: fences, and whatever stands between tags."""
    text = FENCED.sub("\n", text[:LONGEST]).encode("utf-8", "replace").decode()
    tags = list(TAG.finditer(text))
    closed: dict[str, list[int]] = {}
    for tag in tags:
        if tag[1]:
            closed.setdefault(tag[2], []).append(tag.end())
    kept, done = list[str](), 0
    for tag in tags:
        ends = closed.get(tag[2], [])
        after = bisect_right(ends, tag.end())  # each tag is looked at once, however few of them are closed
        if not tag[1] and tag.start() >= done and after < len(ends):
            kept.append(text[done : tag.start()])
            done = ends[after]
    return "\n".join((*kept, text[done:]))


class HookSession:
    """What a transcript says."""

    def __init__(self, file: str) -> None:
        self.said: list[str] = []
        self.files: dict[str, None] = {}
        self.commands: dict[str, None] = {}
        for entry in entries(file):
            self._take(entry, DEEPEST)

    def sentences(self) -> list[str]:
        """The user's own, that say remember, always, never or decided; no question, and nothing with a secret in it."""
        found: dict[str, None] = {}
        for text in self.said:
            for sentence in SENTENCE.split(without_quotes(text)):
                clean = " ".join(sentence.split()).strip("-*# ")
                fits = 12 <= len(clean) <= 300 and not clean.endswith(("?", ":"))
                if fits and SAYS_SO.search(clean) and not TELLS_SECRET.search(clean) and not list(secrets_in(clean)):
                    found[clean] = None
        return list(found)[-SENTENCES:]

    def describe_work(self, root: Path) -> str:
        """Files and commands in a sentence each; nothing if no file was touched."""
        files = [os.path.relpath(one, root) if Path(one).is_relative_to(root) else one for one in self.files]
        if not files:
            return ""
        shown = ", ".join(files[-FILES:]) + (f" and {len(files) - FILES} more" if len(files) > FILES else "")
        ran = f" Commands: {', '.join(list(self.commands)[-COMMANDS:])}." if self.commands else ""
        return f"Session in {root.name}. Files changed: {shown}.{ran}"

    def _take(self, value: Any, depth: int) -> None:
        if depth == 0 or (isinstance(value, dict) and any(map(value.get, NOT_THE_USER))):
            return
        if isinstance(value, list):
            for one in value:
                self._take(one, depth - 1)
        elif isinstance(value, dict):
            if "user" in (value.get("role"), value.get("type")):
                self.said += texts(value.get("content"))
            if isinstance(value.get("name"), str):
                self._call(value["name"], value)
            for name, one in value.items():
                if name not in ("arguments", "input", "args", "tool_result", "toolUseResult", "result"):
                    self._take(one, depth - 1)

    def _call(self, tool: str, value: dict[str, Any]) -> None:
        arguments = next((value[name] for name in ("input", "args", "arguments") if name in value), None)
        if isinstance(arguments, str):
            self.files |= dict.fromkeys(PATCHED.findall(arguments))
            try:
                arguments = json.loads(arguments)
            except ValueError:
                return
        if not isinstance(arguments, dict):
            return
        file = next((arguments[name] for name in ("file_path", "path", "filePath") if name in arguments), None)
        if isinstance(file, str) and WRITES.search(tool):
            self.files[file] = None
        command = arguments.get("command", arguments.get("cmd"))
        if isinstance(command, list):
            command = " ".join(str(word) for word in command)
        if isinstance(command, str) and (name := shorten_command(command)):
            self.commands[name] = None


def shorten_command(command: str) -> str:
    """A command's program and its subcommand: what follows may be long, or secret."""
    words = command.strip().split("\n")[0].split()
    while words and (
        words[0] in ("cd", "sudo", "env", "&&") or "=" in words[0] or (len(words) > 1 and words[1] == "&&")
    ):
        words = words[2:] if words[0] == "cd" else words[1:]
    plain = [word for word in words[:2] if re.fullmatch(r"[\w./-]{1,40}", word)]
    return " ".join(plain[:1] + [word for word in plain[1:] if not word.startswith("-")])


def texts(content: Any) -> list[str]:
    """What was typed: text as it is, or the parts of a message that are text."""
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else []
    kinds = (None, "text", "input_text")
    return [str(one["text"]) for one in parts if isinstance(one, dict) and one.get("text") and one.get("type") in kinds]


def entries(file: str) -> Iterator[Any]:
    """The lines of a transcript, or the one document that it is."""
    with open(file, "rb") as opened:
        size = os.fstat(opened.fileno()).st_size
        opened.seek(max(0, size - LARGEST))
        data = opened.read(LARGEST)
    if size <= LARGEST and data.lstrip()[:1] in (b"{", b"["):
        try:
            yield json.loads(data)
            return
        except ValueError:
            pass
    for line in data.splitlines():
        try:
            yield json.loads(line)
        except ValueError:  # the first may be cut off, and so may the last
            continue
