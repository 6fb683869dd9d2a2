"""The times that a question names, in four languages, and how well a memory suits them."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta, timezone
from math import nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrubjay.text import time_expressions
from scrubjay.values.search import Period
from scrubjay.values.times import milliseconds
from tests.engine import one_by_one

NOW = datetime(2026, 11, 15, 10, 0, tzinfo=UTC)  # a Sunday


def read(question, now=NOW):
    return [
        (f"{found.start:%Y-%m-%d}", f"{found.end - timedelta(days=1):%Y-%m-%d}")
        for found in time_expressions.periods(question, now)
    ]


@pytest.mark.parametrize(
    "question",
    [
        "", "?", "a", "Where does the user live?", "May I ask who may come?", "the march on the capital",
        "the Mars rover",
        "How many days ago did I meet Emma?", "How long ago was that?", "page 2023 of 5000", "version 3.5", "🙂" * 50,
        "SELECT * FROM memories WHERE year > 1", "the the the", "10:30", "year", "last", "on", "0", "99/99/9999",
        "2026-13-45", "0000-00-00",
    ],
)  # fmt: skip
def test_a_question_without_a_time_names_none(question):
    assert read(question) == []


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("What did we do yesterday?", "2026-11-14", "2026-11-14"),
        ("the day before yesterday", "2026-11-13", "2026-11-13"),
        ("on October 13, 2023?", "2023-10-13", "2023-10-13"),
        ("on the 3rd of May 2022", "2022-05-03", "2022-05-03"),
        ("on 3 May", "2026-05-03", "2026-05-03"),
        ("on 24 December", "2025-12-24", "2025-12-24"),
        ("2023-05-07", "2023-05-07", "2023-05-07"),
        ("in 2023-05", "2023-05-01", "2023-05-31"),
        ("on 5/7/2023", "2023-05-07", "2023-05-07"),
        ("am 7.5.2023", "2023-05-07", "2023-05-07"),
        ("in July 2023", "2023-07-01", "2023-07-31"),
        ("in May", "2026-05-01", "2026-05-31"),
        ("in December", "2025-12-01", "2025-12-31"),
        ("in 2021", "2021-01-01", "2021-12-31"),
        ("two weeks ago", "2026-10-28", "2026-11-04"),
        ("3 days ago", "2026-11-12", "2026-11-12"),
        ("in the past two weeks", "2026-11-01", "2026-11-15"),
        ("last week", "2026-11-02", "2026-11-08"),
        ("this week", "2026-11-09", "2026-11-15"),
        ("last weekend", "2026-11-07", "2026-11-08"),
        ("last month", "2026-10-01", "2026-10-31"),
        ("this year", "2026-01-01", "2026-12-31"),
        ("last Tuesday", "2026-11-10", "2026-11-10"),
        ("last Sunday", "2026-11-08", "2026-11-08"),
        ("on Sunday", "2026-11-15", "2026-11-15"),
        ("last summer", "2026-06-01", "2026-08-31"),
        ("last autumn", "2025-09-01", "2025-11-30"),
        ("the summer of 2022", "2022-06-01", "2022-08-31"),
        ("the week before August 3, 2023", "2023-07-27", "2023-08-03"),
        ("two weeks before August 11, 2023", "2023-07-28", "2023-08-11"),
        ("Was haben wir gestern gemacht?", "2026-11-14", "2026-11-14"),
        ("vorgestern", "2026-11-13", "2026-11-13"),
        ("am 3. Mai 2022", "2022-05-03", "2022-05-03"),
        ("im März", "2026-03-01", "2026-03-31"),
        ("letzten Sommer", "2026-06-01", "2026-08-31"),
        ("vor zwei Wochen", "2026-10-28", "2026-11-04"),
        ("letzten Dienstag", "2026-11-10", "2026-11-10"),
        ("in den letzten drei Monaten", "2026-08-15", "2026-11-15"),
        ("Qu'ai-je fait hier ?", "2026-11-14", "2026-11-14"),
        ("le 14 juillet 2022", "2022-07-14", "2022-07-14"),
        ("en mars 2021", "2021-03-01", "2021-03-31"),
        ("l'été dernier", "2026-06-01", "2026-08-31"),
        ("il y a trois jours", "2026-11-12", "2026-11-12"),
        ("la semaine dernière", "2026-11-02", "2026-11-08"),
        ("mardi dernier", "2026-11-10", "2026-11-10"),
        ("¿Qué hice ayer?", "2026-11-14", "2026-11-14"),
        ("el 3 de mayo de 2023", "2023-05-03", "2023-05-03"),
        ("en marzo de 2021", "2021-03-01", "2021-03-31"),
        ("el verano pasado", "2026-06-01", "2026-08-31"),
        ("hace tres días", "2026-11-12", "2026-11-12"),
        ("el fin de semana pasado", "2026-11-07", "2026-11-08"),
        ("el martes pasado", "2026-11-10", "2026-11-10"),
    ],
)
def test_a_time_is_read(question, first, last):
    assert read(question) == [(first, last)]


@pytest.mark.parametrize("question", ["on 31 June 2022", "on June 31, 2022"])
def test_a_day_that_does_not_exist_is_read_as_its_month(question):
    assert read(question) == [("2022-06-01", "2022-06-30")]


def test_a_written_date_counts_more_than_what_is_relative_to_nobody_knows_when():
    assert read("What did Joanna finish last Friday, on 23 January, 2022?") == [("2022-01-23", "2022-01-23")]


def test_several_times_are_all_named():
    assert read("between May 2023 and July 2023") == [("2023-05-01", "2023-05-31"), ("2023-07-01", "2023-07-31")]


@pytest.mark.parametrize("hours", [-11, -5, 0, 5.75, 13])
def test_yesterday_is_that_of_whoever_asks(hours):
    """The same moment is on different days around the world; a period begins at the asker's midnight."""
    zone = timezone(timedelta(hours=hours))
    now = NOW.astimezone(zone)

    [period] = time_expressions.periods("yesterday", now)

    assert period.start.astimezone(zone).date() == now.date() - timedelta(days=1)
    assert (period.start.astimezone(zone).hour, period.end - period.start) == (0, timedelta(days=1))


