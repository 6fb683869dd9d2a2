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

-- --- cold storage ---
--
-- A memory that was put away keeps its row with what lists are filtered, sorted and counted by; its text, title, path,
-- metadata, detail and history are packed here or in an object elsewhere, and its words are in an index without text.

CREATE TABLE archives (
    memory   INTEGER PRIMARY KEY REFERENCES memories,
    id       TEXT NOT NULL,     -- an alias of the memory
    tier     TEXT NOT NULL,     -- memory.Tier
    at       INTEGER NOT NULL,
    bytes    INTEGER NOT NULL,  -- packed
    checksum BLOB NOT NULL,     -- SHA-256 of what is packed
    object   TEXT,              -- its name elsewhere; NULL: it is here
    packed   BLOB
) STRICT;

-- Objects that are to be removed once their time has come: those of purged and restored memories, and those that were
-- about to be written when a process died. So no text outlives its memory.
CREATE TABLE objects_to_remove (
    object TEXT PRIMARY KEY,
    due    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX objects_to_remove_by_due ON objects_to_remove (due);

-- Rows as in `words`. A delete marks a row; its words are out of the file after the next 'optimize'.
CREATE VIRTUAL TABLE archived_words USING fts5 (
    text,
    scope,
    content = '',
    contentless_delete = 1,
    tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* Co M* So'"
);

CREATE VIRTUAL TABLE archived_vocabulary USING fts5vocab (archived_words, col);

-- What a memory adds to the totals (see 0002), with what is packed of it.
DROP VIEW counts_of_memories;
CREATE VIEW counts_of_memories (
    seq, space, audience, user, conversation, category, state, importance,
    memories, text_bytes, vector_bytes, reads, squared_reads, read_memories, judged, agreed, repeats
)
AS SELECT
    seq, space, audience, user, conversation, category, state, importance,
    1,
    octet_length(content) + octet_length(metadata) + octet_length(detail) - 4
        + coalesce((SELECT bytes FROM archives WHERE archives.memory = memories.seq), 0),
    (SELECT coalesce(sum(octet_length(vector)), 0) FROM vectors WHERE vectors.memory = memories.seq),
    access_count, access_count * access_count, access_count > 0,
    category_agreed IS NOT NULL, coalesce(category_agreed, 0), repeat
FROM memories;

CREATE TRIGGER archives_counted
AFTER INSERT ON archives
BEGIN
    INSERT INTO counted
    SELECT space, audience, user, conversation, category, state, importance, 0, NEW.bytes, 0, 0, 0, 0, 0, 0, 0
    FROM memories
    WHERE seq = NEW.memory;
END;

CREATE TRIGGER archives_taken_out
AFTER DELETE ON archives
BEGIN
    INSERT INTO counted
    SELECT space, audience, user, conversation, category, state, importance, 0, -OLD.bytes, 0, 0, 0, 0, 0, 0, 0
    FROM memories
    WHERE seq = OLD.memory;
END;

-- Lists of archived memories are read by time and sorted: five indexes less, and so a fifth of what is left of each.
DROP INDEX memories_by_updated;
DROP INDEX memories_by_accessed;
DROP INDEX memories_by_importance;
DROP INDEX memories_by_access_count;
DROP INDEX memories_by_length;
CREATE INDEX memories_by_updated
ON memories (space, state, updated_at, seq, audience, expires_at, user, conversation, category, importance, created_at)
WHERE state <> 2;
CREATE INDEX memories_by_accessed
ON memories (space, state, accessed_at, seq, audience, expires_at, user, conversation, category, importance, created_at)
WHERE state <> 2;
CREATE INDEX memories_by_importance
ON memories (space, state, importance, seq, audience, expires_at, user, conversation, category, created_at)
WHERE state <> 2;
CREATE INDEX memories_by_access_count
ON memories (space, state, access_count, seq, audience, expires_at, user, conversation, category, importance, created_at)
WHERE state <> 2;
CREATE INDEX memories_by_length
ON memories (
    space, state, content_length, seq, audience, expires_at, user, conversation, category, importance, created_at
)
WHERE state <> 2;

-- See 0001: what a grown store looks like. Dropping an index took its row along.
INSERT INTO sqlite_stat1 (tbl, idx, stat)
VALUES
    ('memories', 'memories_by_updated', '100000 50000 25000 2 1 1 1 1 1 1 1 1'),
    ('memories', 'memories_by_accessed', '100000 50000 25000 2 1 1 1 1 1 1 1 1'),
    ('memories', 'memories_by_importance', '100000 50000 25000 300 1 1 1 1 1 1 1'),
    ('memories', 'memories_by_access_count', '100000 50000 25000 300 1 1 1 1 1 1 1 1'),
    ('memories', 'memories_by_length', '100000 50000 25000 50 1 1 1 1 1 1 1 1'),
    ('archives', NULL, '10000'),
    ('jobs', 'sqlite_autoindex_jobs_1', '1000 1'),
    ('holds', 'holds', '1000 1');
