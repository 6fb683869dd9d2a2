"""`scrubjay install` in a home of its own, with files as people have them."""

from __future__ import annotations

import json
import re
import shutil
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from scrubjay.clients import guidance, jsonc
from scrubjay.clients.catalogue import CLIENTS, PROJECT, USER
from scrubjay.clients.guidance import END, START
from scrubjay.clients.trial import try_to_connect

pytestmark = pytest.mark.process

COMMENTED = """\
{
  // my own settings
  "theme": "dark", /* at night */
  "%s": {
    "other": {"command": "npx", "args": ["-y", "other"]}, // theirs
  },
}
"""


def servers(client, file):
    text = file.read_text("utf-8")
    return (tomllib.loads(text) if file.suffix == ".toml" else jsonc.read(text))[client.table]


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
def test_a_client_is_connected_once_and_its_file_keeps_everything_else(client, call, place):
    file = client.file(USER, place)
    text = (
        "# mine\n[mcp_servers.other]\ncommand = 'npx' # theirs\n"
        if client.name == "codex"
        else COMMENTED % client.table
    )
    file.parent.mkdir(parents=True)
    file.write_text(text, "utf-8")

    done = call("install", client.name)
    after = file.read_text("utf-8")

    assert done.code == 0, done.err
    assert "Connected to scrubjay" in done.err
    assert set(servers(client, file)) == {"other", "scrubjay"}
    for remark in ("mine", "theirs", "my own settings", "at night"):
        assert (remark in after) == (remark in text)
    assert file.with_name(f"{file.name}.scrubjay-backup").read_text("utf-8") == text
    assert "nothing to change" in call("install", client.name).err
    assert file.read_text("utf-8") == after
    assert call("install", client.name, "--remove").code == 0
    assert file.read_text("utf-8") == text


def below_home(path, text):
    """A file that was there before."""
    file = Path.home() / path
    file.parent.mkdir(parents=True)
    file.write_bytes(text) if isinstance(text, bytes) else file.write_text(text)
    return file


def everything_below(folder):
    return {one.relative_to(folder): one.read_bytes() if one.is_file() else None for one in folder.rglob("*")}


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
def test_removing_leaves_nothing_of_what_install_created(client, call, place):
    Path.home().mkdir()

    call("install", client.name, "--hooks", "--rules")
    call("install", client.name, "--hooks", "--rules", "--space", "other")  # changes what it wrote itself
    done = call("install", client.name, "--remove")

    assert done.code == 0, done.err
    assert everything_below(Path.home()) == {}


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("gemini", {"settings.json": '{"mcpServers": {}, "theme": "dark"}', "GEMINI.md": "Be brief.\n"}),
        ("gemini", {"settings.json": '{"mcpServers": {}, "hooks": {"BeforeAgent": []}}\n', "GEMINI.md": ""}),
        ("cursor", {"mcp.json": "{\n  // nothing yet\n}\n", "hooks.json": '{"version": 1}'}),
        ("cursor", {"mcp.json": "", "hooks.json": "{}"}),
        ("codex", {"config.toml": "[mcp_servers]\n", "hooks.json": '{"hooks": {}}'}),
        ("codex", {"config.toml": "a = 1", "hooks.json": '{\n  "hooks": {\n  }\n}', "AGENTS.md": "Be brief."}),
        ("codex", {"config.toml": "[t]\r\nb = 1", "hooks.json": "\n", "AGENTS.md": "Be brief.\n\n"}),
        ("cursor", {"mcp.json": '{"x": "{}", "mcpServers": {\n}}', "hooks.json": '{"hooks": {\n\n}}'}),
        ("cursor", {"mcp.json": "{}", "hooks.json": '{"hooks": {"stop": [{"command": "bell"}]}}'}),
        ("gemini", {"settings.json": "// only a comment", "GEMINI.md": "a\r\nb"}),
    ],
)
def test_removing_leaves_files_as_they_were(call, place, name, files):
    folder = Path.home() / f".{name}"
    folder.mkdir(parents=True)
    for file, text in files.items():
        (folder / file).write_text(text)
    before = everything_below(Path.home())

    call("install", name, "--hooks", "--rules")
    call("install", name, "--hooks", "--rules", "--space", "other")
    changed = everything_below(Path.home())
    done = call("install", name, "--remove")

    assert done.code == 0, done.err
    assert changed != before
    assert everything_below(Path.home()) == before


