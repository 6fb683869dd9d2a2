"""Secrets in the forms that people and agents write, and what only looks like one."""

from __future__ import annotations

import re
import sys
from itertools import count

import pytest

from scrubjay.text.secret_shapes import SHAPES
from scrubjay.text.secrets import STEMS, mask_secrets, secrets_in
from tests.text.secret_forms import FORMS, KEY, LETTERS, LOOK_ALIKES, SLASHED, made, pem


@pytest.mark.parametrize(("kind", "text", "secret"), FORMS)
def test_a_secret_is_noticed_in_the_form_that_people_write(kind, text, secret):
    left = mask_secrets(f"Before it.\n\n{text}\n\nAfter it.")

    assert list(secrets_in(text)), kind
    assert secret not in left
    assert left.startswith("Before it.\n")
    assert left.endswith("\nAfter it.")
    assert mask_secrets(left) == left
    assert not list(secrets_in(left))


def test_hardly_any_look_alike_is_flagged():
    alarms = [text for text in LOOK_ALIKES if list(secrets_in(text))]

    assert len(alarms) <= len(LOOK_ALIKES) // 50, alarms


def test_the_tables_are_as_large_as_they_should_be():
    assert (len({text for _, text, _ in FORMS}) >= 120, len(set(LOOK_ALIKES)) >= 60) == (True, True)


@pytest.mark.parametrize("name", ["secret", "aws_secret_access_key", "client_secret", "SECRET_KEY"])
def test_a_value_with_a_slash_is_found_by_its_name(name):
    assert mask_secrets(f"{name}={SLASHED}") == f"{name}=[masked: a token by its name]"


@pytest.mark.parametrize("word", ["none", "null", "todo", "fake", "your", "dummy"])
def test_a_placeholder_is_a_word_and_not_a_part_of_random_letters(word):
    token = f"ghp_{made(16, seed='a')}{word}{made(16, seed='b')}"

    assert mask_secrets(f"It is {token}") == "It is [masked: a GitHub token]"
    assert not list(secrets_in(f"api_key: {word}_api_key"))


@pytest.mark.parametrize("end", ["\n", "\\n", "\\\\n", "\r\n", "\n> ", "\n    ", '",\n"', "\n# "])
@pytest.mark.parametrize("cut", [False, True])
def test_every_line_of_a_private_key_is_taken_out(end, cut):
    lines = pem("EC ", lines=4).split("\n")
    kept = mask_secrets(end.join(["It is", *lines[: -1 if cut else None]]))

    assert kept.startswith("It is")
    assert not any(line in kept for line in lines)


def test_a_name_is_masked_by_what_tells_it_from_others():
    one, other = (f"notes/ghp_{made(36, seed=seed)}" for seed in "ab")

    assert mask_secrets(one, as_name=True) != mask_secrets(other, as_name=True)
    assert mask_secrets(one, as_name=True).startswith("notes/masked-")
    assert mask_secrets(mask_secrets(one, as_name=True), as_name=True) == mask_secrets(one, as_name=True)


def test_long_values_are_taken_out_whole():
    value = made(900, seed="long")

    assert mask_secrets(f"token: {value} and more") == "token: [masked: a token by its name] and more"


# --- how long it takes ------------------------------------------------------------------------------------------------

HOSTILE = [
    *(f"{stem}{sign}" for stem in STEMS for sign in ("", " ", ": ", "=")),
    *(anchor for anchors, _ in SHAPES.values() for anchor in anchors if anchor),
    "password for x ", "the password for of to on ", "password, a, ", "is the password ", "set the password to ",
    "| password |\n", "a,password\n", "<password ", "password (", "-----BEGIN RSA " + "PRIVATE KEY-----",
    "-----BEGIN RSA " + "PRIVATE KEY-----\\n>", "curl -u a", "recovery codes abcd-", "seed phrase is a ", "[masked: ",
    "4 ", "4444 ", "eyJabc.", "cookie: a=", "login a/", " \n",
]  # fmt: skip


def work(text: str) -> int:
    """How many lines of our own are run for a text: the same on every machine."""
    lines = count()

    def trace(frame, event, _argument):
        if event == "line" and "scrubjay/text" in frame.f_code.co_filename:
            next(lines)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        mask_secrets(text)
    finally:
        sys.settrace(before)
    return next(lines)


@pytest.mark.parametrize("piece", HOSTILE)
def test_work_grows_with_the_text_and_no_faster(piece):
    few, many = (work((piece * length)[:length]) for length in (2_500, 10_000))

    assert many <= 4.5 * few + 1_000


def test_no_pattern_repeats_without_a_bound_inside_of_another_repeat():
    """Then a part of a text is never walked through more often than a constant allows, whatever follows."""
    from scrubjay.text import secret_shapes, secrets

    known = [*vars(secrets).values(), *vars(secret_shapes).values(), *secret_shapes.COMPILED.values()]
    patterns = [one for one in known if isinstance(one, re.Pattern)]

    assert len(patterns) > 90
    for pattern in patterns:
        parsed = re._parser.parse(pattern.pattern, pattern.flags)  # type: ignore[attr-defined]
        assert unbounded_inside(parsed) is None, pattern.pattern[:100]


def unbounded_inside(parts, *, inside=False):
    """A repeat without a bound that another one holds, and that can give back what it took."""
    for kind, value in parts:
        name, within, groups = str(kind), inside, []
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            endless = str(value[1]) == "MAXREPEAT"
            if endless and inside and name != "POSSESSIVE_REPEAT":
                return value
            within, groups = inside or endless, [value[2]]
        elif name in ("SUBPATTERN", "ASSERT", "ASSERT_NOT"):
            groups = [value[-1]]
        elif name == "BRANCH":
            groups = value[1]
        for group in groups:
            if (found := unbounded_inside(group, inside=within)) is not None:
                return found
    return None


def test_a_long_text_that_repeats_what_names_a_secret_is_read_to_its_end():
    text = f"{'password for x ' * 3_300}token: {KEY}"

    assert len(text) > 49_000
    assert KEY not in mask_secrets(text)
    assert set(KEY) <= set(LETTERS)
