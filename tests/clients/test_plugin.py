"""The plugin for Claude Code: what it starts exists, wherever it is started from."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from scrubjay import __version__
from scrubjay.clients.catalogue import CLAUDE_EVENTS
from scrubjay.clients.guidance import skill
from scrubjay.hooks.run import MOMENTS

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "src" / "scrubjay" / "clients" / "plugin"


def load_file(name):
    return json.loads((PLUGIN / name).read_text("utf-8"))


def test_it_has_the_version_of_the_package_and_every_hook():
    hooks = load_file("hooks/hooks.json")["hooks"]

    assert load_file(".claude-plugin/plugin.json")["version"] == __version__
    assert set(hooks) == set(CLAUDE_EVENTS.values())
    for moment, event in CLAUDE_EVENTS.items():
        assert moment in MOMENTS
        assert f" hook {moment} " in hooks[event][0]["hooks"][0]["command"]
    assert skill().startswith("---\nname: scrubjay\n")


def test_the_marketplace_of_the_clone_leads_to_it():
    [listed] = json.loads((ROOT / ".claude-plugin" / "marketplace.json").read_text("utf-8"))["plugins"]

    assert (ROOT / listed["source"]).resolve() == PLUGIN


@pytest.mark.skipif(os.name == "nt", reason="a shell's script")
def test_without_the_program_a_hook_says_nothing_and_the_server_says_why(tmp_path):
    script = tmp_path / "scripts" / "scrubjay.sh"
    script.parent.mkdir()
    script.write_text((PLUGIN / "scripts" / "scrubjay.sh").read_text("utf-8"))
    run = {"env": {"PATH": "/usr/bin:/bin"}, "capture_output": True, "text": True, "check": False}

    hook = subprocess.run(["sh", script, "hook", "prompt"], **run)
    server = subprocess.run(["sh", script, "mcp"], **run)

    assert (hook.returncode, hook.stdout) == (0, "")
    assert server.returncode == 1
    assert "not installed" in server.stderr