def test_the_copy_of_the_original_is_never_overwritten_and_told_of_if_the_file_has_changed_since(call, place):
    file = below_home(".cursor/mcp.json", '{"mine": 1}')
    copy = file.with_name("mcp.json.scrubjay-backup")

    call("install", "cursor")
    file.write_text(file.read_text().replace('"mine": 1', '"mine": 2'))
    call("install", "cursor", "--space", "other")
    done = call("install", "cursor", "--remove")

    assert json.loads(file.read_text()) == {"mine": 2}
    assert copy.read_text() == '{"mine": 1}'
    assert str(copy) in done.err


def test_a_skill_that_someone_has_changed_is_copied_before_it_goes(call, place):
    call("install", "gemini", "--rules")
    skill = Path.home() / ".gemini" / "skills" / "scrubjay" / "SKILL.md"
    skill.write_text("---\nname: scrubjay\n---\nmy own words")

    done = call("install", "gemini", "--remove")

    assert not skill.exists()
    assert skill.with_name("SKILL.md.scrubjay-backup").read_text().endswith("my own words")
    assert "SKILL.md.scrubjay-backup" in done.err


def test_what_is_printed_is_what_is_written_and_starts_a_server(call, place):
    printed = call("config", "cursor", "--space", "work").out
    call("install", "cursor", "--space", "work")
    written = (Path.home() / ".cursor" / "mcp.json").read_text("utf-8")

    assert json.loads(printed) == json.loads(written)
    entry = json.loads(printed)["mcpServers"]["scrubjay"]
    assert entry["args"][-4:-2] == ["--space", "work"]
    assert try_to_connect([entry["command"], *entry["args"]]).tools


def test_a_dry_run_shows_a_diff_and_what_is_not_connected_is_left_alone(call, place):
    file = below_home(".cursor/mcp.json", "{}")
    assert "nothing to change" in call("install", "cursor", "--remove").err
    assert file.read_text() == "{}"

    done = call("install", "gemini", "--dry-run", "--hooks", "--rules")

    assert '+    "scrubjay": {' in done.out
    assert "hook session-start" in done.out
    assert not (Path.home() / ".gemini").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b'{"mcpServers": {', "line 1, column 17"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[]", "not an object"),
        (b'{"mcpServers": 1}', "not an object"),
    ],
)
def test_a_broken_file_is_left_as_it_is_and_the_place_named(call, place, text, said):
    file = below_home(".cursor/mcp.json", text)

    done = call("install", "cursor", "--hooks")

    assert done.code == 1
    assert str(file) in done.err
    assert said in done.err
    assert [one.name for one in file.parent.iterdir()] == ["mcp.json"], "nothing is written when one file is broken"
    assert file.read_bytes() == text
    told = [line for line in call("doctor").out.splitlines() if line.startswith("warning\tcursor")]
    assert len(told) == 1
    assert said in told[0]
    assert "scrubjay install cursor" in told[0]


@pytest.mark.parametrize("more", [(), ("--remove",), ("--dry-run",)])
def test_servers_of_codex_in_a_list_are_left_as_they_are(call, place, more):
    file = below_home(".codex/config.toml", "[[mcp_servers]]\nname = 'other'\n")

    done = call("install", "codex", *more)

    assert done.code == 1
    assert f"{file} cannot be changed safely: mcp_servers is not a table." in done.err
    assert [one.name for one in file.parent.iterdir()] == ["config.toml"]
    assert file.read_text() == "[[mcp_servers]]\nname = 'other'\n"
    assert "mcp_servers is not" in call("doctor").out


