"""Names of things without a verb ask nothing of anybody: they are judged by what they mean, not as instructions."""

from __future__ import annotations

import pytest

from scrubjay.engine.store.categories import is_fragment
from scrubjay.values.memory import Category

FRAGMENTS = [
    "notes from the meeting", "Meeting notes, 12 March", "list of suppliers", "Release notes for 2.4",
    "test results from the night run", "report from the audit", "update on the migration", "call with the bank",
    "order for forty chairs", "review of the quarterly numbers", "photos of the flat in Porto",
    "draft of the cover letter", "budget for the kitchen", "schedule of the swimming lessons",
    "log of the failed deployment", "the blue folder on the shelf", "address of the landlord",
    "names of the new neighbours", "copy of the rental contract", "link to the design document",
    "summary of the interview with Ines", "plan of the garden", "agenda for Tuesday", "recipe for lentil soup",
    "tickets to the opera", "backup of the old laptop", "minutes of the board", "open questions about pricing",
    "ideas for the birthday party", "change log of the billing service", "search results for used bikes",
    "set of keys for the cellar", "start page of the intranet", "store opening hours",
    "tag names in the old tracker", "talk about distributed systems", "use cases of the export",
    "wait times at the clinic", "show times on Saturday", "print settings of the office printer",
    "post about the summer trip", "point of sale terminals", "pass codes of the garage", "move to the new office",
    "merge conflicts in the payment branch", "load figures of the cluster", "label printer on the second floor",
    "import rules of the monorepo", "format of the invoice numbers", "export of the customer table",
]  # fmt: skip
AMBIGUOUS = 5  # "label printer on the second floor": the same words could be an order
ORDERS = [
    "Use Celsius", "List all suppliers before ordering", "Call me Kit", "Test every change on staging",
    "Report on Fridays, in the channel", "Print dates in ISO format", "Update the changelog with every release",
    "Stick to the style guide", "Never move files without asking", "Use tabs in Makefiles",
]  # fmt: skip


def test_there_are_fifty():
    assert len(set(FRAGMENTS)) == 50


def test_hardly_any_fragment_is_taken_for_an_instruction(real_jay):
    taken = [text for text in FRAGMENTS if real_jay.store(text).memory.category is Category.INSTRUCTION]

    assert len(taken) <= AMBIGUOUS, taken


def test_notes_from_a_meeting_are_of_no_great_importance(real_jay):
    memory = real_jay.store("notes from the meeting", source="explicit").memory

    assert memory.category is not Category.INSTRUCTION
    assert memory.importance < 0.8


@pytest.mark.parametrize("text", ORDERS)
def test_an_order_is_not_a_fragment(text):
    assert not is_fragment(text)
