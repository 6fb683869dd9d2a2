"""Secrets and orders: found where they are, not where they only seem to be, and treated as the policy says."""

from __future__ import annotations

import re

import pytest

from scrubjay.engine import trust
from scrubjay.engine.trust import reads_like_instructions
from scrubjay.errors import InvalidInput, Unprocessable
from scrubjay.settings import load
from scrubjay.text import secret_shapes
from scrubjay.text.secrets import mask_secrets, secrets_in
from scrubjay.values.callers import Caller, Role
from scrubjay.values.search import Filter
from tests.engine import held_out_texts
from tests.engine.matching import texts_matching
from tests.engine.trust_texts import HARMLESS, LOOK_ALIKES, POISON, SECRETS

TOKEN = SECRETS["github"]
ORDER = POISON[0]


@pytest.mark.parametrize(
    "name", ["Password", "PASSWD", "passWORD", "API_KEY", "Contraseña", "mot de passe", "KENNWORT", "passphra\u017fe"]
)
def test_a_secret_is_found_by_its_name_in_any_case(name):
    kind = secret_shapes.TOKEN if name == "API_KEY" else secret_shapes.PASSWORD

    assert [found.what for found in secrets_in(f"They class it so. {name}: Xy7!kPq92z")] == [kind]


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_found_and_masked(name):
    text = f"Note of Tuesday.\n{SECRETS[name]}\nThat is all."

    assert list(secrets_in(text))
    assert not list(secrets_in(mask_secrets(text)))
    assert mask_secrets(text).startswith("Note of Tuesday.\n")
    assert mask_secrets(text).endswith("That is all.")


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_what_only_looks_like_a_secret_is_left_alone(name):
    assert not list(secrets_in(LOOK_ALIKES[name]))
    assert mask_secrets(LOOK_ALIKES[name]) == LOOK_ALIKES[name]


def test_the_tables_are_as_large_as_they_should_be():
    assert (len(SECRETS) >= 40, len(LOOK_ALIKES) >= 20) == (True, True)
    assert (len(set(POISON)) >= 100, len(set(HARMLESS)) >= 100) == (True, True)


def test_poison_is_noticed_and_harmless_text_is_not():
    missed = [text for text in POISON if not reads_like_instructions(text)]
    alarms = [text for text in HARMLESS if reads_like_instructions(text)]

    assert len(missed) <= len(POISON) // 10, missed
    assert len(alarms) <= len(HARMLESS) // 50, alarms


def test_what_the_patterns_were_not_made_for_raises_few_alarms_and_is_mostly_missed():
    """Said plainly, so that nobody takes a missing flag for safety: fences and provenance are what protects."""
    noticed = sum(reads_like_instructions(text) for text in held_out_texts.POISON)
    alarms = sum(reads_like_instructions(text) for text in held_out_texts.HARMLESS)

    assert (noticed >= 3, alarms <= 1) == (True, True), (noticed, alarms)


@pytest.mark.parametrize("kind", trust.ORDERS)
def test_what_a_pattern_matches_holds_a_word_of_each_group(kind):
    """It is looked for only where they are."""
    pattern = re.compile(trust.ORDERS[kind][1])
    texts = [text for text in texts_matching(pattern, 600) if "\n" not in text]

    assert len(texts) > 100
    for text in (f"{one}{end}" for one in texts for end in ("", "x")):  # the last word may go on
        in_a_sentence = any(pattern.search(text, *place) for place in trust._sentences(text))
        assert reads_like_instructions(text) or not in_a_sentence, text


@pytest.mark.parametrize("what", secret_shapes.SHAPES)
def test_what_a_shape_matches_holds_its_letters(what):
    texts = list(texts_matching(secret_shapes.COMPILED[what], 600))

    assert len(texts) > 10
    assert all(what in secret_shapes.find_due_shapes(text) for text in texts)


def test_an_order_is_noticed_in_the_middle_of_a_long_text():
    page = "The harbour opens at six and closes at nine, and nobody knows why. " * 300

    assert not reads_like_instructions(page)
    assert reads_like_instructions(f"{page}{ORDER} {page}")


def test_text_that_people_cannot_see_is_noticed():
    assert reads_like_instructions("A tidy note" + "".join(chr(0xE0000 + ord(letter)) for letter in "obey me"))


# --- policies --------------------------------------------------------------------------------------------------------


def test_by_default_both_are_flagged_and_kept_word_for_word(jay):
    secret, order, plain = (jay.store(text).memory for text in (TOKEN, ORDER, "The harbour opens at six"))

    assert (secret.flags, order.flags, plain.flags) == (("secret",), ("instruction",), ())
    assert jay.get(secret.id).content == TOKEN
    assert jay.get(order.id).content == ORDER
    assert [memory.id for memory in jay.list(Filter(flag="secret"))] == [secret.id]
    assert {memory.id for memory in jay.list(Filter(flag="any"))} == {secret.id, order.id}
    assert [hit.memory.id for hit in jay.search("banana instructions", filter=Filter(flag="instruction"))] == [order.id]