def test_a_broken_file_does_not_keep_other_clients_from_being_connected(call, place):
    below_home(".cursor/mcp.json", "{ oops")

    done = call("install", "cursor", "gemini", "--json")

    assert done.code == 1
    assert [one["client"] for one in done.json] == ["cursor", "gemini"]
    assert "not JSON" in done.json[0]["problem"]
    assert "scrubjay" in (Path.home() / ".gemini" / "settings.json").read_text()


@pytest.mark.parametrize("name", ["vscode", "zed", "cursor"])
def test_a_client_without_rules_for_all_projects_or_without_projects_says_so(call, place, name):
    said = call("install", name, "--rules").err

    assert f"{CLIENTS[name].title} has no rules file for all of your projects" in said
    assert "--project" in said
    assert "no settings for a project" in call("install", "claude-desktop", "--project").err


def test_a_link_stays_a_link_and_rights_stay_as_they_are(call, place):
    kept = place / "dotfiles" / "mcp.json"
    kept.parent.mkdir()
    kept.write_text("{}")
    kept.chmod(0o640)
    link = Path.home() / ".cursor" / "mcp.json"
    link.parent.mkdir(parents=True)
    link.symlink_to(kept)

    call("install", "cursor")

    assert link.is_symlink()
    assert "scrubjay" in kept.read_text()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o640


def test_for_a_project_the_files_of_the_repository_are_used(call, place, monkeypatch):
    (place / "below").mkdir()
    monkeypatch.chdir(place / "below")

    done = call("install", "claude-code", "--project", "--rules", "--hooks")

    assert done.code == 0, done.err
    assert {".mcp.json", "CLAUDE.md", ".claude"} <= {one.name for one in place.iterdir()}
    entry = json.loads((place / ".mcp.json").read_text())["mcpServers"]["scrubjay"]
    assert (entry["command"], entry["args"]) == ("scrubjay", ["mcp", "--dialect", "scrubjay", "--space", "auto"])
    assert str(place) not in (place / ".claude" / "settings.json").read_text()
    assert "does not name" in done.err, "the home of this machine is not written into what others share"
    assert "name: scrubjay" in (place / ".claude" / "skills" / "scrubjay" / "SKILL.md").read_text("utf-8")
    assert not (Path.home() / ".claude.json").exists()


@pytest.mark.parametrize("client", [one for one in CLIENTS.values() if one.project_rules], ids=lambda one: one.name)
def test_rules_go_between_markers_and_leave_what_others_wrote(client, call, place):
    scope = PROJECT if PROJECT in client.scopes else USER
    file = place / (client.project_rules if scope == PROJECT else "user/.codeium/windsurf/memories/global_rules.md")
    if client.name == "cline":
        file = None  # its rules are a project's, its servers the user's
    text = "# House rules\n\nBe brief.\n"
    if file is not None and not client.rules_head:
        file.write_text(text)

    done = call("install", client.name, "--rules", *(["--project"] if scope == PROJECT else []))
    call("install", client.name, "--rules", *(["--project"] if scope == PROJECT else []))

    assert done.code == 0, done.err
    if file is None:
        return
    said = file.read_text("utf-8")
    assert said.count(START) == said.count(END) == 1
    assert said.startswith(client.rules_head or text)
    call("install", client.name, "--remove", *(["--project"] if scope == PROJECT else []))
    assert not file.exists() if client.rules_head else file.read_text("utf-8") == text


def test_hooks_of_others_stay_and_ours_are_added_once(call, place):
    text = '{\n  "hooks": {\n    "SessionStart": [\n      {"hooks": [{"command": "theirs"}]}\n    ]\n  }\n}\n'
    file = below_home(".claude/settings.json", text)

    for _ in range(2):
        assert call("install", "claude-code", "--hooks").code == 0
    hooks = json.loads(file.read_text())["hooks"]

    assert set(hooks) == {"SessionStart", "UserPromptSubmit", "PreCompact", "SessionEnd"}
    assert len(hooks["SessionStart"]) == 2
    call("install", "claude-code", "--remove")
    assert file.read_text() == text


