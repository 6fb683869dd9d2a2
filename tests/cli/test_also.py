"""Other words on the command line: stored, asked, shown, changed, undone, written by a model."""

from __future__ import annotations

BOAT = "The Ottilie is moored at pier four"


def store_boat(call):
    return call("store", BOAT, "--also", "where is the sailing boat?", "--also", "berth").out.strip()


def test_a_memory_is_found_by_its_phrases(call):
    id = store_boat(call)
    call("store", "Ada teaches chess on Mondays")

    [hit, *_] = call("search", "--words", "sailing boat", "--json").json

    assert (hit["memory"]["id"], hit["memory"]["content"]) == (id, BOAT)
    assert hit["memory"]["also"] == ["where is the sailing boat?", "berth"]


def test_other_wordings_of_a_question_are_told(call):
    call("store", BOAT)

    done = call("search", "Where does she lie?", "--also", "Ottilie's pier", "--also", "sleep", "--words", "--explain")

    assert """also "Ottilie's pier\"""" in " ".join(done.out.split())
    assert "sleep" not in done.out


def test_show_has_them_and_the_list_does_not(call):
    id = store_boat(call)

    assert "where is the sailing boat?; berth" in call("show", id).out
    assert "berth" not in call("list").out


def test_they_are_changed_cleared_and_brought_back(call):
    id = store_boat(call)

    assert "version 1" in call("update", id, "--also", "yacht", "--reason", "as the user says").out
    assert call("show", id, "--json").json["memory"]["also"] == ["yacht"]
    call("update", id, "--no-also")
    assert call("show", id, "--json").json["memory"]["also"] == []
    told = call("history", id)
    assert "as the user says" in told.out
    assert [one["also"] for one in call("history", id, "--json").json["phrases"]] == [
        ["yacht"],
        ["where is the sailing boat?", "berth"],
    ]
    call("undo", id)
    call("undo", id)
    assert call("show", id, "--json").json["memory"]["also"] == ["where is the sailing boat?", "berth"]


def test_memories_with_and_without_phrases_are_listed_found_and_forgotten(call):
    boat, chess = store_boat(call), call("store", "Ada teaches chess on Mondays").out.strip()

    assert [one["id"] for one in call("list", "--phrased", "--json").json] == [boat]
    assert [one["id"] for one in call("list", "--unphrased", "--json").json] == [chess]
    assert [hit["memory"]["id"] for hit in call("search", "--words", "chess", "--unphrased", "--json").json] == [chess]
    assert call("search", "--words", "chess", "--phrased", "--json").json == []
    call("forget", "--unphrased", "--yes")
    assert [one["id"] for one in call("list", "--json").json] == [boat]


def test_doctor_says_how_many_have_phrases(call):
    store_boat(call)
    call("store", "Ada teaches chess on Mondays")

    [found] = [one for one in call("doctor", "--json").json["findings"] if one["check"] == "phrases"]

    assert found["found"] == "1 of 2 current memories have phrases (also)."


def test_tidy_without_a_model_says_what_to_do(call):
    done = call("tidy")

    assert done.code == 1
    assert "No language model is configured" in done.err
    assert "SCRUBJAY_SYNTHESIS_URL" in done.err
