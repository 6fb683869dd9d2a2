"""Which time does a question speak of?

"last Tuesday", "in May 2023", "vor zwei Wochen", "l'été dernier", "el 3 de mayo": stretches of time, seen from the
moment of the question in its own time zone. What is found is only a preference (`fits`): a wrong guess moves a few
places and hides nothing.

A question becomes a string with one letter per word, by the tables of `TONGUES`, and small patterns over those letters
are the whole grammar:

    what did maria do   the week before 3 May 2023        N number in digits   n number as a word   Y year
    .    .   .     .    .   U    B      N M   Y           M month  W weekday   S season   U unit    D named day
                                                          L last   T this   I in, on …   A ago   P ago, in front
                                                          O of, the   B before   F after   . anything else

Why no library does this: docs/decisions/supersession.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import NamedTuple

from scrubjay.lazy import numpy as np
from scrubjay.text.tokens import WORD, words_of
from scrubjay.values.frozen import dataclass
from scrubjay.values.search import Column, Period
from scrubjay.values.times import EPOCH

LONGEST = 2_000  # characters of a question that are looked at
DAY = timedelta(days=1)
MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tongue:
    """How a language speaks of time: words of one meaning stand together, words of several with underscores."""

    months: str
    weekdays: str  # Monday first
    seasons: str  # spring first; those of the northern half of the earth
    days: str
    weeks: str
    weekends: str
    month_units: str
    years: str
    numbers: str  # one, two …
    named: str  # today, yesterday, the day before yesterday
    last: str  # last week, la semaine dernière
    this: str
    ago: str = ""  # two weeks ago
    ago_in_front: str = ""  # vor zwei Wochen
    within: str  # what stands before a month, a weekday or a year
    of: str  # what may stand between the parts of a date
    before: str
    after: str
    month_first: bool = False  # 5/7/2023 is in May


# Several words of one meaning are joined by a slash.
TONGUES: Mapping[str, Tongue] = {
    "en": Tongue(
        months="january/jan february/feb march april/apr may june july august/aug september/sept october/oct "
        "november/nov december/dec",
        weekdays="monday tuesday wednesday thursday friday saturday sunday",
        seasons="spring/springtime summer/summertime autumn/fall winter/wintertime",
        days="day days", weeks="week weeks", weekends="weekend weekends", month_units="month months",
        years="year years",
        numbers="a/an/one two/couple three/few four/several five six seven eight nine ten eleven twelve",
        named="today/tonight/this_morning/this_evening yesterday/last_night day_before_yesterday",
        last="last previous past", this="this current", ago="ago back earlier",
        within="in on by since during until till around through throughout early late mid",
        of="of the , in on couple_of",
        before="before prior_to", after="after following", month_first=True,
    ),
    "de": Tongue(
        months="januar/jänner februar märz april mai juni juli august september oktober november dezember",
        weekdays="montag dienstag mittwoch donnerstag freitag samstag/sonnabend sonntag",
        seasons="frühling/frühjahr sommer herbst winter",
        days="tag tage tagen", weeks="woche wochen", weekends="wochenende wochenenden",
        month_units="monat monate monaten", years="jahr jahre jahren jahres",
        numbers="ein/eine/einem/einer/einen zwei drei/paar vier/einigen fünf sechs sieben acht neun zehn elf zwölf",
        named="heute gestern vorgestern",
        last="letzte letzten letzter letztes letztem vergangene vergangenen vergangenes vorige vorigen voriges",
        this="diese diesen dieser dieses diesem", ago_in_front="vor",
        within="im in am vom seit bis zum ab anfang mitte ende", of="des den dem der , im",
        before="bevor", after="nach",
    ),
    "fr": Tongue(
        months="janvier février/fevrier mars avril mai juin juillet août/aout septembre octobre novembre "
        "décembre/decembre",
        weekdays="lundi mardi mercredi jeudi vendredi samedi dimanche",
        seasons="printemps été automne hiver",
        days="jour jours", weeks="semaine semaines", weekends="week-end week-ends weekend", month_units="mois",
        years="an ans année années",
        numbers="un/une deux trois/quelques quatre/plusieurs cinq six sept huit neuf dix onze douze",
        named="aujourd'hui/ce_matin/ce_soir hier avant-hier",
        last="dernier dernière derniers dernières derniere passé passée", this="ce cet cette ces",
        ago_in_front="il_y_a", within="en au le du depuis mois_de début fin mi dès", of="de du les des , l",
        before="avant", after="après",
    ),
    "es": Tongue(
        months="enero febrero marzo abril mayo junio julio agosto septiembre/setiembre octubre noviembre diciembre",
        weekdays="lunes martes miércoles/miercoles jueves viernes sábado/sabado domingo",
        seasons="primavera verano otoño invierno",
        days="día días dia dias", weeks="semana semanas", weekends="fin_de_semana fines_de_semana",
        month_units="mes meses", years="año años",
        numbers="un/una dos tres/unos/unas cuatro/varios/varias cinco seis siete ocho nueve diez once doce",
        named="hoy/esta_mañana/esta_noche ayer/anoche anteayer/antes_de_ayer",
        last="pasado pasada pasados pasadas último última últimos últimas ultimo ultima ultimos ultimas",
        this="este esta estos estas", ago_in_front="hace",
        within="en el desde hasta durante", of="de del la los las ,",
        before="antes_de antes_del", after="después_de después_del despues_de",
    ),
}  # fmt: skip


def fits(periods: Sequence[Period], since: Column, until: Column) -> Column:
    """How well each of some things, from one moment or true all the time until another, suits the best of the periods.
    Moments are milliseconds since 1970; `until` is not a number where something has no end."""
    begins, ends = 1_000 * np.asarray(since, np.float64), 1_000 * np.asarray(until, np.float64)
    best = np.zeros(len(begins))
    for period in periods:
        start, end = _microseconds(period.start), _microseconds(period.end)
        throughout = (begins < end) & (start <= ends)  # no time compares with what is not a number
        near = np.maximum(nearness(period, begins), np.where(np.isnan(ends), 0.0, nearness(period, ends)))
        best = np.maximum(best, np.where(throughout, 1.0, near))
    return best


def nearness(period: Period, moments: Column) -> Column:
    """1 within the period, a half once a *fade* away from it, and so on. Moments are microseconds since 1970.

    People tell things after they happened, so what came later fades more slowly than what came before.
    """
    start, end, length = _microseconds(period.start), _microseconds(period.end), period.end - period.start
    before = np.maximum(start - moments, 0.0) / ((DAY + length / 8) // MICROSECOND)
    after = np.maximum(moments - end, 0.0) / ((4 * DAY + length / 4) // MICROSECOND)
    return 0.5 ** (before + after)  # at most one is above zero


def _microseconds(at: datetime) -> int:
    """Since 1970."""
    return (at - EPOCH) // MICROSECOND


def periods(question: str, now: datetime) -> tuple[Period, ...]:
    """The times that a question names, in the first tongue that knows any; none for most questions.

    A date that is written out counts alone: in "what did Ann do last weekend, asked on 3 May" the rest is relative to
    a day that is not known.
    """
    text = question[:LONGEST]
    if _cues().isdisjoint(words_of(text)) and not CUES_IN_FIGURES.search(text):
        return ()
    text = text.lower()
    for name in TONGUES:
        sentence = _Sentence(name, text, now)
        found = list(sentence.dates()) or list(sentence.relative())
        if found:
            return tuple(dict.fromkeys(found))
    return ()


class NamedEvent(NamedTuple):
    """What happened before or after the time that a question is about."""

    words: str
    before: bool


def event_of(question: str) -> NamedEvent | None:
    """What the question asks about the time before or after of: "before the move", "seit meinem Umzug"."""
    text = question[:LONGEST]
    found = None if RELATIONS.isdisjoint(words_of(text)) else EVENT.search(text)
    return None if found is None else NamedEvent(found["event"].strip(), found["relation"].lower() in BEFORE)


def around(moment: datetime, event: NamedEvent) -> Period:
    """The time before an event that was at this moment, or the month from it on."""
    if event.before:
        return Period(moment - LONG_AGO, moment, f"before {event.words}")
    return Period(moment, moment + 30 * DAY, f"after {event.words}")


LONG_AGO = timedelta(days=3 * 365)
BEFORE = frozenset(("before", "vor", "bevor", "avant", "antes"))
RELATION = "before|after|since|vor|nach|seit|avant|après|depuis|antes|después|desde"
EVENT = re.compile(
    rf"\b(?P<relation>{RELATION})\s+"
    r"(?:de\s+|que\s+|del\s+)?"
    r"(?P<event>(?:the|my|our|his|her|their|i|we|dem|der|meinem|meiner|unserem|unserer|le|la|les|mon|ma|notre|el|los|mi"
    r"|nuestr[oa])\s[^?.,;!]{3,60}|l['’][^?.,;!]{3,60})",
    re.IGNORECASE,
)
RELATIONS = frozenset(RELATION.split("|"))  # without one of these it is not looked for


# --- words to letters ------------------------------------------------------------------------------------------------

YEARS = range(1900, 2100)
MONTHS_OF_SEASONS = (3, 6, 9, 12)  # the first month of each
CUES_IN_FIGURES = re.compile(r"\b(?:19|20)\d\d\b|\b\d{1,2}[./]\d{1,2}[./]\d")
TOKEN = re.compile(
    r"(?P<iso>\b(?:19|20)\d\d-\d\d?(?:-\d\d?)?(?![\d-]))|(?P<figures>\b\d{1,2}[./]\d{1,2}[./](?:\d{4}|\d\d)\b)"
    r"|(?P<number>\b\d{1,4})(?:st|nd|rd|th|er|º|\.)?(?![\w:%])|(?P<word>[^\W\d]+(?:['’-][^\W\d]+)*)|(?P<comma>,)|\S"
)
DATE = r"(?:NO*MO*Y?|MO*NO*Y|MO*N|X)"
# Patterns over letters, the most telling first; each is read by the method of its name.
DATES = (
    ("anchored", rf"(?:[Nn]O?)?[UW][BPF]O*(?:{DATE}|MO*Y)"),
    ("day", DATE),
    ("month", r"(?:[ILTBF]O*)?MO*Y|[ILTBF]O*M"),
    ("season", r"(?:[ILTO]O*)?SO*Y"),
    ("year", r"[IFB]O*U?Y"),
)
RELATIVE = (
    ("ago", r"[Nn]O?UA|PO*[Nn]U|UA"),
    ("past", r"L[Nn]O?U|[Nn]LU|LNU"),
    ("season", r"I?O*SL|[LTI]O*S"),
    ("weekday", r"[LTI]O*W|WL"),
    ("unit", r"[LT]O*U|UL"),
    ("named", r"D"),
)
Role = tuple[str, int]  # letter and value


@cache
def _roles(name: str) -> dict[str, Role]:
    """What each word of a tongue says."""
    tongue = TONGUES[name]
    roles: dict[str, Role] = {}

    def several(letter: str, words: str, values: Callable[[int], int] = lambda place: place) -> None:
        for place, same in enumerate(words.split()):
            roles.update((word, (letter, values(place))) for word in same.split("/"))

    several("n", tongue.numbers, lambda place: place + 1)
    for letter, words in (("O", tongue.of), ("I", tongue.within), ("T", tongue.this), ("L", tongue.last)):
        several(letter, words)
    several("A", tongue.ago)
    several("P", tongue.ago_in_front)
    several("B", tongue.before)
    several("F", tongue.after)
    several("D", tongue.named)
    units = (tongue.days, tongue.weeks, tongue.weekends, tongue.month_units, tongue.years)
    for unit, words in enumerate(units):
        several("U", words, lambda _, unit=unit: unit)  # type: ignore[misc]
    several("S", tongue.seasons)
    several("W", tongue.weekdays)
    several("M", tongue.months, lambda place: place + 1)
    return roles


@cache
def _phrases(name: str) -> tuple[tuple[str, str], ...]:
    """Expressions of several words, and how they are made into one."""
    joined = [word for word in _roles(name) if "_" in word]
    return tuple((word.replace("_", " "), word) for word in sorted(joined, key=len, reverse=True))


@cache
def _cues() -> frozenset[str]:
    """Without one of these words nothing speaks of a time, in any tongue."""
    return frozenset(
        part
        for name in TONGUES
        for word, (letter, _) in _roles(name).items()
        if letter in "MWSUD"
        for part in WORD.findall(word)
        if len(part) > 2
    )


DAYS, WEEKS, WEEKENDS, MONTHS, YEARS_UNIT = range(5)


class _Sentence:
    """A question in one tongue, as letters and their values."""

    def __init__(self, name: str, text: str, now: datetime) -> None:
        self._tongue, self._now = TONGUES[name], now
        self._today = now.replace(hour=0, minute=0, second=0, microsecond=0)
        for phrase, joined in _phrases(name):
            text = text.replace(phrase, joined)
        self._text = text
        self._tokens = list(TOKEN.finditer(text))
        roles = _roles(name)
        self._roles = [self._role(token, roles) for token in self._tokens]
        self._letters = "".join(letter for letter, _ in self._roles)

    def _role(self, token: re.Match[str], roles: Mapping[str, Role]) -> Role:
        if token["word"]:
            word = token["word"].replace("’", "'")
            return roles.get(word) or roles.get(word.rpartition("'")[2]) or (".", 0)  # l'été
        if token["number"]:
            value = int(token["number"])
            return ("Y", value) if value in YEARS and len(token["number"]) == 4 else ("N", value)
        if token["iso"] or token["figures"]:
            return "X", 0
        return ("O", 0) if token["comma"] else (".", 0)

    def dates(self) -> Iterator[Period]:
        return self._read(DATES)

    def relative(self) -> Iterator[Period]:
        return self._read(RELATIVE)

    def _read(self, patterns: Sequence[tuple[str, str]]) -> Iterator[Period]:
        letters = self._letters
        for kind, pattern in patterns:
            for match in re.finditer(pattern, letters):
                first, last = match.span()
                try:
                    stretch = getattr(self, f"_{kind}")(first, last)
                except (ValueError, OverflowError):
                    continue  # the 40th of May, or a time beyond all calendars
                if stretch is not None:
                    words = self._text[self._tokens[first].start() : self._tokens[last - 1].end()].replace("_", " ")
                    yield Period(stretch[0].astimezone(UTC), stretch[1].astimezone(UTC), words)
                # What has been read is not read again as something less.
                letters = letters[:first] + "." * (last - first) + letters[last:]

    def _value(self, letters: str, first: int, last: int) -> int | None:
        return next((value for letter, value in self._roles[first:last] if letter in letters), None)

    # --- dates -------------------------------------------------------------------------------------------------------

    def _day(self, first: int, last: int) -> tuple[datetime, datetime]:
        figures = next((token for token in self._tokens[first:last] if token["iso"] or token["figures"]), None)
        if figures is not None:
            return self._in_figures(figures)
        day, month, year = (self._value(letter, first, last) for letter in "NMY")
        assert month is not None
        if day is None or not 1 <= day <= 31:
            return self._whole_month(month, year)
        try:
            start = self._on(month, year, day)
        except ValueError:
            return self._whole_month(month, year)  # there is no 31 June, but there is a June
        return start, start + DAY

    def _in_figures(self, token: re.Match[str]) -> tuple[datetime, datetime]:
        if token["iso"]:
            year, month, *days = map(int, token["iso"].split("-"))
        else:
            one, other, year = map(int, re.split("[./]", token["figures"]))
            month, *days = (one, other) if self._tongue.month_first and "/" in token["figures"] else (other, one)
            if month > 12:
                month, days = days[0], [month]
            year += 2000 if year < 100 else 0
        if not days:
            return self._whole_month(month, year)
        start = self._today.replace(year=year, month=month, day=days[0])
        return start, start + DAY

    def _month(self, first: int, last: int) -> tuple[datetime, datetime]:
        month = self._value("M", first, last)
        assert month is not None
        return self._whole_month(month, self._value("Y", first, last))

    def _whole_month(self, month: int, year: int | None) -> tuple[datetime, datetime]:
        start = self._on(month, year, 1)
        return start, months_later(start, 1)

    def _on(self, month: int, year: int | None, day: int) -> datetime:
        """A day; without a year the last one that has begun."""
        if year is not None:
            return self._today.replace(year=year, month=month, day=day)
        found = self._today.replace(month=month, day=1)
        year = self._now.year if found <= self._now else self._now.year - 1
        return self._today.replace(year=year, month=month, day=day)

    def _year(self, first: int, last: int) -> tuple[datetime, datetime]:
        year = self._value("Y", first, last)
        assert year is not None
        start = self._today.replace(year=year, month=1, day=1)
        return start, months_later(start, 12)

    def _anchored(self, first: int, last: int) -> tuple[datetime, datetime]:
        """The week before 3 May, if the text was written on that day or before it."""
        relation = next(place for place in range(first, last) if self._roles[place][0] in "BPF")
        start, end = (self._day if "N" in self._letters[relation:last] or "X" in self._letters[relation:last]
                      else self._month)(relation, last)  # fmt: skip
        unit, number = self._value("U", first, relation), self._value("Nn", first, relation) or 1
        length = 7 * DAY if unit is None else lasting(unit, number)
        return (start, end + length) if self._roles[relation][0] == "F" else (start - length, end)

    # --- from today --------------------------------------------------------------------------------------------------

    def _ago(self, first: int, last: int) -> tuple[datetime, datetime] | None:
        unit, number = self._value("U", first, last), self._value("Nn", first, last)
        if unit is None or number is None:
            return None  # "how many days ago": that is what is asked
        middle = self._today - lasting(unit, number)
        around = lasting(unit, 1) / 2 if unit != DAYS else timedelta()
        return middle - around, middle + DAY + around

    def _past(self, first: int, last: int) -> tuple[datetime, datetime] | None:
        unit, number = self._value("U", first, last), self._value("Nn", first, last)
        assert unit is not None
        assert number is not None
        return self._today - lasting(unit, number), self._today + DAY

    def _unit(self, first: int, last: int) -> tuple[datetime, datetime]:
        unit, back = self._value("U", first, last), self._is_last(first, last)
        if unit == WEEKENDS:
            saturday = self._today - timedelta(days=(self._today.weekday() - 5) % 7)
            start = saturday if back or self._today.weekday() >= 5 else saturday + timedelta(days=7)
            start -= timedelta(days=7) if back and self._today.weekday() >= 5 else timedelta()
            return start, start + 2 * DAY
        if unit == MONTHS:
            start = months_later(self._today.replace(day=1), -back)
            return start, months_later(start, 1)
        if unit == YEARS_UNIT:
            start = self._today.replace(year=self._today.year - back, month=1, day=1)
            return start, months_later(start, 12)
        length = DAY if unit == DAYS else 7 * DAY
        start = self._today if unit == DAYS else self._today - timedelta(days=self._today.weekday())
        return start - back * length, start - back * length + length

    def _weekday(self, first: int, last: int) -> tuple[datetime, datetime]:
        """The last one that has come; "last Friday" on a Friday is a week ago."""
        weekday = self._value("W", first, last)
        assert weekday is not None
        days = (self._today.weekday() - weekday) % 7
        start = self._today - timedelta(days=days or (7 if self._is_last(first, last) else 0))
        return start, start + DAY

    def _season(self, first: int, last: int) -> tuple[datetime, datetime]:
        season, year = self._value("S", first, last), self._value("Y", first, last)
        assert season is not None
        start = self._on(MONTHS_OF_SEASONS[season], year, 1)
        end = months_later(start, 3)
        if year is None and self._is_last(first, last) and end > self._now:
            start, end = months_later(start, -12), months_later(end, -12)
        return start, end

    def _named(self, first: int, last: int) -> tuple[datetime, datetime]:
        start = self._today - timedelta(days=self._value("D", first, last) or 0)
        return start, start + DAY

    def _is_last(self, first: int, last: int) -> bool:
        return "L" in self._letters[first:last]


def lasting(unit: int, number: int) -> timedelta:
    return timedelta(days=number * (1, 7, 7, 30.4, 365.25)[unit])


def months_later(first_of_month: datetime, months: int) -> datetime:
    years, month = divmod(first_of_month.month - 1 + months, 12)
    return first_of_month.replace(year=first_of_month.year + years, month=month + 1)
