"""What hooks suggest, in a file of this machine."""

from __future__ import annotations

import stat

from scrubjay.machine.suggestions import KEPT_SECONDS, MOST, Suggestions

ABOUT = {"space": "default", "client": "codex", "session": "s"}


def suggest(text, kind="memory", **more):
    return {"text": text, "kind": kind, **ABOUT, **more}


def test_the_same_sentence_is_kept_once_and_a_session_has_one_checkpoint(tmp_path):
    kept = Suggestions(tmp_path)

    assert kept.add([suggest("Use tabs."), suggest("use  tabs."), suggest("Half way.", "checkpoint")]) == 2
    assert kept.add([suggest("Use tabs."), suggest("Done.", "checkpoint")]) == 0
    assert {one.text for one in kept.all()} == {"Use tabs.", "Done."}
    assert stat.S_IMODE((tmp_path / "suggestions.json").stat().st_mode) == 0o600


def test_after_a_month_they_are_gone_and_there_are_never_too_many(tmp_path):
    now = 1_000_000.0
    kept = Suggestions(tmp_path, clock=lambda: now)
    kept.add([suggest(f"Fact {number}.") for number in range(MOST + 5)])

    assert len(kept.all()) == MOST
    now += KEPT_SECONDS
    assert kept.all() == []


def test_a_damaged_file_has_no_suggestions_and_takes_new_ones(tmp_path):
    (tmp_path / "suggestions.json").write_bytes(b"\xff{")
    kept = Suggestions(tmp_path)

    assert kept.all() == []
    assert kept.add([suggest("Use tabs.")]) == 1


def test_taking_one_twice_finds_nothing(tmp_path):
    kept = Suggestions(tmp_path)
    kept.add([suggest("Use tabs.")])
    [one] = kept.all()

    assert kept.take(one.id) == one
    assert kept.take(one.id) is None
    kept.put_back(one)
    assert kept.all() == [one]
