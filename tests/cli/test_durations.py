"""What people may write for a time, and what they are told if it cannot be read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scrubjay.cli.durations import ago, ahead
from scrubjay.errors import InvalidInput

NOW = datetime(2026, 11, 15, 10, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "d", "30", "30 fortnights", "-3d", "+3d", "1.5d", "soon", "2026-13-01", "2026-02-30", "0d", "5m",
        "2026-12-01T10:00", "9" * 5000 + "d", "999999999999y", "٣d", "\ud800", "1d\n2d", "99999-01-01",
        "9999-12-31T23:59:59-23:59",
    ],
)  # fmt: skip
def test_what_is_no_time_ahead_is_refused_with_a_sentence(text):
    with pytest.raises(InvalidInput) as refused:
        ahead(text, NOW)

    assert refused.value.message.endswith(".")


@pytest.mark.parametrize("text", ["2026-11-14", "2026-11-15", "2026-11-15T10:00:00Z", "0001-01-01"])
def test_an_expiry_that_has_passed_is_refused(text):
    with pytest.raises(InvalidInput, match="is in the past"):
        ahead(text, NOW)


@pytest.mark.parametrize("text", ["yesterday", "5m", "999999y", "2026-12-01 10:00"])
def test_what_is_no_time_past_is_refused(text):
    with pytest.raises(InvalidInput):
        ago(text, NOW)


def test_five_m_is_asked_back_since_it_could_mean_months():
    with pytest.raises(InvalidInput, match="minutes or months") as refused:
        ahead("5m", NOW)

    assert "5min" in refused.value.hint


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("45min", timedelta(minutes=45)),
        ("12h", timedelta(hours=12)),
        ("30d", timedelta(days=30)),
        (" 30 D ", timedelta(days=30)),
        ("6w", timedelta(weeks=6)),
        ("1y", timedelta(days=365)),
    ],
)
def test_a_length_counts_from_now_in_either_direction(text, length):
    assert ahead(text, NOW) == NOW + length
    assert ago(text, NOW) == NOW - length


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        (ahead("2026-12-01", NOW), datetime(2026, 12, 1, tzinfo=UTC)),
        (ahead("2026-12-01T10:00:00+02:00", NOW), datetime(2026, 12, 1, 8, tzinfo=UTC)),
        (ago("2026-11-14", NOW), datetime(2026, 11, 14, tzinfo=UTC)),
        (ago("2026-11-14", NOW, end=True), datetime(2026, 11, 14, 23, 59, 59, 999_000, tzinfo=UTC)),
        (ago("2026-11-14T00:00:00Z", NOW, end=True), datetime(2026, 11, 14, tzinfo=UTC)),
    ],
    ids=["a date is its first moment in UTC", "a time with a zone is that moment", "since a date begins with the day",
         "until a date includes the whole day", "until a time is that moment"],
)  # fmt: skip
def test_a_date_or_time_is_a_moment(moment, expected):
    assert moment == expected
