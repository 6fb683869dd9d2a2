-- The first schema. Released files are never edited: a change is a new file with the next number.
--
-- Times are milliseconds since 1970, UTC. JSON is text. Text sorts by code point ("C"), whatever the database speaks.
-- Spaces, users and conversations stand in the rows by name, and the space comes first in every key: one space is one
-- shard's work where there are shards. So there are no foreign keys, triggers or columns that count by themselves;
-- who writes holds the writers' lock (see postgres/connections.py), which keeps single what no key can.
-- A memory's row is never removed: erased ones stay as tombstones (state 4).

CREATE TABLE spaces (
    name          TEXT COLLATE "C" PRIMARY KEY,
    description   TEXT,
    created_at    BIGINT NOT NULL,
    events        BIGINT NOT NULL DEFAULT 0,  -- number of the last event in the feed
    passages      BIGINT NOT NULL DEFAULT 0,  -- rows of `words` …
    passage_words BIGINT NOT NULL DEFAULT 0   -- … and how many words they hold in all
);

CREATE SEQUENCE arrivals;  -- memories.seq; taken under the writers' lock, so numbers grow in the order of commits

CREATE TABLE memories (
    space             TEXT COLLATE "C" NOT NULL,
    seq               BIGINT NOT NULL,
    id                TEXT COLLATE "C" NOT NULL,
    state             SMALLINT NOT NULL,              -- memory.State
    audience          TEXT COLLATE "C" NOT NULL,      -- 'public', 'shared', or 'private:' and the user's name
    user_id           TEXT COLLATE "C" NOT NULL,
    conversation_id   TEXT COLLATE "C",
    session_id        TEXT COLLATE "C",
    kind              TEXT COLLATE "C" NOT NULL,
    category          TEXT COLLATE "C" NOT NULL,
    importance        DOUBLE PRECISION NOT NULL,
    confidence        DOUBLE PRECISION NOT NULL,
    created_at        BIGINT NOT NULL,
    updated_at        BIGINT NOT NULL,
    accessed_at       BIGINT NOT NULL,                -- not indexed, like the next one: a counted read stays cheap
    access_count      BIGINT NOT NULL,
    expires_at        BIGINT,
    valid_from        BIGINT,
    valid_until       BIGINT,
    verified_at       BIGINT,
    deleted_at        BIGINT,
    recoverable_until BIGINT,
    version           BIGINT NOT NULL,
    text_version      BIGINT NOT NULL,                -- the version that last changed the text
    parts             INTEGER NOT NULL,               -- how many vectors the text should have
    vector_bytes      BIGINT NOT NULL DEFAULT 0,      -- of those that it has
    category_agreed   SMALLINT,                       -- with most of its neighbours' when stored; NULL: not judged
    repeat            SMALLINT NOT NULL DEFAULT 0,    -- 1: an earlier row in states 0 or 2 has its text
    hlc               BIGINT NOT NULL,
    origin            TEXT COLLATE "C" NOT NULL,
    status            TEXT COLLATE "C" NOT NULL,
    source            TEXT COLLATE "C" NOT NULL,
    access_level      TEXT COLLATE "C" NOT NULL,
    supersedes        TEXT COLLATE "C",
    superseded_by     TEXT COLLATE "C",
    client            TEXT COLLATE "C" NOT NULL,      -- provenance
    caller            TEXT COLLATE "C" NOT NULL,
    transport         TEXT COLLATE "C" NOT NULL,
    dialect           TEXT COLLATE "C",
    fingerprint       BYTEA,                          -- of the text as the engine compares it; none once erased
    content_hash      BYTEA,                          -- SHA-256 of the text as written: makes bit rot visible
    content_length    INTEGER NOT NULL,               -- code points
    topic             TEXT COLLATE "C",
    path              TEXT COLLATE "C" NOT NULL,
    title             TEXT COLLATE "C" NOT NULL,
    flags             TEXT COLLATE "C" NOT NULL,      -- JSON
    tags              TEXT COLLATE "C" NOT NULL,      -- JSON
    auto_tags         TEXT COLLATE "C" NOT NULL,      -- JSON
    metadata          TEXT COLLATE "C" NOT NULL,      -- JSON
    detail            TEXT COLLATE "C" NOT NULL,      -- JSON
    content           TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (space, seq)
) WITH (fillfactor = 85);  -- room to count reads in place

