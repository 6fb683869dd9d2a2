import sys
from dataclasses import replace
from itertools import pairwise

import pytest

from scrubjay.embedders.catalogue import CATALOGUE, DEFAULT, find
from scrubjay.errors import InvalidInput, ModelMissing
from scrubjay.settings import cache_folder
from scrubjay.values.vectors import interpolate


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"network")
    (tmp_path / "vocab.txt").write_bytes(b"[UNK]\n")
    return tmp_path


def test_an_unknown_model_is_refused_and_the_known_ones_are_named():
    with pytest.raises(InvalidInput) as refused:
        find("gpt-embedder")

    assert all(name in refused.value.hint for name in CATALOGUE)


def test_a_folder_without_its_files_is_a_missing_model(tmp_path):
    with pytest.raises(ModelMissing) as missing:
        find(f"folder:{tmp_path}")

    assert str(tmp_path) not in missing.value.message


@pytest.mark.parametrize(
    "toml",
    [
        "pooling = 'max'",
        "window = 12",
        "window = 'wide'",
        "dimension = 0",
        "colour = 'red'",
        "query_prefix = 3",
        "calibration = [[0.5, 0.1], [0.4, 0.9]]",
        "calibration = [[0.5, 0.9], [0.6, 0.1]]",
        "calibration = [[0.5, 7]]",
        "calibration = [0.5]",
        "calibration = []",
        "not toml",
    ],
)
def test_an_unusable_model_toml_is_refused(folder, toml):
    (folder / "model.toml").write_text(toml)

    with pytest.raises(InvalidInput, match=r"model\.toml"):
        find(f"folder:{folder}")


def test_a_folder_of_ones_own_needs_no_model_toml(folder):
    model = find(f"folder:{folder}")

    assert (model.dimension, model.window, model.pooling) == (384, 512, "mean")
    assert model.wrong_files(folder / "elsewhere") == []


def test_a_folder_of_ones_own_is_used_as_its_model_toml_says(folder):
    (folder / "model.toml").write_text(
        "dimension = 768\nwindow = 256\npooling = 'cls'\nquery_prefix = 'query: '\ntext_prefix = 'passage: '\n"
        "calibration = [[0.2, 0.0], [0.8, 1.0]]\n"
    )

    model = find(f"folder:{folder}")

    assert (model.dimension, model.window, model.pooling) == (768, 256, "cls")
    assert (model.query_prefix, model.text_prefix) == ("query: ", "passage: ")
    assert interpolate(0.5, model.calibration) == pytest.approx(0.5)


def test_whatever_shapes_a_vector_shapes_the_fingerprint(folder):
    model = find(DEFAULT)
    others = [
        replace(model, pooling="mean"),
        replace(model, query_prefix=""),
        replace(model, text_prefix="passage: "),
        replace(model, window=256),
        replace(model, files={**model.files, model.network: "0" * 64}),
        replace(model, files={**model.files, "vocab.txt": "0" * 64}),
        find(f"folder:{folder}"),
    ]

    assert len({model.fingerprint, *(other.fingerprint for other in others)}) == len(others) + 1


def test_what_shapes_no_vector_leaves_the_fingerprint_alone():
    """Else a better mirror or a new calibration would embed every store again."""
    model = find(DEFAULT)

    assert replace(model, hub=None, wheel=None, calibration=((0.0, 0.0),)).fingerprint == model.fingerprint


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="they have folders of their own")
def test_the_models_folder_follows_the_users_cache_folder(tmp_path):
    assert cache_folder({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "scrubjay" / "models"


@pytest.mark.parametrize("model", CATALOGUE.values(), ids=lambda model: model.name)
def test_every_entry_is_complete(model):
    assert model.network in model.files
    assert model.vocabulary in model.files
    assert all(len(sha256) == 64 for sha256 in model.files.values())
    assert model.licence
    assert all(low < high for low, high in pairwise(model.calibration))
    assert model.hub is not None or model.wheel is not None
    assert model.hub is None or all(model.hub.url(file).startswith("https://") for file in model.files)
