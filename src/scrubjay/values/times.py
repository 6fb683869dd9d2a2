"""Times on the wire and in files: UTC with milliseconds and Z. Naive times are refused: they are ambiguous."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from scrubjay.errors import InvalidInput

MILLISECONDS = 100_000_000_000  # from here on a Unix time counts milliseconds: as seconds it would be the year 5138


def utc_now() -> datetime:
    return datetime.now(UTC)


def iso(when: datetime) -> str:
    return when.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


AGES = {7200: (60, "min"), 172_800: (3600, "h"), 1_209_600: (86_400, "days"), 6_048_000: (604_800, "weeks"),
        63_072_000: (2_628_000, "months"), 10**12: (31_536_000, "years")}  # fmt: skip  # up to this many seconds


def ago(moment: datetime, now: datetime) -> str:
    """How long ago, or in how long: 5 min ago, in 3 days."""
    seconds = int(abs(now - moment) / timedelta(seconds=1))
    if seconds < 60:
        return "just now" if moment <= now else "in a moment"
    unit, name = next(age for until, age in AGES.items() if seconds < until)
    number = seconds // unit
    length = f"{number:,} {name.removesuffix('s') if number == 1 else name}"
    return f"{length} ago" if moment <= now else f"in {length}"


def parse_time(text: str, *, field: str) -> datetime:
    """Read an ISO 8601 time; a date alone is its midnight in UTC.

    :raises InvalidInput: if it is not a time, or has no zone
    """
    try:
        when = datetime.fromisoformat(text.upper())  # RFC 3339 allows t and z as well
    except ValueError:
        raise InvalidInput(f"{field} is not a time.", hint="Write it like 2026-11-15T10:00:00Z.", field=field) from None
    if when.tzinfo is None:
        if "T" in text or " " in text.strip():
            raise InvalidInput(f"{field} has no time zone.", hint="End it with Z or with +02:00.", field=field)
        when = when.replace(tzinfo=UTC)
    try:
        return when.astimezone(UTC)
    except OverflowError:  # the year 0 or 10000, because of its zone
        raise InvalidInput(f"{field} is out of range.", field=field) from None


def read_time(value: str | float, *, field: str) -> datetime:
    """A time as other programs write it: ISO 8601, or Unix time in seconds or in milliseconds.

    :raises InvalidInput: if it is not a time
    """
    if isinstance(value, str):
        return parse_time(value, field=field)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(f"{field} is not a time.", field=field)
    try:
        return datetime.fromtimestamp(value if abs(value) < MILLISECONDS else value / 1000, UTC)
    except (OSError, OverflowError, ValueError):
        raise InvalidInput(f"{field} is out of range.", field=field) from None


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)  # made once: to multiply it takes a third of the time of making another


def milliseconds(at: datetime) -> int:
    """Since 1970, rounded down: what stores keep of a time."""
    return (at - EPOCH) // MILLISECOND


def moment(milliseconds: int) -> datetime:
    return EPOCH + milliseconds * MILLISECOND