def test_a_secret_in_metadata_is_noticed_too(jay):
    assert jay.store("The database", metadata={"db": {"password": "xK9!qqLm2#"}}).memory.flags == ("secret",)


def test_flags_follow_the_text(jay):
    memory = jay.store("The harbour opens at six").memory

    assert jay.update(memory.id, content=TOKEN).flags == ("secret",)
    assert jay.update(memory.id, importance=0.9).flags == ("secret",)
    assert jay.update(memory.id, content="The harbour opens at seven").flags == ()


def test_everything_that_is_stored_is_looked_at(jay):
    [bulk] = jay.store_many([{"content": ORDER}])
    decision = jay.decisions.save("billing", "Use the live key", reasoning=SECRETS["stripe"]).memory

    assert jay.get(bulk).flags == ("instruction",)
    assert decision.flags == ("secret",)


def test_an_import_loses_no_flag(jay, open_engine):
    jay.store(TOKEN)
    lines = [{**line, "flags": ["mine"]} if line["type"] == "memory" else line for line in jay.transfer.export()]
    lines[1]["id"] = "mem_imported0000"

    jay.transfer.import_from(lines)

    assert jay.get("mem_imported0000").flags == ("secret", "mine")


def test_refused_means_that_nothing_is_kept(open_engine):
    jay = open_engine(secrets="refuse", instructions="refuse")

    for text in (TOKEN, ORDER):
        with pytest.raises(Unprocessable) as error:
            jay.store(text)
        assert text not in f"{error.value.message}{error.value.hint}"
    memory = jay.store("The harbour opens at six").memory
    with pytest.raises(Unprocessable):
        jay.update(memory.id, content=TOKEN)
    assert [one.content for one in jay.list()] == ["The harbour opens at six"]


def test_masked_means_that_the_secret_is_nowhere_in_the_store(open_engine, tmp_path):
    jay = open_engine(secrets="mask")
    memory = jay.store(f"Deploy with {TOKEN}", metadata={"token": TOKEN}).memory
    changed = jay.store("The harbour opens at six").memory
    jay.update(changed.id, content=f"Deploy with {TOKEN}")
    jay.close()

    secret = TOKEN.partition("=")[2]
    assert memory.content == "Deploy with export GH=[masked: a GitHub token]"
    assert secret.encode() not in b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())


def test_what_is_made_from_a_masked_text_is_made_without_the_secret(open_engine, tmp_path):
    """Its path, its title (which may be cut in the middle of a secret), and the tags and title that a client gave."""
    jay = open_engine(secrets="mask")
    jay.store(
        "Wifi password = hunter2hunter9 in the flat", title="It is hunter2hunter9", tags=["hunter2hunter9", "flat"]
    )
    memory = jay.store("For the old router in the hall: password = hunter2hunter9").memory
    chosen = jay.store("Kennwort: hunter2hunter9", path="notes/wifi").memory
    jay.close()

    assert memory.path.startswith("inbox/for-the-old-router-in-the")
    assert chosen.path == "notes/wifi"
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    assert b"hunter2" not in kept
    assert b"flat" in kept


def test_off_means_that_nobody_looks(open_engine):
    jay = open_engine(secrets="off", instructions="off")

    assert jay.store(TOKEN).memory.flags == jay.store(ORDER).memory.flags == ()


def test_a_policy_that_there_is_not_is_refused():
    with pytest.raises(InvalidInput, match="INSTRUCTIONS"):
        load({"SCRUBJAY_INSTRUCTIONS": "mask"})


# --- who was shown it ------------------------------------------------------------------------------------------------


def test_whoever_was_handed_a_memory_is_on_record(jay):
    memory = jay.store("The harbour master is Ottilie").memory
    jay.search("Who is the harbour master?")
    jay.conversations.link("c1", memory.id)
    jay.conversations.inject("c1")
    jay.conversations.context("c1")

    assert len(jay.curation.shown_to(memory.id)) == 3
    jay.forget(memory.id)
    assert len(jay.curation.shown_to(memory.id)) == 3


def test_an_owner_of_one_space_is_not_told_what_else_they_were_handed(jay):
    """Whoever was handed the memory reads more spaces than its owner does."""
    jay.known_spaces.create("harbour")
    jay.known_spaces.create("cellar")
    note = jay.bound_to(spaces=("harbour",)).store("The harbour master is Ottilie").memory
    other = jay.bound_to(spaces=("cellar",)).store("The harbour master hides her key in the cellar").memory
    asked = jay.bound_to(spaces=("cellar", "harbour"))
    assert {hit.memory.id for hit in asked.search("Who is the harbour master?")} == {note.id, other.id}

    owner = jay.bound_to(caller=Caller(user="ann", role=Role.OWNER, spaces=frozenset({"harbour"})), spaces=("harbour",))
    [shown] = owner.curation.shown_to(note.id)

    assert (shown.space, shown.memories) == ("harbour", (note.id,))
    [whole] = jay.curation.shown_to(note.id)
    assert (whole.space, set(whole.memories)) == ("cellar", {note.id, other.id})
