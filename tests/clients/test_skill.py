"""The skill, as agents read it by address."""

from __future__ import annotations

from scrubjay.clients.guidance import skill
from scrubjay.dialects.agent.addresses import SKILL, list_resources, read


def test_the_skill_is_listed_and_read(open_engine):
    engine = open_engine()

    assert SKILL in list_resources(engine)
    assert read(engine, SKILL.uri) == ("text/markdown", skill())
