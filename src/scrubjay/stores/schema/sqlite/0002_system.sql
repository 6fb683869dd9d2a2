-- Lists in any order, statistics, and results kept for repeated requests. Released files are never edited.

-- --- reads, in the memory's row, so that a list can be sorted by them from an index ---
--
-- Counting a read changes neither `version` nor `updated_at` nor `change`, and no text is written again: what is in the
-- row after the text is overwritten in place.

ALTER TABLE memories ADD COLUMN accessed_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE memories ADD COLUMN access_count INTEGER NOT NULL DEFAULT 0;
ALTER TABLE memories ADD COLUMN category_agreed INTEGER;  -- with most of its neighbours' when stored; NULL: not judged
ALTER TABLE memories ADD COLUMN repeat INTEGER NOT NULL DEFAULT 0;  -- 1: an earlier row in states 0 or 2 has its text

UPDATE memories
SET accessed_at = coalesce((SELECT accessed_at FROM reads WHERE reads.memory = memories.seq), created_at),
    access_count = coalesce((SELECT count FROM reads WHERE reads.memory = memories.seq), 0),
    repeat = state IN (0, 2) AND EXISTS (
        SELECT 1
        FROM memories AS earlier
        WHERE earlier.fingerprint = memories.fingerprint
        AND earlier.state IN (0, 2)
        AND earlier.seq < memories.seq
    );

DROP TABLE reads;

-- --- lists ---
--
-- One index per order: space, state, what is sorted by, arrival; then everything that lists are usually filtered by, so
-- that rows which do not fit are passed over without being read. The same columns let the first one count.

DROP INDEX memories_by_created;
CREATE INDEX memories_by_created
ON memories (space, state, created_at, seq, audience, expires_at, user, conversation, category, importance);
CREATE INDEX memories_by_updated
ON memories (space, state, updated_at, seq, audience, expires_at, user, conversation, category, importance, created_at);
CREATE INDEX memories_by_accessed
ON memories (space, state, accessed_at, seq, audience, expires_at, user, conversation, category, importance, created_at);
CREATE INDEX memories_by_importance
ON memories (space, state, importance, seq, audience, expires_at, user, conversation, category, created_at);
CREATE INDEX memories_by_access_count
ON memories (space, state, access_count, seq, audience, expires_at, user, conversation, category, importance, created_at);
CREATE INDEX memories_by_length
ON memories (
    space, state, content_length, seq, audience, expires_at, user, conversation, category, importance, created_at
);

DROP INDEX memories_by_expiry;
CREATE INDEX memories_by_expiry
ON memories (space, expires_at, state, audience, user, conversation, category)
WHERE expires_at IS NOT NULL;

CREATE INDEX memories_by_deletion
ON memories (space, deleted_at, state, audience, user, conversation, category)
WHERE state >= 3;

CREATE INDEX memories_by_recovery ON memories (recoverable_until) WHERE state = 3;

-- --- statistics ---
--
-- A memory is counted in several parts: '' (everything), 'user:<number>', 'category:<name>', 'conversation:<number>'.
-- Within a part what differs in who sees it stands apart (space, audience), so that a caller's sum is exact.

CREATE TABLE totals (
    part          TEXT NOT NULL,
    space         INTEGER NOT NULL REFERENCES spaces,
    audience      INTEGER NOT NULL,
    state         INTEGER NOT NULL,
    category      TEXT NOT NULL,
    level         TEXT NOT NULL,  -- stores.base.Level
    memories      INTEGER NOT NULL,
    text_bytes    INTEGER NOT NULL,
    vector_bytes  INTEGER NOT NULL,
    reads         INTEGER NOT NULL,
    squared_reads INTEGER NOT NULL,
    read_memories INTEGER NOT NULL,
    judged        INTEGER NOT NULL,
    agreed        INTEGER NOT NULL,
    repeats       INTEGER NOT NULL,
    PRIMARY KEY (part, space, audience, state, category, level)
) STRICT, WITHOUT ROWID;

