"""Times as people type them: 30d from now, 12h ago, 2026-12-01, or a full ISO time with its zone."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta

import click

from scrubjay.errors import InvalidInput
from scrubjay.values.times import parse_time, utc_now

UNITS = {
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
    "y": timedelta(days=365),
}
SPAN = r"([0-9]+)\s*([A-Za-z]*)"
DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
HOW_ON = "Use 2026-11-15, 2026-11, yesterday, last week, March 2026."
HOW = "Use 45min, 12h, 30d, 6w or 1y, a date like 2026-12-01, or a time like 2026-12-01T10:00:00Z."


def span(text: str) -> timedelta | None:
    """A length of time, or None if the text does not look like one.

    :raises InvalidInput: if it looks like one but its unit is unknown, or it is zero or too long
    """
    found = re.fullmatch(SPAN, text.strip())
    if found is None:
        return None
    number, unit = int(found[1][:12]), found[2].lower()  # more digits are too long in any case
    if unit == "m":
        raise InvalidInput(f"{text!r} could mean minutes or months.", hint="Use 5min or 150d.")
    if unit not in UNITS:
        raise InvalidInput(f"{text!r} has no known unit of time.", hint=HOW)
    if number == 0:
        raise InvalidInput(f"Invalid time {text!r}.", hint=HOW)
    try:
        return number * UNITS[unit]
    except OverflowError:
        raise InvalidInput(f"{text!r} is too long.") from None


def ahead(text: str, now: datetime) -> datetime:
    """:raises InvalidInput: if it is not a time, or has passed"""
    length = span(text)
    moment = _moment(text) if length is None else _shift(text, now, length)
    if moment <= now:
        raise InvalidInput(f"{text!r} is in the past.")
    return moment


def ago(text: str, now: datetime, *, end: bool = False) -> datetime:
    """A moment in the past, or any moment if it is written out; with `end`, a date alone is the end of its day.

    :raises InvalidInput: if it is not a time
    """
    length = span(text)
    if length is not None:
        return _shift(text, now, -length)
    whole_day = end and re.fullmatch(DATE, text.strip())
    return _shift(text, _moment(text), timedelta(days=1, milliseconds=-1) if whole_day else timedelta())


def _moment(text: str) -> datetime:
    try:
        return parse_time(text.strip(), field="time")
    except (InvalidInput, OverflowError) as error:
        zone = isinstance(error, InvalidInput) and "zone" in error.message
        raise InvalidInput(f"{text!r} {'has no time zone' if zone else 'is not a time'}.", hint=HOW) from None


def _shift(text: str, start: datetime, by: timedelta) -> datetime:
    try:
        return start + by
    except OverflowError:
        raise InvalidInput(f"{text!r} is out of range.") from None


# --- as options ------------------------------------------------------------------------------------------------------


def read_ahead(_ctx: click.Context, _param: click.Parameter, value: str | None) -> datetime | None:
    """`--expires 30d`"""
    return None if value is None else _usable(lambda: ahead(value, utc_now()))


def read_since(_ctx: click.Context, _param: click.Parameter, value: str | None) -> datetime | None:
    """`--since 7d`"""
    return None if value is None else _usable(lambda: ago(value, utc_now()))


def read_until(_ctx: click.Context, _param: click.Parameter, value: str | None) -> datetime | None:
    """`--until 2026-11-15`, which includes that day"""
    return None if value is None else _usable(lambda: ago(value, utc_now(), end=True))


def read_on(_ctx: click.Context, _param: click.Parameter, value: str | None) -> tuple[datetime, datetime] | None:
    """`--on 2026-11-15`, `--on 2026-11`, `--on 2026`, `--on "last week"`: the first and the last moment of it"""
    if value is None:
        return None
    from scrubjay.text.time_expressions import periods

    year = f"in {value.strip()}" if re.fullmatch(r"[0-9]{4}", value.strip()) else value
    found = periods(year, utc_now()) or periods(f"in {value}", utc_now())
    if len(found) != 1:
        raise click.BadParameter(f"{value!r} is not a day, week, month or year. {HOW_ON}")
    return found[0].start, found[0].end - timedelta(milliseconds=1)


def _usable(read: Callable[[], datetime]) -> datetime:
    try:
        return read()
    except InvalidInput as error:
        raise click.BadParameter(" ".join(filter(None, (error.message, error.hint)))) from None