@given(st.text(max_size=80), st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)))
def test_any_text_at_any_time_is_read_without_an_error(text, moment):
    for question in (text, f"in {text} 2023", f"last {text}", f"{text} 999 years ago"):
        for period in time_expressions.periods(question, moment.replace(tzinfo=UTC)):
            assert period.start < period.end


def test_a_question_of_thousands_of_words_is_read_quickly_and_only_at_its_beginning():
    assert time_expressions.periods("yesterday " + "word " * 100_000, NOW)
    assert not time_expressions.periods("word " * 1_000 + "yesterday", NOW)


# --- how well a memory suits -----------------------------------------------------------------------------------------

WEEK = Period(NOW, NOW + timedelta(days=7), "that week")


def suits(since: datetime, until: datetime | None = None) -> float:
    ends = nan if until is None else milliseconds(until)
    return float(time_expressions.fits([WEEK], [milliseconds(since)], [ends])[0])


def test_each_suits_as_well_as_it_does_by_itself():
    chance, hour = random.Random(5), timedelta(hours=1)
    periods = [Period(at, at + chance.choice((1, 30, 9_000)) * hour, "") for at in (NOW, NOW - 900 * hour)]
    since = [NOW + chance.randint(-20_000, 20_000) * hour for _ in range(300)]
    until = [chance.choice((None, at, at + chance.randint(0, 5_000) * hour)) for at in since]

    columns = [milliseconds(at) for at in since], [nan if at is None else milliseconds(at) for at in until]

    alone = [one_by_one.fit(periods, *times) for times in zip(since, until, strict=True)]
    assert time_expressions.fits(periods, *columns).tolist() == pytest.approx(alone, rel=1e-12, abs=1e-300)


def test_what_is_from_then_suits_wholly_and_the_rest_the_less_the_further_it_is():
    fits = [suits(NOW + timedelta(days=days)) for days in (3, 8, 20, 100)]

    assert fits[0] == 1.0
    assert fits == sorted(fits, reverse=True)
    assert 0 <= fits[-1] < 0.01


def test_what_was_told_afterwards_suits_better_than_what_was_told_before():
    assert suits(WEEK.end + timedelta(days=3)) > suits(WEEK.start - timedelta(days=3))


def test_what_was_true_all_the_time_suits():
    assert suits(NOW - timedelta(days=400), NOW + timedelta(days=400)) == 1.0


# --- before and after an event ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "words", "before"),
    [
        ("Where did I live before the move?", "the move", True),
        ("What did Melanie realize after the charity race?", "the charity race", False),
        ("Wo wohnte ich vor dem Umzug?", "dem Umzug", True),
        ("Qu'ai-je fait après le mariage ?", "le mariage", False),
        ("¿Dónde vivía antes de la mudanza?", "la mudanza", True),
    ],
)
def test_an_event_that_the_question_names_is_seen(question, words, before):
    assert time_expressions.event_of(question) == (words, before)


@pytest.mark.parametrize("question", ["before", "", "What came before?", "after 5 pm", "since 2020"])
def test_no_event_is_seen_where_none_is_named(question):
    assert time_expressions.event_of(question) is None
