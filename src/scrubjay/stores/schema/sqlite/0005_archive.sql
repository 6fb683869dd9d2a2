-- Jobs, consolidation, cold storage. Released files are never edited.

-- Work that outlives the call that asked for it. Whether an unfinished one runs or waits says the lease `job:<id>`.
CREATE TABLE jobs (
    number      INTEGER PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,
    kind        TEXT NOT NULL,
    user        TEXT NOT NULL,     -- the caller
    role        TEXT NOT NULL,
    granted     TEXT,              -- JSON; NULL: every space
    spaces      TEXT NOT NULL,     -- JSON
    client      TEXT NOT NULL,     -- provenance
    transport   TEXT NOT NULL,
    dialect     TEXT,
    arguments   TEXT NOT NULL,     -- JSON
    state       TEXT NOT NULL,     -- JSON
    outcome     TEXT,              -- completed, failed, cancelled; NULL: not finished
    done        INTEGER NOT NULL,
    total       INTEGER,
    note        TEXT NOT NULL,
    cancelling  INTEGER NOT NULL,
    attempts    INTEGER NOT NULL,
    result      TEXT,              -- JSON
    error       TEXT,              -- JSON
    created_at  INTEGER NOT NULL,
    started_at  INTEGER,
    finished_at INTEGER
) STRICT;

CREATE INDEX jobs_by_user ON jobs (user, number);
CREATE INDEX jobs_unfinished ON jobs (number) WHERE outcome IS NULL;
CREATE INDEX jobs_by_end ON jobs (finished_at) WHERE finished_at IS NOT NULL;

-- Memories that long work holds: a change by anybody else is refused meanwhile.
CREATE TABLE holds (
    memory   TEXT PRIMARY KEY,
    holder   TEXT NOT NULL,
    taken_at INTEGER NOT NULL,
    until    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX holds_by_holder ON holds (holder);
