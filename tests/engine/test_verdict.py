"""What the first score says: an answer, perhaps one, or nothing that is about the question."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scrubjay.engine.search import ranking
from scrubjay.engine.search.ranking import STRONG, WEAK, Candidate
from scrubjay.text.names import find_rare_words
from scrubjay.text.tokens import WORD, words_of
from scrubjay.values.search import Query, Verdict, Weights
from tests.engine.columns import rank_candidates

NOW = datetime(2026, 11, 15, tzinfo=UTC)


def hits(*scores, similarities, words):
    """Found with these scores."""
    columns = zip(scores, words, similarities, strict=True)
    return rank_candidates([Candidate(str(score), score, word, near, near) for score, word, near in columns])


def chances(*similarities, reworded=False):
    """Of hits that only differ in how near they are, how likely each answers."""
    scores = [ranking.MEANING * one for one in similarities]
    found = hits(*scores, similarities=similarities, words=[0.0] * len(scores))
    return ranking.chances_of(found, reworded=reworded).tolist()


def test_each_hit_has_a_chance_of_its_own():
    near, far, further = chances(0.9, 0.3, 0.2)

    assert near > STRONG > far > further > 0


def test_a_hit_among_others_as_near_is_less_likely_the_answer():
    [lone] = chances(0.7)

    assert lone > chances(0.7, 0.7, 0.7, 0.7, 0.7, 0.7)[0]


@pytest.mark.parametrize("others", [0, 1, 4, 5, 6, 50])
def test_a_hit_is_compared_with_its_best_rivals_however_many_there_are(others):
    above = ranking.facts_about(
        hits(0.8, *[0.25] * others, similarities=[0.5] * (others + 1), words=[0.0] * (others + 1))
    )["above"]

    assert above.tolist() == pytest.approx([0.55, *[-0.11] * others])


def test_what_holds_half_the_words_of_the_question_is_never_called_none():
    worded = ranking.chances_of(hits(0.2, 0.2, similarities=[0.0, 0.0], words=[0.5, 0.4]), reworded=False)

    assert worded[0] >= WEAK > worded[1]


def test_a_memory_without_a_vector_is_never_called_nothing():
    """Only its words are known, and they cannot say that it does not answer."""
    found = rank_candidates([Candidate("compared", 0.5, 0.0, 0.6, 0.7), Candidate("waiting", 0.01, 0.01, None, 0.0)])

    assert ranking.chances_of(found, reworded=False)[1] >= WEAK


def test_the_verdict_is_that_of_the_likeliest_hit(real_jay):
    real_jay.store("Maria plays the cello on Sundays")
    real_jay.store("queue: Use RabbitMQ")

    hits = real_jay.search("Which instrument does Maria play?")

    assert hits.verdict is hits[0].verdict is Verdict.STRONG
    assert hits[1].verdict is Verdict.NONE


def test_a_newer_memory_of_an_open_pair_changes_places_and_no_scores(real_jay):
    """Each has the chance that it would have alone among the others."""
    old = real_jay.store("User lives in Seattle").memory
    new = real_jay.store("User moved to Austin").memory
    assert [(pair.old.id, pair.new.id) for pair in real_jay.conflicts.list()] == [(old.id, new.id)]
    question = "Which place does the user live in?"

    paired = {hit.memory.id: hit.score for hit in real_jay.search(question)}
    real_jay.conflicts.settle(old=old.id, new=new.id, keep=True)

    assert {hit.memory.id: hit.score for hit in real_jay.search(question)} == pytest.approx(paired)
    assert next(iter(paired)) == new.id


def test_a_weighted_sum_keeps_its_own_score_and_the_hits_label(jay):
    jay.store("Tom: I live in Rome by the sea")
    question = "Which sea does Anna live by in Rome?"

    [weighed] = jay.search(Query(text=question, weights=Weights(similarity=1, recency=0, importance=0, access=0)))
    [plain] = jay.search(question)

    assert weighed.factors.combined == weighed.factors.similarity == pytest.approx(weighed.score, abs=1e-4)
    assert weighed.verdict is plain.verdict


# --- strong, weak, none ----------------------------------------------------------------------------------------------


def test_the_lines_are_the_documented_ones():
    assert [ranking.label_of(score) for score in (0.0, WEAK, STRONG)] == [Verdict.NONE, Verdict.WEAK, Verdict.STRONG]


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

    assert real_jay.search("message broker choice")[0].memory.content == "queue: Use RabbitMQ"
    assert real_jay.search("message broker choice", also=["queue", "Kafka or RabbitMQ"]).verdict is not Verdict.NONE
    assert real_jay.search("gardening").verdict is not Verdict.NONE


def test_what_somebody_does_comes_before_what_they_play(real_jay):
    real_jay.store("Maria plays the cello on Sundays", created_at=NOW - timedelta(days=400))
    job = real_jay.store("Maria is now a software developer at Acme", created_at=NOW - timedelta(days=300)).memory

    assert real_jay.search("What is Maria's job?")[0].memory.id == job.id


def test_without_a_model_words_cannot_say_that_there_is_nothing(jay):
    assert jay.search("Where does Anna live?").verdict is Verdict.NONE, "nothing was found"
    jay.store("The harbour master has the keys")

    assert jay.search("who has keys", words_only=True).verdict is not Verdict.NONE
    assert jay.search("zebra", words_only=True).verdict is Verdict.NONE


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
    assert find_rare_words(question)[: len(rare)] == rare
    assert bool(find_rare_words(question)) == bool(rare)


def test_a_question_about_another_one_is_never_strong(real_jay):
    real_jay.store("Anna Weiss owns the payment service")
    real_jay.store("Tom Becker owns the checkout service")

    assert real_jay.search("Who owns the payment service?").verdict is Verdict.STRONG
    assert real_jay.search("Who owns the search service?").verdict is not Verdict.STRONG


def test_what_somebody_else_said_does_not_answer_what_a_speaker_was_asked_for(real_jay):
    for turn in ("Ben: I ran the charity race on Sunday", "Anna: That sounds great, well done!"):
        real_jay.store(turn, conversation_id="talk")

    asked_of_ben = real_jay.search("Which race did Ben run?")
    asked_of_anna = real_jay.search("Which race did Anna run?")

    assert asked_of_ben.verdict is Verdict.STRONG
    assert asked_of_anna.verdict is not Verdict.STRONG


def test_words_are_the_same_in_a_plain_text_and_beside_other_letters() -> None:
    """They are told apart in two ways."""
    plain = "It's 5 o'clock: R2-D2\tand_3CPO\x1fsay \\hello\\"

    assert words_of(plain) == words_of(f"{plain} é")[:-1]
    assert list(words_of(plain)) == ["it", "s", "o", "clock", "r", "d", "and", "cpo", "say", "hello"]


def test_every_sign_but_a_letter_stands_between_words():
    text = "".join(f"a{chr(sign)}B" for sign in range(128))

    assert list(words_of(text)) == WORD.findall(text.lower())