def test_hooks_look_in_the_space_that_was_asked_for(call, place):
    call("install", "gemini", "--hooks", "--space", "work")

    hooks = json.loads((Path.home() / ".gemini" / "settings.json").read_text("utf-8"))["hooks"]
    assert "hook prompt --client gemini --space work --home" in hooks["BeforeAgent"][0]["hooks"][0]["command"]


@pytest.mark.parametrize("command", [("install",), ("install", "--dry-run"), ("config",)])
def test_a_name_that_no_space_can_have_is_refused_before_anything_is_written(call, place, command):
    done = call(*command, "cursor", "--space", "Acme/x")

    assert (done.code, done.out) == (1, "")
    assert "A space's name may only have lower-case letters" in done.err
    assert not (place / ".cursor").exists()


def test_a_secret_of_this_shell_is_not_written_anywhere(call, place, environment):
    environment["SCRUBJAY_CHAT_KEY"] = "hunter2"

    done = call("install", "vscode")

    assert "SCRUBJAY_CHAT_KEY" in done.err
    for file in Path.home().rglob("*"):
        assert file.is_dir() or "hunter2" not in file.read_text("utf-8")


def test_a_server_that_does_not_start_is_told(tmp_path):
    dumb = tmp_path / "dumb"
    dumb.write_text("#!/bin/sh\necho no memory today >&2\n")
    dumb.chmod(0o755)

    assert try_to_connect([str(dumb)]).why_not == "no memory today"
    assert "No such file" in try_to_connect([str(tmp_path / "gone")]).why_not
    assert "0.5 seconds" in try_to_connect([sys.executable, "-c", "import time; time.sleep(60)"], seconds=0.5).why_not


def test_without_a_name_and_a_terminal_it_lists_what_it_found(call, place):
    (Path.home() / ".cursor").mkdir(parents=True)

    done = call("install")

    assert done.code == 2
    assert "cursor" in done.err
    assert "--all" in done.err


@pytest.mark.parametrize("option", ["--all", "--yes"])
def test_without_names_all_that_are_found_can_be_connected_looked_at_and_disconnected(call, place, option):
    for name in (".cursor", ".gemini"):
        (Path.home() / name).mkdir(parents=True)

    assert "+++" in call("install", "--dry-run").out
    assert everything_below(Path.home() / ".cursor") == {}
    assert call("install", option).code == 0
    for file in (".cursor/mcp.json", ".gemini/settings.json"):
        assert "scrubjay" in (Path.home() / file).read_text()
        assert "hook" not in (Path.home() / file).read_text()
    assert call("install", "--remove").code == 0
    assert everything_below(Path.home()) == {}


def found_in(environment, monkeypatch, *folders):
    """The clients that a machine with these folders has."""
    environment["PATH"] = "/usr/bin:/bin"
    for name in folders:
        (Path.home() / name).mkdir(parents=True)
    monkeypatch.setenv("PATH", environment["PATH"])
    return [client for client in CLIENTS.values() if client.is_on_this_machine()]


def test_at_a_terminal_it_asks_once_which_of_those_that_it_finds(terminal, place, environment, monkeypatch):
    found = found_in(environment, monkeypatch, ".cursor", ".gemini")
    gemini = 1 + [client.name for client in found].index("gemini")

    done = terminal("install", keys=f"99\n{gemini}\ny\n")

    assert done.code == 0, done.out
    assert re.findall(r"^ +\d+  (.+)$", done.out, re.MULTILINE) == [client.title for client in found]
    assert "99 is none of them" in done.out
    assert "Add hooks to Gemini CLI:" in done.out
    assert "hook prompt" in (Path.home() / ".gemini" / "settings.json").read_text()
    assert "Gemini CLI: changed" in done.out
    assert "Connected to scrubjay" in done.out
    assert not (Path.home() / ".cursor" / "mcp.json").exists()
    assert "Gemini CLI: changed" in terminal("install", "--remove", keys="\n").out
    assert not (Path.home() / ".gemini" / "settings.json").exists()


