"""The space of the repository one stands in."""

from __future__ import annotations

import subprocess

import pytest

from scrubjay.machine.projects import project_space
from scrubjay.settings import Settings
from scrubjay.text.letters import slug
from scrubjay.wiring import current_space, here

pytestmark = pytest.mark.process


def git(folder, *arguments):
    subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "My Project"
    folder.mkdir()
    git(folder, "init")
    return folder


def test_outside_a_repository_there_is_only_the_default_space(tmp_path):
    assert current_space("auto", tmp_path) == "default"


def test_a_broken_repository_is_no_reason_to_fail(tmp_path):
    (tmp_path / ".git").write_bytes(b"\xff\xfe nonsense")

    assert project_space(tmp_path) is not None


def test_without_a_remote_the_root_folder_gives_the_name(repository):
    deep = repository / "src" / "deep"
    deep.mkdir(parents=True)

    assert project_space(deep) == "my-project"


@pytest.mark.parametrize(
    "url",
    ["https://example.org/Acme/Rocket.git", "git@example.org:Acme/Rocket.git", "ssh://git@example.org:22/Acme/Rocket/"],
)
def test_the_remote_gives_the_same_name_however_it_is_spelt(repository, url):
    git(repository, "remote", "add", "origin", url)

    assert project_space(repository) == "acme-rocket"


def test_a_remote_called_origin_comes_before_others(repository):
    git(repository, "remote", "add", "fork", "https://example.org/me/rocket")
    git(repository, "remote", "add", "origin", "https://example.org/acme/rocket")

    assert project_space(repository) == "acme-rocket"


def test_every_worktree_has_the_same_space(repository, tmp_path):
    git(repository, "commit", "--allow-empty", "-m", "first")
    git(repository, "worktree", "add", str(tmp_path / "other"))

    assert project_space(tmp_path / "other") == project_space(repository) == "my-project"


def test_auto_is_the_projects_space(repository):
    assert current_space("auto", repository) == "my-project"


@pytest.mark.parametrize(("text", "expected"), [("My Folder", "my-folder"), ("a---b", "a-b"), ("Ünïcode", "unicode")])
def test_a_slug_is_plain(text, expected):
    assert slug(text) == expected


def test_a_text_without_letters_gets_a_stable_hash():
    assert slug("漢字") == slug("漢字") != slug("汉字")
    assert slug("@#$").startswith("t")


def test_a_process_whose_folder_was_removed_stands_in_its_home(tmp_path, monkeypatch):
    (gone := tmp_path / "gone").mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    assert here(Settings(home=tmp_path)) == tmp_path