-- What happened when, by the hour and once more by the day, so that years are added up in a moment.
CREATE TABLE activity (
    part           TEXT NOT NULL,
    hours          INTEGER NOT NULL,  -- 1: an hour's row, 24: a day's
    at             INTEGER NOT NULL,  -- its first hour, since 1970; what is older counts as of then
    space          INTEGER NOT NULL REFERENCES spaces,
    audience       INTEGER NOT NULL,
    created        INTEGER NOT NULL,
    reads          INTEGER NOT NULL,
    consolidations INTEGER NOT NULL,
    consolidated   INTEGER NOT NULL,
    PRIMARY KEY (part, hours, at, space, audience)
) STRICT, WITHOUT ROWID;

-- The two views hold nothing: inserting into one adds to (or, with negative numbers, takes from) every row that counts.

CREATE VIEW happened (
    space, audience, user, conversation, category, hour, created, reads, consolidations, consolidated
)
AS SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL WHERE FALSE;

CREATE TRIGGER happened_in_activity
INSTEAD OF INSERT ON happened
BEGIN
    INSERT INTO activity (part, hours, at, space, audience, created, reads, consolidations, consolidated)
    SELECT
        part, hours, max(NEW.hour, 0) / hours * hours, NEW.space, NEW.audience,
        NEW.created, NEW.reads, NEW.consolidations, NEW.consolidated
    FROM (
        SELECT '' AS part
        UNION ALL SELECT 'user:' || NEW.user
        UNION ALL SELECT 'category:' || NEW.category
        UNION ALL SELECT 'conversation:' || NEW.conversation WHERE NEW.conversation IS NOT NULL
    )
    CROSS JOIN (SELECT 1 AS hours UNION ALL SELECT 24)
    WHERE TRUE
    ON CONFLICT DO UPDATE SET
        created = created + excluded.created,
        reads = reads + excluded.reads,
        consolidations = consolidations + excluded.consolidations,
        consolidated = consolidated + excluded.consolidated;
END;

CREATE VIEW counted (
    space, audience, user, conversation, category, state, importance,
    memories, text_bytes, vector_bytes, reads, squared_reads, read_memories, judged, agreed, repeats
)
AS SELECT
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL WHERE FALSE;

CREATE TRIGGER counted_in_totals
INSTEAD OF INSERT ON counted
BEGIN
    INSERT INTO totals (
        part, space, audience, state, category, level,
        memories, text_bytes, vector_bytes, reads, squared_reads, read_memories, judged, agreed, repeats
    )
    SELECT
        part, NEW.space, NEW.audience, NEW.state, NEW.category,
        CASE WHEN NEW.importance >= 0.7 THEN 'high' WHEN NEW.importance < 0.3 THEN 'low' ELSE 'medium' END,
        NEW.memories, NEW.text_bytes, NEW.vector_bytes, NEW.reads, NEW.squared_reads, NEW.read_memories,
        NEW.judged, NEW.agreed, NEW.repeats
    FROM (
        SELECT '' AS part
        UNION ALL SELECT 'user:' || NEW.user
        UNION ALL SELECT 'category:' || NEW.category
        UNION ALL SELECT 'conversation:' || NEW.conversation WHERE NEW.conversation IS NOT NULL
    )
    WHERE TRUE
    ON CONFLICT DO UPDATE SET
        memories = memories + excluded.memories,
        text_bytes = text_bytes + excluded.text_bytes,
        vector_bytes = vector_bytes + excluded.vector_bytes,
        reads = reads + excluded.reads,
        squared_reads = squared_reads + excluded.squared_reads,
        read_memories = read_memories + excluded.read_memories,
        judged = judged + excluded.judged,
        agreed = agreed + excluded.agreed,
        repeats = repeats + excluded.repeats;
END;

-- What a memory adds to the totals. Empty JSON has two bytes and counts as none.
CREATE VIEW counts_of_memories (
    seq, space, audience, user, conversation, category, state, importance,
    memories, text_bytes, vector_bytes, reads, squared_reads, read_memories, judged, agreed, repeats
)
AS SELECT
    seq, space, audience, user, conversation, category, state, importance,
    1,
    octet_length(content) + octet_length(metadata) + octet_length(detail) - 4,
    (SELECT coalesce(sum(octet_length(vector)), 0) FROM vectors WHERE vectors.memory = memories.seq),
    access_count, access_count * access_count, access_count > 0,
    category_agreed IS NOT NULL, coalesce(category_agreed, 0), repeat
