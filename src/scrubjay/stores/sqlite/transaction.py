"""Writing: everything that changes in one transaction of the write connection. Memories themselves come from below."""

from __future__ import annotations

import apsw

from scrubjay.stores.sqlite.sql import SqliteSql
from scrubjay.stores.sqlite.sync import SqliteReplicas
from scrubjay.stores.tables.parts import hold_changes
from scrubjay.stores.tables.tally import Tally


class SqliteTransaction(SqliteReplicas):
    def __init__(self, con: apsw.Connection, tally: Tally) -> None:
        super().__init__(con, tally)
        hold_changes(self, SqliteSql(self._reading, tally, self._note_erasure), tally)

    def _note_erasure(self) -> None:
        self.erased = True
