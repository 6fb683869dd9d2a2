"""What an archived memory looks like as bytes, and what is refused when it is read."""

from __future__ import annotations

from base64 import b64decode
from hashlib import sha256

import pytest

from scrubjay.engine.archive import archives
from scrubjay.engine.archive.archives import ArchivedText, pack, unpack
from scrubjay.errors import ArchiveDamaged
from scrubjay.values.memory import Tier
from tests.stores.contract.samples import some

KEPT = ArchivedText(memory=some("Ünal lives in Bergen", id="mem_0123456789ab"))

# Written by the library that was used until version 0.1, zstandard 0.25.
COLD = (
    "MSi1L/1ggAGNAwAUA3swNjc4OWFiw5xsaXZlc0JlcmdlbmZhY3Q1MDEtMDJUMDM6MDQ6MDUuNjc4MH0sXX0WIFBiykzQBzjmowsB"
    "ysQBGGBhAAmsKIAS2ttQwu0M8HRQ0KaFaMBBAh53wADA5yh/s5ZnxbjmqHB7runFBg=="
)
GLACIER = (
    "c2NydWJqYXktYXJjaGl2ZSAxCii1L/1ggAH1CgDGF0YkcGtz/P/nqnpdfLEtXDQuhhbfZLuwPHCaY4bn+jdPv/ysqgYYPAA7ADkA"
    "DfvrkiOUFwAJAZUnGAFxJSbz9pbccrqv9ifh5OsdpYX4vZ3dRvXrkFUkEAdDgeA07Gl/8FT7hU4KU04F9e2RJ45Prezcfv1xu6Vt"
    "YSrN+sUEDT8IGQSsnZ3cpjOiwGe2tF8PR3uNbLuFHuFeN7BMiIRvl/RGHAMTbLdvr1Jv16+KzqjKpf1FOcZdCoERRndK8jRpFKEI"
    "t/l9VVT79r5tpnxVj+tmfChX6VR7Wx7TlQTVw9FeqwrXr79dwgik00XJV9MuJ6yUpy/W3lKa7nmR9PVGAnEQGFgrsEZgDIcFGhY4"
    "OMx5e+/zuJep+zoHGQBuIQCo3rwQU7gJqzBgKeco5X2Lood26Jc1NIxSMQX3Gpey1+dr9KrmDk0jQk/UMrc6y6tvtYNJfoYKBV69"
    "JusEAw=="
)


def read(data: bytes) -> ArchivedText:
    return unpack(data, checksum=sha256(data).digest())


@pytest.mark.parametrize("text", [COLD, GLACIER], ids=["cold", "glacier"])
def test_what_an_earlier_version_archived_is_still_read(text: str):
    assert read(b64decode(text)) == KEPT


@pytest.mark.parametrize("tier", [Tier.COLD, Tier.GLACIER, Tier.DEEP_ARCHIVE])
def test_what_is_packed_is_read_again(tier: Tier):
    assert read(pack(KEPT, tier)) == KEPT


@pytest.mark.parametrize("tier", [Tier.COLD, Tier.GLACIER])
@pytest.mark.parametrize("cut", [1, 10, 40])
def test_a_frame_that_is_cut_off_is_damaged(tier: Tier, cut: int):
    with pytest.raises(ArchiveDamaged):
        read(pack(KEPT, tier)[:-cut])


def test_a_frame_that_unpacks_to_more_than_any_archive_may_is_damaged(monkeypatch: pytest.MonkeyPatch):
    data = pack(KEPT, Tier.GLACIER)
    monkeypatch.setattr(archives, "MAX_BYTES", 100)
    with pytest.raises(ArchiveDamaged):
        read(data)