FROM memories;

CREATE TRIGGER memories_counted
AFTER INSERT ON memories
BEGIN
    INSERT INTO counted
    SELECT
        space, audience, user, conversation, category, state, importance,
        memories, text_bytes, vector_bytes, reads, squared_reads, read_memories, judged, agreed, repeats
    FROM counts_of_memories
    WHERE seq = NEW.seq;

    INSERT INTO happened
    VALUES (
        NEW.space, NEW.audience, NEW.user, NEW.conversation, NEW.category, NEW.created_at / 3600000, 1, 0, 0, 0
    );
END;

-- A memory that changes what it is counted as: taken out before, put in after. Most updates change none of this.
CREATE TRIGGER memories_taken_out
BEFORE UPDATE OF
    space, audience, user, conversation, category, state, importance, content, metadata, detail
ON memories
WHEN (OLD.space, OLD.audience, OLD.user, OLD.conversation, OLD.category, OLD.state, OLD.importance)
    IS NOT (NEW.space, NEW.audience, NEW.user, NEW.conversation, NEW.category, NEW.state, NEW.importance)
OR octet_length(OLD.content) + octet_length(OLD.metadata) + octet_length(OLD.detail)
    IS NOT octet_length(NEW.content) + octet_length(NEW.metadata) + octet_length(NEW.detail)
BEGIN
    INSERT INTO counted
    SELECT
        space, audience, user, conversation, category, state, importance,
        -memories, -text_bytes, -vector_bytes, -reads, -squared_reads, -read_memories, -judged, -agreed, -repeats
    FROM counts_of_memories
    WHERE seq = NEW.seq;
END;

CREATE TRIGGER memories_put_in
AFTER UPDATE OF
    space, audience, user, conversation, category, state, importance, content, metadata, detail
ON memories
WHEN (OLD.space, OLD.audience, OLD.user, OLD.conversation, OLD.category, OLD.state, OLD.importance)
    IS NOT (NEW.space, NEW.audience, NEW.user, NEW.conversation, NEW.category, NEW.state, NEW.importance)
OR octet_length(OLD.content) + octet_length(OLD.metadata) + octet_length(OLD.detail)
    IS NOT octet_length(NEW.content) + octet_length(NEW.metadata) + octet_length(NEW.detail)
BEGIN
    INSERT INTO counted
    SELECT
        space, audience, user, conversation, category, state, importance,
        memories, text_bytes, vector_bytes, reads, squared_reads, read_memories, judged, agreed, repeats
    FROM counts_of_memories
    WHERE seq = NEW.seq;
END;

CREATE TRIGGER memories_moved
AFTER UPDATE OF space, audience, user, conversation, category, created_at ON memories
WHEN (OLD.space, OLD.audience, OLD.user, OLD.conversation, OLD.category, OLD.created_at)
    IS NOT (NEW.space, NEW.audience, NEW.user, NEW.conversation, NEW.category, NEW.created_at)
BEGIN
    INSERT INTO happened
    VALUES
        (OLD.space, OLD.audience, OLD.user, OLD.conversation, OLD.category, OLD.created_at / 3600000, -1, 0, 0, 0),
        (NEW.space, NEW.audience, NEW.user, NEW.conversation, NEW.category, NEW.created_at / 3600000, 1, 0, 0, 0);
END;

-- Marks beside the memory itself. No statement changes one of these together with a column named above: it would be
-- counted twice.
CREATE TRIGGER memories_marked
AFTER UPDATE OF access_count, category_agreed, repeat ON memories
BEGIN
    INSERT INTO counted
    VALUES (
        NEW.space, NEW.audience, NEW.user, NEW.conversation, NEW.category, NEW.state, NEW.importance,
        0, 0, 0,
        NEW.access_count - OLD.access_count,
        NEW.access_count * NEW.access_count - OLD.access_count * OLD.access_count,
        (NEW.access_count > 0) - (OLD.access_count > 0),
        (NEW.category_agreed IS NOT NULL) - (OLD.category_agreed IS NOT NULL),
        coalesce(NEW.category_agreed, 0) - coalesce(OLD.category_agreed, 0),
        NEW.repeat - OLD.repeat
    );