CREATE INDEX memories_by_id ON memories (id);  -- ids name their memory in every space; the writers' lock keeps them single
CREATE UNIQUE INDEX memories_by_path ON memories (space, path) WHERE state IN (0, 1);
CREATE INDEX memories_by_created ON memories (space, state, created_at, seq);
CREATE INDEX memories_by_updated ON memories (space, state, updated_at, seq);
CREATE INDEX memories_by_importance ON memories (space, state, importance, seq);
CREATE INDEX memories_by_user ON memories (space, user_id, state, created_at);
CREATE INDEX memories_by_conversation
ON memories (space, conversation_id, created_at) WHERE conversation_id IS NOT NULL;
CREATE INDEX memories_by_expiry ON memories (space, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX memories_by_fingerprint ON memories (fingerprint) WHERE fingerprint IS NOT NULL;

-- Other ids of a memory.
CREATE TABLE aliases (
    space  TEXT COLLATE "C" NOT NULL,
    alias  TEXT COLLATE "C" NOT NULL,
    memory BIGINT NOT NULL,
    PRIMARY KEY (space, alias)
);

CREATE INDEX aliases_by_alias ON aliases (alias);  -- like memories_by_id
CREATE INDEX aliases_by_memory ON aliases (space, memory);

-- Given and found tags, for filters; what is shown stands in the memory's row.
CREATE TABLE tags (
    space  TEXT COLLATE "C" NOT NULL,
    tag    TEXT COLLATE "C" NOT NULL,
    memory BIGINT NOT NULL,
    PRIMARY KEY (space, memory, tag)
);

CREATE INDEX tags_by_tag ON tags (space, tag, memory);

-- To whom memories were handed out; only the newest rows are kept.
CREATE TABLE recalls (
    number   BIGINT GENERATED BY DEFAULT AS IDENTITY,
    at       BIGINT NOT NULL,
    space    TEXT COLLATE "C" NOT NULL,
    user_id  TEXT COLLATE "C" NOT NULL,
    client   TEXT COLLATE "C" NOT NULL,
    memories TEXT COLLATE "C" NOT NULL,  -- JSON, ids
    PRIMARY KEY (space, number)
);

CREATE INDEX recalls_by_number ON recalls (number);

CREATE TABLE recall_counts (
    space    TEXT COLLATE "C" NOT NULL,
    user_id  TEXT COLLATE "C" NOT NULL,
    hour     BIGINT NOT NULL,  -- hours since 1970
    recalls  BIGINT NOT NULL,
    memories BIGINT NOT NULL,
    PRIMARY KEY (space, user_id, hour)
);

-- Former states of a memory: the row as it was, as JSON by column.
CREATE TABLE versions (
    space       TEXT COLLATE "C" NOT NULL,
    memory      BIGINT NOT NULL,
    version     BIGINT NOT NULL,
    id          TEXT COLLATE "C" NOT NULL,
    snapshot    TEXT COLLATE "C" NOT NULL,
    replaced_at BIGINT NOT NULL,
    replaced_by TEXT COLLATE "C" NOT NULL,
    reason      TEXT COLLATE "C",
    PRIMARY KEY (space, memory, version)
);

-- Links name memories by id, so that one may arrive before the memory it points at. They may cross spaces, and are
-- few: no space of their own.
CREATE TABLE links (
    number     BIGINT GENERATED BY DEFAULT AS IDENTITY,
    kind       TEXT COLLATE "C" NOT NULL,
    source     TEXT COLLATE "C" NOT NULL,
    target     TEXT COLLATE "C" NOT NULL,
    score      DOUBLE PRECISION,
    state      TEXT COLLATE "C" NOT NULL,
    given      BOOLEAN NOT NULL,
    reason     TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    hlc        BIGINT NOT NULL,
    origin     TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (source, target, kind)
);

CREATE INDEX links_by_target ON links (target);

CREATE TABLE events (
    space     TEXT COLLATE "C" NOT NULL,
    number    BIGINT NOT NULL,
    at        BIGINT NOT NULL,
    action    TEXT COLLATE "C" NOT NULL,
    memory    TEXT COLLATE "C",
    fields    TEXT COLLATE "C" NOT NULL,  -- JSON
    user_id   TEXT COLLATE "C" NOT NULL,
    client    TEXT COLLATE "C" NOT NULL,  -- provenance
    caller    TEXT COLLATE "C" NOT NULL,
    transport TEXT COLLATE "C" NOT NULL,
    dialect   TEXT COLLATE "C",
    reason    TEXT COLLATE "C",
    PRIMARY KEY (space, number)
);

CREATE TABLE leases (
    name     TEXT COLLATE "C" PRIMARY KEY,
    holder   TEXT COLLATE "C" NOT NULL,
    until    TIMESTAMPTZ NOT NULL  -- by the database's clock, which all servers share
);

-- Facts about the store itself: schema, origin, model …
CREATE TABLE facts (
    key   TEXT COLLATE "C" PRIMARY KEY,
    value TEXT COLLATE "C" NOT NULL
);

-- One row: the hybrid logical clock.
CREATE TABLE counters (
    clock BIGINT NOT NULL
);

-- In a table of their own: a change of a memory must not touch the index of vectors. Their length is the model's;
-- an index over one length is made when there are many (see postgres/vectors.py).
CREATE TABLE vectors (
    space  TEXT COLLATE "C" NOT NULL,
    memory BIGINT NOT NULL,
    part   SMALLINT NOT NULL,
    vector VECTOR NOT NULL,
    PRIMARY KEY (space, memory, part)
);

-- Memories whose vectors are not all there yet.
CREATE TABLE pending (
    space     TEXT COLLATE "C" NOT NULL,
    memory    BIGINT NOT NULL,
    next_part INTEGER NOT NULL,
    attempts  INTEGER NOT NULL DEFAULT 0,
    judged    BOOLEAN NOT NULL DEFAULT FALSE,
    PRIMARY KEY (space, memory)
);

CREATE INDEX pending_by_attempts ON pending (attempts, memory);

-- Words as words.py makes them and stems.py keeps them, a row per passage. A lexeme's weight says how often the passage
-- holds it: D once, C twice, B three times, A more often. One more lexeme names the space, so that the index leads to
-- one space's rows alone.
CREATE TABLE words (
    space  TEXT COLLATE "C" NOT NULL,
    memory BIGINT NOT NULL,
    place  SMALLINT NOT NULL,
    length INTEGER NOT NULL,  -- in words
    terms  TSVECTOR NOT NULL,
    PRIMARY KEY (space, memory, place)
);

CREATE INDEX words_by_term ON words USING gin (terms) WITH (fastupdate = off);

-- In how many passages of a space each word stands.
CREATE TABLE vocabulary (
    space    TEXT COLLATE "C" NOT NULL,
    term     TEXT COLLATE "C" NOT NULL,
    passages BIGINT NOT NULL,
    PRIMARY KEY (space, term)
) WITH (fillfactor = 70);

INSERT INTO counters (clock) VALUES (0);
INSERT INTO facts (key, value) VALUES ('origin', substr(replace(gen_random_uuid()::TEXT, '-', ''), 17));
INSERT INTO spaces (name, created_at) VALUES ('default', floor(extract(epoch FROM now()) * 1000)::BIGINT);