@pytest.mark.parametrize(("options", "keys"), [(["--all", "--yes"], ""), ([], "none\n")], ids=["all and yes", "none"])
def test_at_a_terminal_all_asks_nothing_and_none_changes_nothing(
    terminal, place, environment, monkeypatch, options, keys
):
    found_in(environment, monkeypatch, ".cursor")

    done = terminal("install", *options, keys=keys)

    assert done.code == 0, done.out
    assert "Add hooks" not in done.out
    assert ("Which of them" in done.out, "changed" in done.out) == (bool(keys), not keys)
    assert [one.name for one in (Path.home() / ".cursor").iterdir()] == ([] if keys else ["mcp.json"])


def test_a_client_that_runs_has_to_be_restarted(call, place):
    if not Path("/proc/self/comm").exists():
        pytest.skip("needs /proc")
    shutil.copy(shutil.which("sleep"), place / "gemini")
    with subprocess.Popen([place / "gemini", "60"]) as process:
        try:
            said = call("install", "gemini").err
        finally:
            process.kill()

    assert "restart it" in said


# --- doctor ----------------------------------------------------------------------------------------------------------


def test_the_doctor_knows_what_is_wrong_with_entries(call, place):
    old = place / "old" / "scrubjay"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho scrubjay 0.0.1\n")
    old.chmod(0o755)
    file = Path.home() / ".cursor" / "mcp.json"
    file.parent.mkdir(parents=True)
    one, two = (
        {"command": "/gone/scrubjay", "args": ["mcp", "--dialect", "mama"]},
        {"command": str(old), "args": ["mcp"]},
    )
    file.write_text(json.dumps({"mcpServers": {"memory": one, "scrubjay": two, "other": {"url": "http://x"}}}))

    said = call("doctor").out

    assert "/gone/scrubjay, which is gone" in said
    assert "version 0.0.1" in said
    assert "--dialect memento" in said
    assert "2 servers" in said


@pytest.mark.parametrize("name", ["cursor", "codex", "gemini"])
def test_in_the_home_folder_a_file_is_looked_at_once(call, place, monkeypatch, name):
    call("install", name)
    (Path.home() / ".git").mkdir()
    monkeypatch.chdir(Path.home())

    said = call("doctor").out

    assert said.count(f"ok\t{name}") == 1
    assert f"warning\t{name}" not in said


def test_a_copy_is_never_written_through_a_link(call, place, tmp_path):
    """A repository may bring one: what it points at would be replaced by the repository's text."""
    client, victim = CLIENTS["claude-code"], tmp_path / "victim"
    victim.write_text("mine")
    file = client.file(USER, place)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('{"mcpServers": {}, "x": "evil"}')
    file.with_name(f"{file.name}.scrubjay-backup").symlink_to(victim)

    done = call("install", client.name)

    assert (done.code, victim.read_text()) == (1, "mine")
    assert "is a link" in done.err


@pytest.mark.parametrize(
    "text",
    [f"# mine\n{START}\nhalf a block\n\nmore of mine\n", f"{END}\n# mine\n", f"{START}\n{START}\nmine\n"],
    ids=["without an end", "without a start", "two starts"],
)
def test_a_marker_alone_costs_the_user_nothing(text):
    once = guidance.with_block(text)
    assert guidance.with_block(once) == once
    assert guidance.without_block(once).rstrip() == text.rstrip()


def test_a_file_in_the_place_of_the_skill_that_is_not_ours_stays(call, place):
    skill = below_home(".claude/skills/scrubjay/SKILL.md", "my thesis")
    call("install", "claude-code")

    call("install", "claude-code", "--remove")

    assert skill.read_text() == "my thesis"
