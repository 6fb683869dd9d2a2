"""Three hundred memories, as a harbour office keeps them: notes in Markdown, repeats, conflicts, a hub of links."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path

from scrubjay.embedders.base import Embedder
from scrubjay.engine.parts import engine_on
from scrubjay.stores.promises.memories import Transaction
from scrubjay.values.memory import LinkKind, Memory
from scrubjay.wiring import open_store
from tests.conflict import open_conflict
from tests.page.demo import Demo

MEMORIES = 300
PLACES = ("north mole", "fish quay", "dry dock", "pilot station", "coal pier", "ferry ramp", "east lock", "old basin")
MATTERS = ("crane", "lamp", "fender", "bollard", "gangway", "siren", "gauge", "camera", "pump", "radio")
DEEDS = ("was inspected in week {}", "needs {} new bolts", "reports every {} minutes", "has {} spare parts in store")
CLIENTS = (("claude-code", "memento"), ("cursor", "system"), ("claude-desktop", "cortex"))

NOTE = """# Onboarding the night watch

Read **ARCHITECTURE.md** first, then `make serve`. See [the tide tables](https://tides.example/tables) and ~~the fax~~.

## The first night

- Walk the _north mole_ before ten
- Ring the pilots:
  1. outer buoy
  2. inner mole
- ![The plan](https://tides.example/plan.png)

> Nobody walks alone.

```sh
scrubjay search "<b>berths</b>"
```

Then [read on](javascript:alert(1)) and <img src=x onerror=alert(2)>.
"""
PLAIN_NOTE = "The **tide gauge** at the [ferry ramp](https://tides.example/ramp) drifts. It is checked on Mondays."
REPEATED = "The harbour siren is tested on the first Wednesday of the month"
LONG = "\n".join(f"Line {number} of the long report on the dredging of berth 7." for number in range(1, 81))


class World(Demo):
    def __init__(self, home: Path, embedder: Embedder) -> None:
        super().__init__(home, embedder)
        with engine_on(open_store(f"sqlite:///{home / 'memories.db'}"), embedder, clock=self.weeks) as engine:
            self.engine = engine
            self.note, self.plain_note, self.long = (self._keep(text, "notes") for text in (NOTE, PLAIN_NOTE, LONG))
            self._repeats()
            self.hub = self._hub()
            self._rest()
            engine.conversations.link(self.conversation, self.long.id)

    def _keep(self, text: str, tag: str, at: int = 0) -> Memory:
        agent = self._through(*CLIENTS[at % 3])
        return agent.store(text, tags=(tag,)).memory

    def _repeats(self) -> None:
        self.repeats = []
        for at in range(3):
            self.weeks.ago(3 - at)
            self.repeats.append(self._keep(REPEATED, "siren", at))
        self.weeks.ago(0)
        for newer in self.repeats[1:]:
            open_conflict(self.engine, newer, self.repeats[0])

    def _hub(self) -> Memory:
        """A memory that may outdate many, and many that belong together with it."""
        self.weeks.ago(40)
        oil = "The lamp at the {0} burns oil, {0} lamp keeper trims it"
        others = [self._keep(oil.format(place), "lamp") for place in PLACES]
        self.weeks.ago(0)
        hub = self._keep("Since the refit of November every lamp in the harbour is an LED lamp", "lamp")
        for other in others:
            open_conflict(self.engine, hub, other)
        for at, other in enumerate(others):
            with self.engine.records.writing() as tx:
                self._link(tx, LinkKind.RELATED, other, others[(at + 1) % len(others)])
        with self.engine.records.writing() as tx:
            self._link(tx, LinkKind.RELATED, hub, self.note)
        return hub

    def _link(self, tx: Transaction, kind: LinkKind, one: Memory, other: Memory) -> None:
        self.engine.ledger.link(tx, kind, one, other, score=0.8, given=True)

    def _rest(self) -> None:
        chance = random.Random(17)
        left = MEMORIES - (self.engine.list(limit=1, counted=True).total or 0)
        made: list[dict[str, object]] = []
        for at in range(left):
            matter, deed = chance.choice(MATTERS), chance.choice(DEEDS).format(at + 2)
            text = f"The {matter} at the {chance.choice(PLACES)} {deed}"
            created_at = self.weeks.end - timedelta(days=chance.uniform(0.5, 80))
            made.append({"content": text, "tags": (matter,), "created_at": created_at})
        for at, client in enumerate(CLIENTS):
            self._through(*client).store_many(made[at::3])