END;

CREATE TRIGGER vectors_counted
AFTER INSERT ON vectors
BEGIN
    INSERT INTO counted
    SELECT
        space, audience, user, conversation, category, state, importance,
        0, 0, octet_length(NEW.vector), 0, 0, 0, 0, 0, 0
    FROM memories
    WHERE seq = NEW.memory;
END;

CREATE TRIGGER vectors_replaced
AFTER UPDATE OF vector ON vectors
WHEN octet_length(OLD.vector) <> octet_length(NEW.vector)
BEGIN
    INSERT INTO counted
    SELECT
        space, audience, user, conversation, category, state, importance,
        0, 0, octet_length(NEW.vector) - octet_length(OLD.vector), 0, 0, 0, 0, 0, 0
    FROM memories
    WHERE seq = NEW.memory;
END;

CREATE TRIGGER vectors_taken_out
AFTER DELETE ON vectors
BEGIN
    INSERT INTO counted
    SELECT
        space, audience, user, conversation, category, state, importance,
        0, 0, -octet_length(OLD.vector), 0, 0, 0, 0, 0, 0
    FROM memories
    WHERE seq = OLD.memory;
END;

INSERT INTO counted
SELECT
    space, audience, user, conversation, category, state, importance,
    memories, text_bytes, vector_bytes, reads, squared_reads, read_memories, judged, agreed, repeats
FROM counts_of_memories;

INSERT INTO happened
SELECT space, audience, user, conversation, category, created_at / 3600000, 1, 0, 0, 0
FROM memories;

-- When earlier reads happened is not known by memory: all count as of the last one.
INSERT INTO happened
SELECT space, audience, user, conversation, category, accessed_at / 3600000, 0, access_count, 0, 0
FROM memories
WHERE access_count > 0;

-- --- results of writes, for callers that send one twice ---

CREATE TABLE results (
    number    INTEGER PRIMARY KEY,
    caller    TEXT NOT NULL,
    key       TEXT NOT NULL,
    operation TEXT NOT NULL,
    arguments BLOB NOT NULL,  -- SHA-256
    result    TEXT NOT NULL,
    at        INTEGER NOT NULL,
    UNIQUE (caller, key)
) STRICT;

CREATE INDEX results_by_time ON results (at);

-- Which memories a result speaks of: it goes when one of them is erased.
CREATE TABLE result_memories (
    memory TEXT NOT NULL,
    result INTEGER NOT NULL REFERENCES results ON DELETE CASCADE,
    PRIMARY KEY (memory, result)
) STRICT, WITHOUT ROWID;

CREATE INDEX result_memories_by_result ON result_memories (result);

-- What cursors are signed with: made here, so that no list has to write before it can answer.
INSERT INTO facts (key, value) VALUES ('cursor_key', lower(hex(randomblob(32)))) ON CONFLICT (key) DO NOTHING;

-- See 0001: what a grown store looks like. Dropping an index took its row along.
INSERT INTO sqlite_stat1 (tbl, idx, stat)
VALUES
    ('memories', 'memories_by_created', '100000 50000 25000 2 1 1 1 1 1 1 1'),
    ('memories', 'memories_by_updated', '100000 50000 25000 2 1 1 1 1 1 1 1 1'),
    ('memories', 'memories_by_accessed', '100000 50000 25000 2 1 1 1 1 1 1 1 1'),
    ('memories', 'memories_by_importance', '100000 50000 25000 300 1 1 1 1 1 1 1'),
    ('memories', 'memories_by_access_count', '100000 50000 25000 300 1 1 1 1 1 1 1 1'),
    ('memories', 'memories_by_length', '100000 50000 25000 50 1 1 1 1 1 1 1 1'),
    ('memories', 'memories_by_expiry', '10000 5000 2 1 1 1 1 1'),
    ('memories', 'memories_by_deletion', '10000 5000 2 1 1 1 1 1'),
    ('memories', 'memories_by_recovery', '5000 2'),
    ('results', 'sqlite_autoindex_results_1', '10000 1000 1'),
    ('results', 'results_by_time', '10000 1');
