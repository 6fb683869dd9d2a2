from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from scrubjay.errors import InvalidInput, RegistryDamaged
from scrubjay.folders.folder import Folder
from scrubjay.folders.registry import Registered, Registry

BROKEN = {
    "not yaml": "stores: [",
    "a list": "- a\n- b\n",
    "no path": "stores:\n  notes: {description: x}\n",
    "empty path": 'stores:\n  notes: {path: ""}\n',
    "nobody's home": "stores:\n  notes: {path: ~nobody-of-that-name/x}\n",
    "bad name": "stores:\n  Bad_Name: {path: /x}\n",
    "a name twice": "stores:\n  notes: {path: /x}\n  notes: {path: /y}\n",
    "a custom tag": "stores: !!python/object:os.system {}\n",
    "not utf-8": None,
}


@pytest.fixture
def registry(tmp_path):
    return Registry(tmp_path, tmp_path)


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_refused_and_never_overwritten(registry, tmp_path, text):
    place = tmp_path / "stores.yaml"
    place.write_bytes(b"stores: \xff" if text is None else text.encode())
    before = place.read_bytes()

    with pytest.raises(RegistryDamaged, match=r"stores\.yaml"):
        registry.stores()
    with pytest.raises(RegistryDamaged):
        registry.add(Registered(name="new", path=tmp_path / "new"))
    with pytest.raises(RegistryDamaged):
        registry.remove("notes")
    assert place.read_bytes() == before


def test_a_syntax_error_is_named_by_line_and_column(registry, tmp_path):
    (tmp_path / "stores.yaml").write_text("stores:\n  notes:\n    path: /x\n   description: y\n")

    with pytest.raises(RegistryDamaged, match="line 4, column 4"):
        registry.stores()


def test_default_is_there_from_the_start(registry, tmp_path):
    assert registry.stores()["default"].path == tmp_path / "stores" / "default"
    assert not (tmp_path / "stores.yaml").exists()


def test_a_file_without_the_top_key_is_read_too(registry, tmp_path):
    (tmp_path / "stores.yaml").write_text("notes:\n  path: /x\n")

    assert registry.stores()["notes"].path == Path("/x")


def test_paths_may_be_relative_or_begin_with_a_home(registry, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/somebody")
    (tmp_path / "stores.yaml").write_text("stores:\n  a: {path: near}\n  b: {path: ~/far}\n")

    assert registry.stores()["a"].path == tmp_path / "near"
    assert registry.stores()["b"].path == Path("/somebody/far")


def test_what_others_wrote_stays(registry, tmp_path):
    (tmp_path / "stores.yaml").write_text(
        'stores:\n  a: {path: /a, description: "Ä", kind: filesystem, more: [1, x]}\n'
    )
    registry.add(Registered(name="b", path=Path("/b"), description='"quoted": yes'))

    again = Registry(tmp_path, tmp_path).stores()
    assert dict(again["a"].more) == {"kind": "filesystem", "more": [1, "x"]}
    assert (again["a"].description, again["b"].description) == ("Ä", '"quoted": yes')
    assert (tmp_path / "stores.yaml").read_text().startswith('stores:\n  "a":\n    path: "/a"\n')


def test_what_another_process_wrote_is_seen(registry, tmp_path):
    registry.stores()
    Registry(tmp_path, tmp_path).add(Registered(name="new", path=tmp_path / "x"))

    assert "new" in registry.stores()


def test_folders_within_each_other_are_refused_by_ancestry(registry, tmp_path):
    registry.add(Registered(name="a", path=tmp_path / "notes"))
    (tmp_path / "link").symlink_to(tmp_path / "notes")
    (tmp_path / "notes").mkdir()

    for path in (tmp_path / "notes" / "in", tmp_path, tmp_path / "link", tmp_path / "link" / "in"):
        with pytest.raises(InvalidInput):
            registry.add(Registered(name="b", path=path))
    registry.add(Registered(name="b", path=tmp_path / "notes-evil"))


def test_the_projects_store_is_found_by_its_registered_name(tmp_path):
    project = Registered(name="project", path=tmp_path / "p" / ".scrubjay", written=False)
    registry = Registry(tmp_path, tmp_path, project=project)
    assert registry.project() == project
    registry.add(Registered(name="other-name", path=project.path))

    assert registry.project().name == "other-name"
    assert "project" not in registry.stores()


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes_below(root: Path) -> dict[str, int]:
    return {str(place.relative_to(root)): stat.S_IMODE(place.stat().st_mode) for place in root.rglob("*")}


@pytest.mark.usefixtures("open_umask")
def test_files_of_folders_under_our_home_are_for_this_user_only(tmp_path):
    home, elsewhere = tmp_path / "home", tmp_path / "notes"
    home.mkdir()
    registry = Registry(home, home)

    def modes_in(store: Registered) -> dict[str, int]:
        folder: Folder = registry.folder_of(store)
        folder.prepare()
        folder.write("section/memory.md", b"text", over=False)
        return modes_below(folder.root)

    ours = modes_in(registry.usual("default"))
    theirs = modes_in(Registered(name="notes", path=elsewhere))
    registry.add(Registered(name="notes", path=elsewhere))

    assert set(ours.values()) == {0o600, 0o700}
    assert {stat.S_IMODE((home / "stores").stat().st_mode), stat.S_IMODE((home / "stores/default").stat().st_mode)} == {
        0o700
    }
    assert stat.S_IMODE((home / "stores.yaml").stat().st_mode) == 0o600
    assert set(theirs.values()) == {0o644, 0o755}
