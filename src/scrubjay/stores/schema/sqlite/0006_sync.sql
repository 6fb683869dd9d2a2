-- Sync: endpoints, how far each has come, conflicts. Released files are never edited.

-- 1: somebody wished it erased, and no other store's state brings it back. 0: not erased, or erased because the date of
-- its deletion had come; then it keeps the deletion's stamp (version, hlc, origin).
ALTER TABLE memories ADD COLUMN final INTEGER NOT NULL DEFAULT 0;
UPDATE memories SET final = 1 WHERE state = 4;

-- Which other stores' changes a memory's present state includes, up to what clock; its own stamp is in its row. Most
-- memories are only ever changed by one store and have no row here.
CREATE TABLE ancestry (
    memory INTEGER NOT NULL REFERENCES memories,
    origin TEXT NOT NULL,
    hlc    INTEGER NOT NULL,
    PRIMARY KEY (memory, origin)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER memories_changed_by_another
AFTER UPDATE OF origin ON memories
WHEN OLD.origin <> NEW.origin
BEGIN
    INSERT INTO ancestry (memory, origin, hlc)
    VALUES (OLD.seq, OLD.origin, OLD.hlc)
    ON CONFLICT (memory, origin) DO UPDATE SET hlc = max(hlc, excluded.hlc);
END;

CREATE TABLE endpoints (
    name      TEXT PRIMARY KEY,
    url       TEXT NOT NULL,
    spaces    TEXT,  -- JSON; NULL: every space
    added_at  INTEGER NOT NULL,
    synced_at INTEGER
) STRICT, WITHOUT ROWID;

-- How far one store has heard another's feed of a space. `proof` tells the event it stopped at from another of the same
-- number, as in a store that was put back from a copy.
CREATE TABLE heard (
    speaker  TEXT NOT NULL,  -- origin
    listener TEXT NOT NULL,  -- origin
    space    TEXT NOT NULL,
    number   INTEGER NOT NULL,
    proof    TEXT NOT NULL,
    PRIMARY KEY (speaker, listener, space)
) STRICT, WITHOUT ROWID;

-- States that met and did not know of each other.
CREATE TABLE sync_conflicts (
    number     INTEGER PRIMARY KEY,
    memory     TEXT NOT NULL,
    endpoint   TEXT NOT NULL,
    policy     TEXT NOT NULL,
    at         INTEGER NOT NULL,
    outcome    TEXT,  -- NULL: waits for somebody to decide
    settled_at INTEGER,
    ours       TEXT,  -- JSON, both as they were; NULL once the memory is erased
    theirs     TEXT
) STRICT;

CREATE UNIQUE INDEX sync_conflicts_open ON sync_conflicts (endpoint, memory) WHERE outcome IS NULL;
CREATE INDEX sync_conflicts_by_memory ON sync_conflicts (memory);

CREATE TRIGGER sync_conflicts_erased
AFTER UPDATE OF state ON memories
WHEN NEW.state = 4
BEGIN
    UPDATE sync_conflicts
    SET ours = NULL, theirs = NULL, outcome = coalesce(outcome, 'erased'), settled_at = coalesce(settled_at, NEW.updated_at)
    WHERE memory = NEW.id;
END;
