"""The clients that `scrubjay install` knows: where each keeps its servers, rules, hooks and skills.

A place is written as `~/…` for the user and relative to the project for the project; `{config}` is the folder where the
platform's programs keep their settings. Shapes were read in each client's own documentation or seen in its files; the
tests drive those that a registry offers.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

USER, PROJECT = "user", "project"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Where a client's hooks are, and what it calls our four moments; it has none for a moment that is left out."""

    user: str
    project: str
    events: Mapping[str, str]
    grouped: bool = True  # event: [{"hooks": [{…}]}], else event: [{…}]
    timeout: int = 5  # in the client's own unit
    trusted: str = ""  # what its user has to do before it runs them
    version: int | None = None


KEY = "SCRUBJAY_KEY"  # the variable that a client's user keeps a server's key in
INPUT = {"type": "promptString", "id": "scrubjay-key", "description": "Key for scrubjay", "password": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """How a client's file names a server that runs: the field for its address, and where to find the key, which is
    never written there."""

    more: Mapping[str, Any] = field(default_factory=dict)
    place: str = "url"
    key: str = ""  # how the file refers to the variable, or to what the client asks for; without it there is no way
    key_field: str = ""  # where that is a field of its own, with the variable's name

    def entry(self, url: str, *, keyed: bool) -> dict[str, Any]:
        found = {**self.more, self.place: url}
        if keyed and self.key_field:
            found[self.key_field] = KEY
        elif keyed:
            found["headers"] = {"Authorization": f"Bearer {self.key}"}
        return found

    @property
    def takes_keys(self) -> bool:
        return bool(self.key or self.key_field)


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    name: str
    title: str
    user: tuple[str, ...]  # the first that exists, else the first
    project: tuple[str, ...] = ()
    table: str = "mcpServers"
    shape: str = "plain"
    user_rules: str = ""
    project_rules: str = ""
    rules_head: str = ""  # what a rules file of our own begins with; without it the file is shared with others
    user_skills: str = ""
    project_skills: str = ""
    hooks: Hooks | None = None
    address: Address | None = None  # none: it takes servers that run by other ways than its file
    programs: tuple[str, ...] = ()  # its commands and processes
    codes: bool = True  # works in a repository, whose space is then the default

    def entry(self, command: str, arguments: list[str]) -> dict[str, Any]:
        """What its table of servers says of ours."""
        match self.shape:
            case "typed":
                return {"type": "stdio", "command": command, "args": arguments}
            case "zed":
                return {"source": "custom", "command": command, "args": arguments}
            case "opencode":
                return {"type": "local", "command": [command, *arguments], "enabled": True}
        return {"command": command, "args": arguments}

    @property
    def scopes(self) -> tuple[str, ...]:
        return (USER, PROJECT) if self.project else (USER,)

    def file(self, scope: str, folder: Path) -> Path:
        """The file with its servers."""
        places = [place(text, folder) for text in (self.user if scope == USER else self.project)]
        return next((one for one in places if one.exists()), places[0])

    def is_on_this_machine(self) -> bool:
        """Whether this machine has it: one of its folders or programs."""
        own = [place(text, Path()) for text in self.user]
        own = [one if one.parent == Path.home() else one.parent for one in own]
        return any(one.exists() for one in own) or any(shutil.which(name) for name in self.programs)


CLAUDE_EVENTS = {
    "session-start": "SessionStart",
    "prompt": "UserPromptSubmit",
    "pre-compact": "PreCompact",
    "session-end": "SessionEnd",
}
CLIENTS = {
    client.name: client
    for client in (
        Client(
            name="claude-code",
            title="Claude Code",
            address=Address(more={"type": "http"}, key=f"${{{KEY}}}"),
            user=("{claude}/.claude.json",),
            project=(".mcp.json",),
            shape="typed",
            user_rules="{claude_folder}/CLAUDE.md",
            project_rules="CLAUDE.md",
            user_skills="{claude_folder}/skills",
            project_skills=".claude/skills",
            hooks=Hooks(
                user="{claude_folder}/settings.json", project=".claude/settings.json", events=CLAUDE_EVENTS
            ),
            programs=("claude",),
        ),
        Client(
            name="claude-desktop",
            title="Claude Desktop",
            user=("{config}/Claude/claude_desktop_config.json",),
            programs=("claude-desktop", "Claude"),
            codes=False,
        ),
        Client(
            name="cursor",
            title="Cursor",
            address=Address(key=f"${{env:{KEY}}}"),
            user=("~/.cursor/mcp.json",),
            project=(".cursor/mcp.json",),
            project_rules=".cursor/rules/scrubjay.mdc",
            rules_head="---\ndescription: Long-term memory with scrubjay\nalwaysApply: true\n---\n",
            user_skills="~/.cursor/skills",
            project_skills=".cursor/skills",
            # A prompt's hook may stop the prompt there but add nothing to it, so it has no use for ours.
            hooks=Hooks(
                user="~/.cursor/hooks.json",
                project=".cursor/hooks.json",
                events={"session-start": "sessionStart", "pre-compact": "preCompact", "session-end": "sessionEnd"},
                grouped=False,
                version=1,
            ),
            programs=("cursor", "Cursor"),
        ),
        Client(
            name="vscode",
            title="VS Code",
            address=Address(more={"type": "http"}, key=f"${{input:{INPUT['id']}}}"),
            user=("{config}/Code/User/mcp.json",),
            project=(".vscode/mcp.json",),
            table="servers",
            shape="typed",
            project_rules="AGENTS.md",
            programs=("code",),
        ),
        Client(
            name="codex",
            title="Codex",
            address=Address(key_field="bearer_token_env_var"),
            user=("{codex}/config.toml",),
            project=(".codex/config.toml",),
            table="mcp_servers",
            user_rules="{codex}/AGENTS.md",
            project_rules="AGENTS.md",
            user_skills="~/.agents/skills",
            project_skills=".agents/skills",
            hooks=Hooks(
                user="{codex}/hooks.json",
                project=".codex/hooks.json",
                events=CLAUDE_EVENTS,
                timeout=3,  # it warns of more for the end of a session
                trusted="When Codex starts, it asks whether to trust the hooks; until then it runs none.",
            ),
            programs=("codex",),
        ),
        Client(
            name="gemini",
            title="Gemini CLI",
            address=Address(place="httpUrl", key=f"${{{KEY}}}"),
            user=("~/.gemini/settings.json",),
            project=(".gemini/settings.json",),
            user_rules="~/.gemini/GEMINI.md",
            project_rules="GEMINI.md",
            user_skills="~/.gemini/skills",
            project_skills=".gemini/skills",
            hooks=Hooks(
                user="~/.gemini/settings.json",
                project=".gemini/settings.json",
                events=CLAUDE_EVENTS | {"prompt": "BeforeAgent", "pre-compact": "PreCompress"},
                timeout=5_000,
            ),
            programs=("gemini",),
        ),
        Client(
            name="zed",
            title="Zed",
            address=Address(),
            user=("{zed}/settings.json",),
            project=(".zed/settings.json",),
            table="context_servers",
            shape="zed",
            project_rules="AGENTS.md",
            programs=("zed", "zeditor", "zed-editor"),
        ),
        Client(
            name="windsurf",
            title="Windsurf",
            address=Address(place="serverUrl", key=f"${{env:{KEY}}}"),
            user=("~/.codeium/windsurf/mcp_config.json",),
            user_rules="~/.codeium/windsurf/memories/global_rules.md",
            project_rules=".windsurf/rules/scrubjay.md",
            rules_head="---\ntrigger: always_on\n---\n",
            programs=("windsurf",),
        ),
        Client(
            name="opencode",
            title="opencode",
            address=Address(more={"type": "remote", "enabled": True}, key=f"{{env:{KEY}}}"),
            user=("~/.config/opencode/opencode.json", "~/.config/opencode/opencode.jsonc"),
            project=("opencode.json", "opencode.jsonc"),
            table="mcp",
            shape="opencode",
            user_rules="~/.config/opencode/AGENTS.md",
            project_rules="AGENTS.md",
            programs=("opencode",),
        ),
        Client(
            name="cline",
            title="Cline",
            address=Address(more={"type": "streamableHttp"}),
            user=(
                "{config}/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
                "~/.cline/data/settings/cline_mcp_settings.json",
            ),
            project_rules=".clinerules/scrubjay.md",
            rules_head="# Memory\n",
            programs=("cline",),
        ),
    )
}  # fmt: skip


def place(text: str, folder: Path) -> Path:
    """The path of a place, below the user's home or the project's folder."""
    home = Path.home()
    folders = {
        "config": settings_folder(home),
        "zed": Path(os.environ["APPDATA"]) / "Zed" if sys.platform == "win32" else xdg(home) / "zed",
        "codex": Path(os.environ.get("CODEX_HOME") or home / ".codex"),
        "claude": Path(os.environ.get("CLAUDE_CONFIG_DIR") or home),
        "claude_folder": Path(os.environ.get("CLAUDE_CONFIG_DIR") or home / ".claude"),
    }
    head, _, rest = text.partition("/")
    if head == "~":
        return home / rest
    return folders[head[1:-1]] / rest if head.startswith("{") else folder / text


def settings_folder(home: Path) -> Path:
    if sys.platform == "win32":
        return Path(os.environ["APPDATA"])
    return home / "Library" / "Application Support" if sys.platform == "darwin" else xdg(home)


def xdg(home: Path) -> Path:
    given = os.environ.get("XDG_CONFIG_HOME")
    return Path(given) if given and sys.platform != "darwin" else home / ".config"
