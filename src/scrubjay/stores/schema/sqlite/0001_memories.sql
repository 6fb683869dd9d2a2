-- The first schema. Released files are never edited: a change is a new file with the next number.
--
-- Times are milliseconds since 1970, UTC. JSON is text. A memory's row is never removed: erased ones stay as
-- tombstones (state 4), so "row absent" never means "never seen", and `seq` counts arrivals without reuse.

CREATE TABLE spaces (
    number      INTEGER PRIMARY KEY,
    name        TEXT NOT NULL UNIQUE,
    description TEXT,
    created_at  INTEGER NOT NULL,
    events      INTEGER NOT NULL DEFAULT 0  -- number of the last event in the feed
) STRICT;

-- Users and conversations, kept once and compared as numbers. Never removed, so a number means one name for ever.
CREATE TABLE names (
    number INTEGER PRIMARY KEY,
    name   TEXT NOT NULL UNIQUE
) STRICT;

-- What filters ask for comes first and long text last: SQLite reads a row from its beginning.
CREATE TABLE memories (
    seq               INTEGER PRIMARY KEY,
    id                TEXT NOT NULL UNIQUE,
    space             INTEGER NOT NULL REFERENCES spaces,
    state             INTEGER NOT NULL,  -- memory.State
    audience          INTEGER NOT NULL,  -- 0 public, 1 shared, 2 + user's number: private to that user
    user              INTEGER NOT NULL REFERENCES names,
    conversation      INTEGER REFERENCES names,
    kind              TEXT NOT NULL,
    category          TEXT NOT NULL,
    importance        REAL NOT NULL,
    created_at        INTEGER NOT NULL,
    expires_at        INTEGER,
    change            INTEGER NOT NULL,  -- the transaction that last touched the row or its vectors
    version           INTEGER NOT NULL,
    text_version      INTEGER NOT NULL,  -- the version that last changed the text
    parts             INTEGER NOT NULL,  -- how many vectors the text should have
    status            TEXT NOT NULL,
    source            TEXT NOT NULL,
    access_level      TEXT NOT NULL,
    confidence        REAL NOT NULL,
    updated_at        INTEGER NOT NULL,
    valid_from        INTEGER,
    valid_until       INTEGER,
    verified_at       INTEGER,
    deleted_at        INTEGER,
    recoverable_until INTEGER,
    hlc               INTEGER NOT NULL,
    origin            TEXT NOT NULL,
    supersedes        TEXT,
    superseded_by     TEXT,
    session           TEXT,
    client            TEXT NOT NULL,     -- provenance
    caller            TEXT NOT NULL,
    transport         TEXT NOT NULL,
    dialect           TEXT,
    fingerprint       BLOB,              -- of the text as the engine compares it; none once erased
    content_hash      BLOB,              -- SHA-256 of the text as written: makes bit rot visible
    content_length    INTEGER NOT NULL,  -- code points
    topic             TEXT,
    path              TEXT NOT NULL,
    title             TEXT NOT NULL,
    flags             TEXT NOT NULL,     -- JSON
    tags              TEXT NOT NULL,     -- JSON
    auto_tags         TEXT NOT NULL,     -- JSON
    metadata          TEXT NOT NULL,     -- JSON
    detail            TEXT NOT NULL,     -- JSON
    content           TEXT NOT NULL
) STRICT;

