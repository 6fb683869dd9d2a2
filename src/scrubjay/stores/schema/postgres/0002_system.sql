-- Statistics, and results kept for repeated requests. Released files are never edited.

CREATE INDEX memories_by_deletion ON memories (space, deleted_at) WHERE state >= 3;
CREATE INDEX memories_by_recovery ON memories (recoverable_until) WHERE state = 3;

-- --- statistics ---
--
-- A memory is counted in several parts: '' (everything), 'user:<name>', 'category:<name>', 'conversation:<name>'.
-- Within a part what differs in who sees it stands apart (space, audience), so that a caller's sum is exact. The program
-- adds up what a transaction changes and writes it once, at its end.

CREATE TABLE totals (
    space         TEXT COLLATE "C" NOT NULL,
    part          TEXT COLLATE "C" NOT NULL,
    audience      TEXT COLLATE "C" NOT NULL,
    state         SMALLINT NOT NULL,
    category      TEXT COLLATE "C" NOT NULL,
    level         TEXT COLLATE "C" NOT NULL,  -- stores.base.Level
    memories      BIGINT NOT NULL,
    text_bytes    BIGINT NOT NULL,
    vector_bytes  BIGINT NOT NULL,
    reads         BIGINT NOT NULL,
    squared_reads BIGINT NOT NULL,
    read_memories BIGINT NOT NULL,
    judged        BIGINT NOT NULL,
    agreed        BIGINT NOT NULL,
    repeats       BIGINT NOT NULL,
    PRIMARY KEY (space, part, audience, state, category, level)
) WITH (fillfactor = 50);

-- What happened when, by the hour and once more by the day, so that years are added up in a moment.
CREATE TABLE activity (
    space          TEXT COLLATE "C" NOT NULL,
    part           TEXT COLLATE "C" NOT NULL,
    hours          SMALLINT NOT NULL,  -- 1: an hour's row, 24: a day's
    at             BIGINT NOT NULL,    -- its first hour, since 1970; what is older counts as of then
    audience       TEXT COLLATE "C" NOT NULL,
    created        BIGINT NOT NULL,
    reads          BIGINT NOT NULL,
    consolidations BIGINT NOT NULL,
    consolidated   BIGINT NOT NULL,
    PRIMARY KEY (space, part, hours, at, audience)
) WITH (fillfactor = 50);

-- --- results of writes, for callers that send one twice ---

CREATE TABLE results (
    caller    TEXT COLLATE "C" NOT NULL,
    key       TEXT COLLATE "C" NOT NULL,
    operation TEXT COLLATE "C" NOT NULL,
    arguments BYTEA NOT NULL,  -- SHA-256
    result    TEXT COLLATE "C" NOT NULL,
    at        BIGINT NOT NULL,
    PRIMARY KEY (caller, key)
);

CREATE INDEX results_by_time ON results (at);

-- Which memories a result speaks of: it goes when one of them is erased.
CREATE TABLE result_memories (
    memory TEXT COLLATE "C" NOT NULL,
    caller TEXT COLLATE "C" NOT NULL,
    key    TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (memory, caller, key),
    FOREIGN KEY (caller, key) REFERENCES results ON DELETE CASCADE
);

CREATE INDEX result_memories_by_result ON result_memories (caller, key);

-- What cursors are signed with: made here, so that no list has to write before it can answer.
INSERT INTO facts (key, value)
VALUES ('cursor_key', replace(gen_random_uuid()::TEXT || gen_random_uuid()::TEXT, '-', ''));
