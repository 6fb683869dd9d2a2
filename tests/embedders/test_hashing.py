import subprocess
import sys

import pytest

from scrubjay.embedders.hashing import HashingEmbedder
from tests.embedders.embedder_contract import EmbedderContract

pytestmark = pytest.mark.process


class TestHashingEmbedder(EmbedderContract):
    @pytest.fixture
    def embedder(self):
        return HashingEmbedder()

    @pytest.fixture
    def another(self):
        return HashingEmbedder()


def test_another_process_gives_the_same_numbers():
    """Python's own hash() would not."""
    program = (
        "from scrubjay.embedders.hashing import HashingEmbedder as E; print(E().embed_query('Mira').tobytes().hex())"
    )

    elsewhere = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert elsewhere.stdout.strip() == HashingEmbedder().embed_query("Mira").tobytes().hex()


def test_texts_that_share_words_are_nearer_than_texts_that_do_not():
    embedder = HashingEmbedder()
    boat, sold_boat, tax = embedder.embed(["Ted's boat", "Ted sold his boat", "Income tax is due in May"])

    assert boat @ sold_boat > 0.4 > boat @ tax
