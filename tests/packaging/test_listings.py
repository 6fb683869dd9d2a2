"""What tells others about a release: the registry's entry, the bundle's manifest, the container, the service."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import jsonschema_rs
import pytest
import yaml

import scrubjay
from scrubjay.settings import reference
from tests.packaging.builds import PROJECT
from tests.servers.peer import SECONDS, environment

pytestmark = pytest.mark.process

DOCKERFILE = (PROJECT / "Dockerfile").read_text().replace("\\\n", " ")
SERVER = json.loads((PROJECT / "server.json").read_text())
SCHEMA = json.loads((PROJECT / "tests" / "packaging" / "registry.schema.json").read_text())


# --- the registry's entry ---


def test_the_registry_would_take_our_entry():
    jsonschema_rs.validate(SCHEMA, SERVER)


@pytest.mark.parametrize(
    "change", [{"name": "scrubjay"}, {"description": "x" * 101}, {"version": "^1.0"}, {"icon": "x"}]
)
def test_the_restated_schema_refuses_what_the_registry_refuses(change: dict):
    with pytest.raises(jsonschema_rs.ValidationError):
        jsonschema_rs.validate(SCHEMA, SERVER | change)


def test_versions_agree_everywhere():
    manifest = json.loads((PROJECT / "packaging" / "manifest.json").read_text())
    versions = {SERVER["version"], SERVER["packages"][0]["version"], manifest["version"], scrubjay.__version__}
    assert versions == {scrubjay.__version__}


def test_the_readme_proves_to_the_registry_whose_package_it_is():
    assert f"<!-- mcp-name: {SERVER['name']} -->" in (PROJECT / "README.md").read_text()


def test_settings_that_listings_name_exist():
    named = {variable["name"] for variable in SERVER["packages"][0]["environmentVariables"]}
    named |= set(re.findall(r"SCRUBJAY_[A-Z_]+", DOCKERFILE + compose_text() + service_text()))
    assert named <= set(re.findall(r"SCRUBJAY_[A-Z_]+", reference()))


# --- the container ---


def compose_text() -> str:
    return (PROJECT / "compose.yaml").read_text()


def instruction(name: str) -> list[str]:
    return re.findall(rf"^{name}\s+(.+)$", DOCKERFILE, re.MULTILINE)


def test_the_container_does_not_run_as_root():
    assert instruction("USER") == ["10001"]


def test_everything_the_container_copies_exists_and_is_not_ignored():
    kept = {line[1:] for line in (PROJECT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {name for line in instruction("COPY") if "--from" not in line for name in line.split()[:-1]}
    assert copied == kept
    assert all((PROJECT / name).exists() for name in copied)


def test_the_containers_health_check_knows_a_server_that_runs_from_one_that_does_not(tmp_path: Path):
    check = json.loads(instruction("HEALTHCHECK")[0].partition("CMD")[2])
    settings = dict(pair.split("=", 1) for pair in re.findall(r"SCRUBJAY_\w+=\S+", instruction("ENV")[0]))
    settings |= {"SCRUBJAY_HOST": "127.0.0.1", "SCRUBJAY_HOME": str(tmp_path), "SCRUBJAY_MODELS": str(tmp_path)}
    env = {**environment(tmp_path), **settings, "SCRUBJAY_SERVER_TOKEN": "t" * 40}

    def healthy() -> bool:
        return subprocess.run([sys.executable, *check[1:]], env=env, capture_output=True).returncode == 0

    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        env["SCRUBJAY_PORT"] = str(deaf.getsockname()[1])
        assert not healthy()
    command = [sys.executable, "-m", "scrubjay", "serve", "--port", "0"]
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as server:
        try:
            for line in server.stderr:
                if address := re.search(r"127\.0\.0\.1:(\d+)", line):
                    env["SCRUBJAY_PORT"] = address[1]
                    break
            assert any(healthy() for _ in range(10))  # a busy machine may not answer within the check's four seconds
        finally:
            server.kill()
    assert not healthy()


def test_compose_asks_for_its_secrets_and_keeps_its_data():
    compose = yaml.safe_load(compose_text())
    services = compose["services"]
    assert "${POSTGRES_PASSWORD:?" in services["database"]["environment"]["POSTGRES_PASSWORD"]
    assert "${SCRUBJAY_SERVER_TOKEN:?" in services["scrubjay"]["environment"]["SCRUBJAY_SERVER_TOKEN"]
    mounted = {volume.split(":")[0] for service in services.values() for volume in service["volumes"]}
    assert mounted == set(compose["volumes"])
    assert all(port.startswith("127.0.0.1:") for port in services["scrubjay"]["ports"])
    assert services["scrubjay"]["depends_on"]["database"]["condition"] == "service_healthy"


# --- the service ---


def service_text() -> str:
    return (PROJECT / "packaging" / "scrubjay.service").read_text()


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd")
def test_systemd_finds_no_fault_with_the_service(tmp_path: Path):
    unit = tmp_path / "scrubjay.service"
    program = Path(sys.executable).with_name("scrubjay")
    unit.write_text(service_text().replace("/opt/scrubjay/bin/scrubjay", f'"{program}"'))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(unit)],
        capture_output=True,
        text=True,
        env={**os.environ, "SYSTEMD_LOG_LEVEL": "warning"},
        timeout=SECONDS,
    )
    assert (done.returncode, done.stderr) == (0, "")