CREATE INDEX memories_by_created ON memories (space, state, created_at, seq);
CREATE UNIQUE INDEX memories_by_path ON memories (space, path) WHERE state IN (0, 1);
CREATE INDEX memories_by_topic ON memories (space, topic, created_at) WHERE topic IS NOT NULL;
CREATE INDEX memories_by_conversation ON memories (conversation, created_at) WHERE conversation IS NOT NULL;
CREATE INDEX memories_by_expiry ON memories (space, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX memories_by_fingerprint ON memories (fingerprint) WHERE fingerprint IS NOT NULL;
CREATE INDEX memories_by_change ON memories (change);

-- Other ids of a memory.
CREATE TABLE aliases (
    alias  TEXT PRIMARY KEY,
    memory INTEGER NOT NULL REFERENCES memories
) STRICT, WITHOUT ROWID;

CREATE INDEX aliases_by_memory ON aliases (memory);

-- Given and found tags, for filters; what is shown stands in the memory's row.
CREATE TABLE tags (
    memory INTEGER NOT NULL REFERENCES memories,
    tag    TEXT NOT NULL,
    PRIMARY KEY (memory, tag)
) STRICT, WITHOUT ROWID;

CREATE INDEX tags_by_tag ON tags (tag, memory);

-- How often a memory was handed out, beside it: reading must not change the memory's row.
CREATE TABLE reads (
    memory      INTEGER PRIMARY KEY REFERENCES memories,
    count       INTEGER NOT NULL,
    accessed_at INTEGER NOT NULL
) STRICT;

-- To whom memories were handed out; only the newest rows are kept.
CREATE TABLE recalls (
    number   INTEGER PRIMARY KEY,
    at       INTEGER NOT NULL,
    space    TEXT NOT NULL,
    user     TEXT NOT NULL,
    client   TEXT NOT NULL,
    memories TEXT NOT NULL  -- JSON, ids
) STRICT;

CREATE TABLE recall_counts (
    space    TEXT NOT NULL,
    user     TEXT NOT NULL,
    hour     INTEGER NOT NULL,  -- hours since 1970
    recalls  INTEGER NOT NULL,
    memories INTEGER NOT NULL,
    PRIMARY KEY (space, user, hour)
) STRICT, WITHOUT ROWID;

-- Former states of a memory: the row as it was, as JSON by column.
CREATE TABLE versions (
    memory      INTEGER NOT NULL REFERENCES memories,
    version     INTEGER NOT NULL,
    id          TEXT NOT NULL UNIQUE,
    snapshot    TEXT NOT NULL,
    replaced_at INTEGER NOT NULL,
    replaced_by TEXT NOT NULL,
    reason      TEXT,
    PRIMARY KEY (memory, version)
) STRICT;

-- Links name memories by id, so that one may arrive before the memory it points at.
CREATE TABLE links (
    number     INTEGER PRIMARY KEY,
    kind       TEXT NOT NULL,
    source     TEXT NOT NULL,
    target     TEXT NOT NULL,
    score      REAL,
    state      TEXT NOT NULL,
    given      INTEGER NOT NULL,
    reason     TEXT,
    created_at INTEGER NOT NULL,
    hlc        INTEGER NOT NULL,
    origin     TEXT NOT NULL,
    UNIQUE (source, target, kind)
) STRICT;

CREATE INDEX links_by_target ON links (target);

CREATE TABLE events (
    space     INTEGER NOT NULL REFERENCES spaces,
    number    INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    action    TEXT NOT NULL,
    memory    TEXT,
    fields    TEXT NOT NULL,  -- JSON
    user      TEXT NOT NULL,
    client    TEXT NOT NULL,  -- provenance
    caller    TEXT NOT NULL,
    transport TEXT NOT NULL,
    dialect   TEXT,
    reason    TEXT,
    PRIMARY KEY (space, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE leases (
    name     TEXT PRIMARY KEY,
    holder   TEXT NOT NULL,
    taken_at INTEGER NOT NULL,
    until    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Facts about the store itself: origin, model …
CREATE TABLE facts (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One row. `change` numbers the transactions that touched memories or vectors, `clock` is the hybrid logical clock.
CREATE TABLE counters (
    change INTEGER NOT NULL,
    clock  INTEGER NOT NULL
) STRICT;

CREATE TABLE vectors (
    id     INTEGER PRIMARY KEY,
    memory INTEGER NOT NULL REFERENCES memories,
    part   INTEGER NOT NULL,
    vector BLOB NOT NULL,  -- float32, little endian, unit length
    UNIQUE (memory, part)
) STRICT;

-- Memories whose vectors are not all there yet.
CREATE TABLE pending (
    memory    INTEGER PRIMARY KEY REFERENCES memories,
    next_part INTEGER NOT NULL,
    attempts  INTEGER NOT NULL DEFAULT 0,
    judged    INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX pending_by_attempts ON pending (attempts, memory);

-- Words as words.py makes them, a row per passage: rowid = memories.seq × 256 + its place. `scope` holds one token per row that names its space. The table
-- keeps its own text, so that a delete knows every word to take out, and secure-delete takes them out of the index at
-- once instead of marking them. Marks (M) belong to words in Indic scripts, symbols (So) are emoji.
CREATE VIRTUAL TABLE words USING fts5 (
    text,
    scope,
    tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* Co M* So'"
);

INSERT INTO words (words, rank) VALUES ('secure-delete', 1);

CREATE VIRTUAL TABLE vocabulary USING fts5vocab (words, col);

-- What a grown store looks like (rows, then rows per value of the index's first column, first two, …). Without it the
-- planner takes "this space, this state" for more selective than a fingerprint or a path and reads the whole space.
ANALYZE;
INSERT INTO sqlite_stat1 (tbl, idx, stat)
VALUES
    ('memories', 'sqlite_autoindex_memories_1', '100000 1'),
    ('memories', 'memories_by_created', '100000 50000 25000 2 1'),
    ('memories', 'memories_by_path', '90000 45000 1'),
    ('memories', 'memories_by_topic', '20000 10000 10 1'),
    ('memories', 'memories_by_conversation', '50000 50 1'),
    ('memories', 'memories_by_expiry', '10000 5000 2'),
    ('memories', 'memories_by_fingerprint', '100000 1'),
    ('memories', 'memories_by_change', '100000 2'),
    ('tags', 'tags', '300000 3 1'),
    ('tags', 'tags_by_tag', '300000 300 1');

INSERT INTO counters (change, clock) VALUES (0, 0);
INSERT INTO facts (key, value) VALUES ('origin', lower(hex(randomblob(8))));
INSERT INTO spaces (number, name, created_at) VALUES (1, 'default', unixepoch() * 1000);
