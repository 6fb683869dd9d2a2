"""What the first score says: an answer, perhaps one, or nothing that is about the question."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scrubjay.engine.search import verdict
from scrubjay.engine.search.ranking import Candidate
from scrubjay.engine.search.verdict import FIRST, SIGN, STRONG, WEAK, Heard, Words, labels, rare_words
from scrubjay.values.memory import Query, Verdict, Weights
from scrubjay.values.pronouns import WORD, words_of
from tests.engine.columns import Glimpse, likelihood

NOW = datetime(2026, 11, 15, tzinfo=UTC)
SURE = verdict.likelihood([Heard(None, (), [0.6])], 0.5, Words())


def sure(question, *openings):
    """How likely the first of memories that begin so answers, all equally near."""
    found = [Candidate(str(number), 0.8, 0.0, 0.6, 0.5) for number in range(len(openings))]
    glimpses = {str(number): Glimpse(NOW, None, None, None, len(text), text) for number, text in enumerate(openings)}
    return likelihood(found, Query(text=question), [Heard(None, (), [0.6])], Words(), glimpses)


def test_nothing_found_is_none():
    assert likelihood([], Query(text="Where does Anna live?"), [], Words(), {}) == 0
    assert verdict.verdict(0) is Verdict.NONE


def test_what_was_not_looked_at_is_not_doubted():
    found = [Candidate("it", 0.8, 0.0, 0.6, 0.5)]

    assert likelihood(found, Query(text="Where does Anna live?"), [Heard(None, (), [0.6])], Words(), {}) == SURE


@pytest.mark.parametrize("opening", ["", "?", "   ", "🙂", "::", "Anna"])
def test_any_memory_can_be_looked_at(opening):
    assert 0 < sure("Where does Anna live?", opening) <= SURE


@pytest.mark.parametrize(
    ("question", "opening"),
    [
        ("Where does Anna live?", "Anna lives in Rome"),
        ("Where does Anna live?", "Anna: I live in Rome"),
        ("Where does Anna live?", "User's sister Anna lives in Rome"),
        ("Where do I live?", "User lives in Rome"),
        ("What is due on Friday?", "The report is due on Friday"),  # a day is nobody
        ("Where do you live?", "You live in Rome"),
    ],
)
def test_what_looks_like_an_answer_is_not_doubted(question, opening):
    assert sure(question, opening) == SURE


@pytest.mark.parametrize(
    "opening",
    [
        "Anna: Where do you live?",  # asks, and is told to somebody
        "Anna: Your house in Rome is great",
        "Tom: I live in Rome",  # is another
        "Tom lives in Rome",
    ],
)
def test_what_asks_or_tells_of_another_is_doubted(opening):
    assert sure("Where does Anna live?", opening) < SURE


def test_signs_add_up():
    assert sure("Where does Anna live?", "Tom: I live in Rome") == pytest.approx(SURE * (1 - SIGN))
    assert sure("Where does Anna live?", "Tom: Does she live in Rome?") == pytest.approx(SURE * (1 - 2 * SIGN))


def test_one_that_looks_like_an_answer_speaks_for_the_list():
    assert sure("Where does Anna live?", "Tom: I live in Rome", "Anna: I live in Oslo") == SURE


def test_an_answer_far_behind_speaks_for_nothing():
    others = ["Tom: I live in Rome"] * FIRST

    assert sure("Where does Anna live?", *others, "Anna: I live in Oslo") < SURE


def test_shown_scores_follow_the_order(jay):
    for text in ("Tom: I live in Rome by the sea", "Tom: the sea in Rome is warm", "Tom: Do you like the sea?"):
        jay.store(text)

    hits = jay.search("Which sea does Anna live by in Rome?")

    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert hits.verdict is hits[0].verdict


def test_a_weighted_sum_is_not_doubted(jay):
    jay.store("Tom: I live in Rome by the sea")
    question = "Which sea does Anna live by in Rome?"

    [weighed] = jay.search(Query(text=question, weights=Weights(similarity=1, recency=0, importance=0, access=0)))

    assert weighed.factors.combined == weighed.factors.similarity == pytest.approx(weighed.score, abs=1e-4)


# --- strong, weak, none ----------------------------------------------------------------------------------------------


def test_the_lines_are_the_documented_ones():
    assert [verdict.verdict(score) for score in (0.0, WEAK, STRONG)] == [Verdict.NONE, Verdict.WEAK, Verdict.STRONG]


def test_a_question_about_something_else_fills_the_list_and_answers_nothing(real_jay):
    real_jay.store("Maria plays the cello on Sundays")
    real_jay.store("queue: Use RabbitMQ")

    hits = real_jay.search("How long is the tunnel under the fjord?")

    assert len(hits) == 2
    assert hits.verdict is Verdict.NONE
    assert hits.answers == ()


def test_a_paraphrase_without_a_common_word_is_found(real_jay):
    for text in ("The office plants are watered on Fridays", "queue: Use RabbitMQ", "Invoices go out on the 3rd"):
        real_jay.store(text)

    hits = real_jay.search("message broker choice")

    assert hits[0].memory.content == "queue: Use RabbitMQ"
    assert hits.verdict is not Verdict.NONE


def test_what_somebody_does_comes_before_what_they_play(real_jay):
    real_jay.store("Maria plays the cello on Sundays", created_at=NOW - timedelta(days=400))
    job = real_jay.store("Maria is now a software developer at Acme", created_at=NOW - timedelta(days=300)).memory

    assert real_jay.search("What is Maria's job?")[0].memory.id == job.id


def test_without_a_model_words_cannot_say_that_there_is_nothing(jay):
    jay.store("The harbour master has the keys")

    assert jay.search("who has keys", words_only=True).verdict is not Verdict.NONE
    assert jay.search("zebra", words_only=True).verdict is Verdict.NONE


def test_a_text_in_another_language_is_not_called_nothing_by_a_model_that_cannot_read_it():
    found = [Candidate("it", 0.01, 0.0, 0.3, 0.0)]
    glimpses = {"it": Glimpse(NOW, None, None, None, 20, "電子カルテは「アニカル」を使っている。")}

    assert likelihood(found, Query(text="patient records"), [Heard(None, (), [0.3])], Words(), glimpses) >= WEAK


@pytest.mark.parametrize(
    ("question", "rare"),
    [
        ("Where does Anna live?", ["Anna"]),
        ("Where do I live?", []),
        ("Opening hours on Monday", []),
        ("OPS-7731", ["OPS-7731", "OPS", "7731"]),
        ("what does parseHttpUrl do", ["parseHttpUrl"]),
        ("Anna", []),  # a capital at the beginning says nothing
    ],
)
def test_names_numbers_and_identifiers_are_rare(question, rare):
    assert rare_words(question)[: len(rare)] == rare
    assert bool(rare_words(question)) == bool(rare)


def test_a_question_about_another_one_is_never_strong(real_jay):
    real_jay.store("Anna Weiss owns the payment service")
    real_jay.store("Tom Becker owns the checkout service")

    assert real_jay.search("Who owns the payment service?").verdict is Verdict.STRONG
    assert real_jay.search("Who owns the search service?").verdict is not Verdict.STRONG


@pytest.mark.parametrize(
    ("question", "text", "another"),
    [
        ("Who owns the search service?", "Anna Weiss owns the payment service", True),
        ("Who owns the payment service?", "Anna Weiss owns the payment service", False),
        ("Who owns the payment services?", "The payment service is Anna's", False),
        ("Who looks after payments?", "Anna Weiss owns the payment service", False),
        ("dermatology referral contact", "Cardiology referrals go to Dr Hemsworth", True),
    ],
)
def test_what_is_about_another_one_is_told_by_the_word_before(question, text, another):
    assert verdict.of_another_one(question, text) is another


@pytest.mark.parametrize(
    ("question", "text", "another"),
    [
        ("Is invoice 1001 paid?", "Invoice 1002 is not paid", True),
        ("Is invoice 1001 paid?", "Invoices 1001 and 1002 are paid", False),
        ("When does the backup of db1 run?", "The nightly backup of db2 runs at 04:00", True),
        ("Which port does db1 use?", "db1 listens on port 5432", False),
        ("When does sprint #41 end?", "Sprint 42 ends on Tuesday", True),
    ],
)
def test_what_is_about_another_number_is_told_by_what_is_numbered(question, text, another):
    assert verdict.of_another_number(question, text) is another


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("How many people fit into Room A?", {("room", "A")}),
        ("Plan B: we take the train.", {("plan", "B")}),
        ("Did Vitamin C help, or hepatitis B?", {("vitam", "C"), ("hepat", "B")}),
        ("A room for twelve", set()),
        ("when I am away", set()),
        ("He went home. A man came", set()),
        ("x" * 20_000 + " A" * 20_000, {("xxxxx", "A")}),
    ],
)
def test_one_letter_tells_things_of_a_kind_apart(text, found):
    assert labels(text) == found


def test_words_are_the_same_in_a_plain_text_and_beside_other_letters() -> None:
    """They are told apart in two ways."""
    plain = "It's 5 o'clock: R2-D2\tand_3CPO\x1fsay \\hello\\"

    assert words_of(plain) == words_of(f"{plain} é")[:-1]
    assert list(words_of(plain)) == ["it", "s", "o", "clock", "r", "d", "and", "cpo", "say", "hello"]


def test_every_sign_but_a_letter_stands_between_words():
    text = "".join(f"a{chr(sign)}B" for sign in range(128))

    assert list(words_of(text)) == WORD.findall(text.lower())
