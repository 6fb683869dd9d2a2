-- A store in a schema of a PostgreSQL database. `postgres_from_….sql` bring earlier ones here, see
-- stores/scripts.py: whoever changes this file adds one of them.
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
    passage_words BIGINT NOT NULL DEFAULT 0,  -- … and how many words they hold in all
    checkpoints   BIGINT NOT NULL DEFAULT 0,  -- number of the last one
    mirrored      BOOLEAN NOT NULL DEFAULT FALSE,  -- every memory of it is kept as a file
    title         TEXT COLLATE "C",
    deleted_at    BIGINT                      -- it was put away once it was empty
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
    topic_key         TEXT COLLATE "C",               -- memory.topic_key: what topics are compared by
    packed_bytes      BIGINT,                         -- NULL: it was not put away
    final             SMALLINT NOT NULL DEFAULT 0,    -- 1: somebody wished it erased, and no other store brings it back;
                                                      -- 0: not erased, or because its date had come: with its stamp
    also              TEXT COLLATE "C" NOT NULL DEFAULT '[]',  -- JSON, other words under which it may be looked for
    former_also       TEXT COLLATE "C" NOT NULL DEFAULT '[]',  -- JSON, values.memory.FormerPhrases
    PRIMARY KEY (space, seq)
) WITH (fillfactor = 85);  -- room to count reads in place

-- Ids name their memory in every space; the writers' lock keeps them single. Most questions about ids only ask where the
-- memory's vectors and words are.
CREATE INDEX memories_by_id ON memories (id) INCLUDE (space, seq);

-- One shared or public memory at a path, and one private one of each user: that another user keeps something private at
-- a path must not show in an error.
CREATE UNIQUE INDEX memories_by_place
    ON memories (space, path, (CASE audience WHEN 'public' THEN 'shared' ELSE audience END))
    WHERE state IN (0, 1);

CREATE INDEX memories_by_created ON memories (space, state, created_at, seq);
CREATE INDEX memories_by_updated ON memories (space, state, updated_at, seq);
CREATE INDEX memories_by_importance ON memories (space, state, importance, seq);
CREATE INDEX memories_by_user ON memories (space, user_id, state, created_at);
CREATE INDEX memories_by_conversation
ON memories (space, conversation_id, created_at) WHERE conversation_id IS NOT NULL;
CREATE INDEX memories_by_expiry ON memories (space, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX memories_by_fingerprint ON memories (fingerprint) WHERE fingerprint IS NOT NULL;
CREATE INDEX memories_by_deletion ON memories (space, deleted_at) WHERE state >= 3;
CREATE INDEX memories_by_recovery ON memories (recoverable_until) WHERE state = 3;
CREATE INDEX memories_by_topic ON memories (space, topic_key, state, created_at) WHERE topic_key IS NOT NULL;
CREATE INDEX memories_by_flag ON memories (space, state, created_at) WHERE flags <> '[]';

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
CREATE INDEX links_open ON links (created_at, number) WHERE kind = 'may_outdate' AND state = 'open';

-- Supersessions that do not count for everyone. A memory's own columns name what supersedes it (and what it supersedes)
-- if everyone who may see the memory may see that one too. Others are named here, and told only to those who may see
-- them. It follows from links.
CREATE TABLE asides (
    memory TEXT COLLATE "C" NOT NULL,  -- that says it, by id, like links
    role   TEXT COLLATE "C" NOT NULL,  -- the column that it stands in for: supersedes, superseded_by
    other  TEXT COLLATE "C" NOT NULL,  -- the memory that is named
    hlc    BIGINT NOT NULL,            -- of the link: the newest counts
    PRIMARY KEY (memory, role, other)
);

CREATE INDEX asides_by_other ON asides (other);

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
    credential TEXT COLLATE "C",  -- with which it was done
    PRIMARY KEY (space, number)
);

-- Reasons of events go with the memory that they speak of (hard delete).
CREATE INDEX events_by_reason ON events (memory) WHERE reason IS NOT NULL;

-- What a client is still to be told: which of its new memories could not be compared with earlier ones in time. A row
-- goes when the client has been told what the comparison found.
CREATE TABLE owed (
    memory  TEXT COLLATE "C" NOT NULL,  -- by id, like links
    user_id TEXT COLLATE "C" NOT NULL,  -- who stored it …
    client  TEXT COLLATE "C" NOT NULL,  -- … with which program
    PRIMARY KEY (memory)
);

CREATE INDEX owed_by_client ON owed (user_id, client);

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

-- Vectors of a text's parts, by the store's own model and by further ones (engine/store/models.py). Those of two models
-- are never compared. A further model's come all together, or not at all: then the memory is found without them.
-- They are in a table of their own, because a change of a memory must not touch the index of vectors. Their length is the
-- model's; an index over one length is made when there are many (see postgres/vectors.py).
CREATE TABLE vectors (
    space  TEXT COLLATE "C" NOT NULL,
    memory BIGINT NOT NULL,
    part   SMALLINT NOT NULL,
    model  TEXT COLLATE "C" NOT NULL,  -- a further model's fingerprint; '' for the store's own, which a fact names
    vector VECTOR NOT NULL,
    PRIMARY KEY (space, memory, model, part)
);

CREATE INDEX vectors_by_model ON vectors (model) WHERE model <> '';

-- Those of further models go with the text that they were made of, whoever changes or erases it.
CREATE FUNCTION forget_vectors() RETURNS TRIGGER
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $$
BEGIN
    DELETE FROM vectors WHERE space = OLD.space AND memory = OLD.seq AND model <> '';
    RETURN NULL;
END;
$$;

CREATE TRIGGER vectors_outdated
AFTER UPDATE OF fingerprint, also ON memories
FOR EACH ROW
WHEN (OLD.fingerprint IS DISTINCT FROM NEW.fingerprint OR OLD.also <> NEW.also)
EXECUTE FUNCTION forget_vectors();

-- Signatures of vectors: two bits for each number, beside what most filters ask. Is it above -t, is it above t, where t
-- is half of what a number of a vector of length one has on average (docs/decisions/the-index.md). Rows are a tenth as
-- wide as vectors and memories are: so those that a filter admits are compared without reading either. The program keeps
-- them (see postgres/signatures.py); they say nothing that is not in `memories` and `vectors`.

CREATE FUNCTION levels_of(given VECTOR) RETURNS BIT VARYING
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN
    binary_quantize(given + array_fill((0.5 / sqrt(vector_dims(given)))::REAL, ARRAY[vector_dims(given)])::VECTOR)
    || binary_quantize(given - array_fill((0.5 / sqrt(vector_dims(given)))::REAL, ARRAY[vector_dims(given)])::VECTOR);

CREATE TABLE signatures (
    space           TEXT COLLATE "C" NOT NULL,
    memory          BIGINT NOT NULL,
    part            SMALLINT NOT NULL,
    id              TEXT COLLATE "C" NOT NULL,
    state           SMALLINT NOT NULL,
    audience        TEXT COLLATE "C" NOT NULL,
    user_id         TEXT COLLATE "C" NOT NULL,
    conversation_id TEXT COLLATE "C",
    kind            TEXT COLLATE "C" NOT NULL,
    category        TEXT COLLATE "C" NOT NULL,
    importance      DOUBLE PRECISION NOT NULL,
    created_at      BIGINT NOT NULL,
    expires_at      BIGINT,
    levels          BIT VARYING STORAGE PLAIN NOT NULL,  -- read as it is, without a copy
    PRIMARY KEY (space, memory, part)
);

-- With all that is compared, so that a category, a ninth of a store on every page of it, is read from a few pages.
CREATE INDEX signatures_of_category ON signatures (space, category, state)
    INCLUDE (memory, part, id, audience, created_at, expires_at, levels);
CREATE INDEX signatures_by_user ON signatures (space, user_id, state);
CREATE INDEX signatures_by_created ON signatures (space, state, created_at);

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
-- one space's rows alone. They carry what most filters ask, as signatures do (CARRIED in postgres/filters.py): what a
-- filter leaves out is not even weighed, and a search by words looks at no memory.
CREATE TABLE words (
    space           TEXT COLLATE "C" NOT NULL,
    memory          BIGINT NOT NULL,
    place           SMALLINT NOT NULL,
    length          INTEGER NOT NULL,  -- in words
    terms           TSVECTOR NOT NULL,
    id              TEXT COLLATE "C" NOT NULL,
    state           SMALLINT NOT NULL,
    audience        TEXT COLLATE "C" NOT NULL,
    user_id         TEXT COLLATE "C" NOT NULL,
    conversation_id TEXT COLLATE "C",
    kind            TEXT COLLATE "C" NOT NULL,
    category        TEXT COLLATE "C" NOT NULL,
    importance      DOUBLE PRECISION NOT NULL,
    created_at      BIGINT NOT NULL,
    expires_at      BIGINT,
    PRIMARY KEY (space, memory, place)
) WITH (fillfactor = 90);  -- room for them to change without the index of words

CREATE INDEX words_by_term ON words USING gin (terms) WITH (fastupdate = off);

-- In how many passages of a space each word stands.
CREATE TABLE vocabulary (
    space    TEXT COLLATE "C" NOT NULL,
    term     TEXT COLLATE "C" NOT NULL,
    passages BIGINT NOT NULL,
    PRIMARY KEY (space, term)
) WITH (fillfactor = 70);

-- Frequencies of words within what a caller may see: `vocabulary` and `spaces` count over a whole space, so another's
-- private memories would show in everybody's scores. Here what is not shared is counted once more by audience, and taken
-- off for those who may not see it.

CREATE TABLE audience_vocabulary (
    space    TEXT COLLATE "C" NOT NULL,
    term     TEXT COLLATE "C" NOT NULL,
    audience TEXT COLLATE "C" NOT NULL,  -- as in memories, but never 'shared'
    passages BIGINT NOT NULL,
    PRIMARY KEY (space, term, audience)
) WITH (fillfactor = 70);

CREATE TABLE audience_passages (
    space    TEXT COLLATE "C" NOT NULL,
    audience TEXT COLLATE "C" NOT NULL,
    passages BIGINT NOT NULL,
    words    BIGINT NOT NULL,
    PRIMARY KEY (space, audience)
) WITH (fillfactor = 70);

CREATE FUNCTION count_audience() RETURNS TRIGGER
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $$
BEGIN
    IF TG_OP <> 'INSERT' AND OLD.audience <> 'shared' THEN
        UPDATE audience_vocabulary AS known
        SET passages = known.passages - 1
        FROM unnest(OLD.terms) AS gone
        WHERE known.space = OLD.space AND known.term = gone.lexeme AND known.audience = OLD.audience;
        -- A word that stands nowhere any more may be what was to be erased.
        DELETE FROM audience_vocabulary AS known
        USING unnest(OLD.terms) AS gone
        WHERE known.space = OLD.space AND known.term = gone.lexeme AND known.audience = OLD.audience
        AND known.passages <= 0;
        UPDATE audience_passages AS known
        SET passages = known.passages - 1, words = known.words - OLD.length
        WHERE known.space = OLD.space AND known.audience = OLD.audience;
    END IF;
    IF TG_OP <> 'DELETE' AND NEW.audience <> 'shared' THEN
        INSERT INTO audience_vocabulary AS known (space, term, audience, passages)
        SELECT NEW.space, lexeme, NEW.audience, 1
        FROM unnest(NEW.terms)
        WHERE weights IS NOT NULL
        ON CONFLICT (space, term, audience) DO UPDATE SET passages = known.passages + 1;
        INSERT INTO audience_passages AS known (space, audience, passages, words)
        VALUES (NEW.space, NEW.audience, 1, NEW.length)
        ON CONFLICT (space, audience) DO UPDATE
        SET passages = known.passages + 1, words = known.words + excluded.words;
    END IF;
    RETURN NULL;
END;
$$;

CREATE TRIGGER words_came
AFTER INSERT ON words
FOR EACH ROW
WHEN (NEW.audience <> 'shared')
EXECUTE FUNCTION count_audience();

CREATE TRIGGER words_went
AFTER DELETE ON words
FOR EACH ROW
WHEN (OLD.audience <> 'shared')
EXECUTE FUNCTION count_audience();

CREATE TRIGGER words_changed_hands
AFTER UPDATE OF space, audience, length, terms ON words
FOR EACH ROW
WHEN (
    (OLD.space, OLD.audience, OLD.length) IS DISTINCT FROM (NEW.space, NEW.audience, NEW.length)
    OR OLD.terms IS DISTINCT FROM NEW.terms
)
EXECUTE FUNCTION count_audience();

-- --- statistics ---
--
-- What there is is counted from `memories` when it is asked. What no row of it knows is kept by the hour: how often
-- memories were handed out and consolidated, once for each part they are in: '' (everything), 'user:<name>',
-- 'category:<name>', 'conversation:<name>', as it was then.

CREATE TABLE activity (
    space          TEXT COLLATE "C" NOT NULL,
    part           TEXT COLLATE "C" NOT NULL,
    at             BIGINT NOT NULL,  -- hours since 1970
    audience       TEXT COLLATE "C" NOT NULL,
    reads          BIGINT NOT NULL,
    consolidations BIGINT NOT NULL,
    consolidated   BIGINT NOT NULL,
    PRIMARY KEY (space, part, at, audience)
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

-- Work that outlives the call that asked for it. Whether an unfinished one runs or waits says the lease `job:<id>`.
CREATE TABLE jobs (
    number      BIGINT GENERATED BY DEFAULT AS IDENTITY,
    id          TEXT COLLATE "C" PRIMARY KEY,
    kind        TEXT COLLATE "C" NOT NULL,
    user_id     TEXT COLLATE "C" NOT NULL,  -- the caller
    role        TEXT COLLATE "C" NOT NULL,
    granted     TEXT COLLATE "C",           -- JSON; NULL: every space
    spaces      TEXT COLLATE "C" NOT NULL,  -- JSON
    client      TEXT COLLATE "C" NOT NULL,  -- provenance
    transport   TEXT COLLATE "C" NOT NULL,
    dialect     TEXT COLLATE "C",
    arguments   TEXT COLLATE "C" NOT NULL,  -- JSON
    state       TEXT COLLATE "C" NOT NULL,  -- JSON
    outcome     TEXT COLLATE "C",           -- completed, failed, cancelled; NULL: not finished
    done        BIGINT NOT NULL,
    total       BIGINT,
    note        TEXT COLLATE "C" NOT NULL,
    cancelling  BOOLEAN NOT NULL,
    attempts    BIGINT NOT NULL,
    result      TEXT COLLATE "C",           -- JSON
    error       TEXT COLLATE "C",           -- JSON
    created_at  BIGINT NOT NULL,
    started_at  BIGINT,
    finished_at BIGINT
);

CREATE INDEX jobs_by_user ON jobs (user_id, number);
CREATE INDEX jobs_unfinished ON jobs (number) WHERE outcome IS NULL;
CREATE INDEX jobs_by_end ON jobs (finished_at) WHERE finished_at IS NOT NULL;

-- Memories that long work holds: a change by anybody else is refused meanwhile.
CREATE TABLE holds (
    memory TEXT COLLATE "C" PRIMARY KEY,
    holder TEXT COLLATE "C" NOT NULL,
    until  TIMESTAMPTZ NOT NULL  -- by the database's clock
);

CREATE INDEX holds_by_holder ON holds (holder);

-- --- cold storage ---
--
-- A memory that was put away keeps its row with what lists are filtered, sorted and counted by, and its words; its text,
-- title, path, metadata, detail and history are packed here or in an object elsewhere.

CREATE TABLE archives (
    space    TEXT COLLATE "C" NOT NULL,
    memory   BIGINT NOT NULL,
    id       TEXT COLLATE "C" NOT NULL,  -- an alias of the memory
    tier     TEXT COLLATE "C" NOT NULL,  -- memory.Tier
    at       BIGINT NOT NULL,
    bytes    BIGINT NOT NULL,            -- packed
    checksum BYTEA NOT NULL,             -- SHA-256 of what is packed
    object   TEXT COLLATE "C",           -- its name elsewhere; NULL: it is here
    packed   BYTEA,
    PRIMARY KEY (space, memory)
);

-- Objects that are to be removed once their time has come: those of purged and restored memories, and those that were
-- about to be written when a process died. So no text outlives its memory.
CREATE TABLE objects_to_remove (
    object TEXT COLLATE "C" PRIMARY KEY,
    due    BIGINT NOT NULL
);

CREATE INDEX objects_to_remove_by_due ON objects_to_remove (due);

-- --- files ---
--
-- Spaces that are folders of Markdown files as well.
--
-- A memory with a row in `files` is kept as a file. Every change of it puts it into `outbox`, in the transaction of the
-- change and whoever makes it: an entry means "write the file", never "it was deleted". Whoever has written the file,
-- or has taken the change from it, takes the entry out again. The space is that of the file: a memory may leave it.

CREATE TABLE files (
    space   TEXT COLLATE "C" NOT NULL,
    memory  TEXT COLLATE "C" NOT NULL,             -- its id
    name    TEXT COLLATE "C" NOT NULL,             -- below the folder, with forward slashes; '' until one was chosen
    path    TEXT COLLATE "C" NOT NULL DEFAULT '',  -- the memory's, when both sides last agreed
    version BIGINT NOT NULL DEFAULT 0,             -- the memory's, then
    hash    BYTEA,                                 -- SHA-256 of the file's bytes then; none before the first time
    stamp   TEXT COLLATE "C" NOT NULL DEFAULT '',  -- what the file system said of the file then; '' is never believed
    PRIMARY KEY (space, memory)
);

CREATE INDEX files_by_memory ON files (memory);
CREATE INDEX files_by_name ON files (space, name);

CREATE TABLE outbox (
    space   TEXT COLLATE "C" NOT NULL,
    memory  TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,                       -- of the memory when it was last put here
    PRIMARY KEY (space, memory)
);
CREATE INDEX outbox_by_memory ON outbox (memory);

-- Sections of a space (the folder part of paths) that are described, or were made before anything lay in them.
CREATE TABLE sections (
    space       TEXT COLLATE "C" NOT NULL,
    path        TEXT COLLATE "C" NOT NULL,
    description TEXT COLLATE "C",
    PRIMARY KEY (space, path)
);

-- --- sync ---

-- Which other stores' changes a memory's present state includes, up to what clock; its own stamp is in its row. Most
-- memories are only ever changed by one store and have no row here.
CREATE TABLE ancestry (
    space  TEXT COLLATE "C" NOT NULL,
    memory BIGINT NOT NULL,
    origin TEXT COLLATE "C" NOT NULL,
    hlc    BIGINT NOT NULL,
    PRIMARY KEY (space, memory, origin)
);

CREATE TABLE endpoints (
    name      TEXT COLLATE "C" PRIMARY KEY,
    url       TEXT COLLATE "C" NOT NULL,
    spaces    TEXT COLLATE "C",  -- JSON; NULL: every space
    added_at  BIGINT NOT NULL,
    synced_at BIGINT
);

-- How far one store has heard another's feed of a space. `proof` tells the event it stopped at from another of the same
-- number, as in a store that was put back from a copy.
CREATE TABLE heard (
    speaker  TEXT COLLATE "C" NOT NULL,  -- origin
    listener TEXT COLLATE "C" NOT NULL,  -- origin
    space    TEXT COLLATE "C" NOT NULL,
    number   BIGINT NOT NULL,
    proof    TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (speaker, listener, space)
);

-- States that met and did not know of each other.
CREATE TABLE sync_conflicts (
    number     BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    memory     TEXT COLLATE "C" NOT NULL,
    endpoint   TEXT COLLATE "C" NOT NULL,
    policy     TEXT COLLATE "C" NOT NULL,
    at         BIGINT NOT NULL,
    outcome    TEXT COLLATE "C",  -- NULL: waits for somebody to decide
    settled_at BIGINT,
    ours       TEXT COLLATE "C",  -- JSON, both as they were; NULL once the memory is erased
    theirs     TEXT COLLATE "C"
);

CREATE UNIQUE INDEX sync_conflicts_open ON sync_conflicts (endpoint, memory) WHERE outcome IS NULL;
CREATE INDEX sync_conflicts_by_memory ON sync_conflicts (memory);

-- --- callers ---

-- Secrets are never kept: a key as its SHA-256 (it is random, so that is enough), a password as argon2 makes it.
-- Revoked rows stay, so that the audit can name them.
CREATE TABLE credentials (
    id         TEXT COLLATE "C" PRIMARY KEY,
    kind       TEXT COLLATE "C" NOT NULL,     -- memory.CredentialKind
    user_id    TEXT COLLATE "C" NOT NULL,
    role       TEXT COLLATE "C" NOT NULL,     -- memory.Role
    spaces     TEXT COLLATE "C",              -- JSON; none: all that its user is granted
    name       TEXT COLLATE "C" NOT NULL,
    secret     BYTEA,
    created_at BIGINT NOT NULL,
    created_by TEXT COLLATE "C" NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT
);

CREATE INDEX credentials_by_user ON credentials (user_id);

CREATE TABLE grants (
    user_id TEXT COLLATE "C" NOT NULL,
    space   TEXT COLLATE "C" NOT NULL,        -- a name, or * for every space
    at      BIGINT NOT NULL,
    by      TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (user_id, space)
);

CREATE TABLE sessions (
    secret     BYTEA PRIMARY KEY,             -- SHA-256 of the cookie
    credential TEXT COLLATE "C",              -- none: the local owner
    guard      TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);

-- Changes of rights, beside the feeds of the spaces, which tell of changes of memories.
CREATE TABLE acts (
    number    BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    at        BIGINT NOT NULL,
    user_id   TEXT COLLATE "C" NOT NULL,
    action    TEXT COLLATE "C" NOT NULL,
    space     TEXT COLLATE "C",
    subject   TEXT COLLATE "C",
    client    TEXT COLLATE "C" NOT NULL,
    transport TEXT COLLATE "C" NOT NULL,
    reason    TEXT COLLATE "C",
    credential TEXT COLLATE "C"  -- with which it was done
);

-- How often callers called: shared by all servers, and not worth a log. A crash forgets a minute's counts.
CREATE UNLOGGED TABLE rates (
    key   TEXT COLLATE "C" PRIMARY KEY,
    calls BIGINT NOT NULL,
    until TIMESTAMPTZ NOT NULL  -- when the window is over
);

CREATE INDEX rates_by_end ON rates (until);

-- --- conversations ---

CREATE TABLE conversations (
    space         TEXT COLLATE "C" NOT NULL,
    id            TEXT COLLATE "C" NOT NULL,
    number        BIGINT GENERATED BY DEFAULT AS IDENTITY,
    title         TEXT COLLATE "C",
    system_prompt TEXT COLLATE "C",
    created_at    BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL,  -- of the last message or change
    user_id       TEXT COLLATE "C",  -- who began it, and sees it if it is private; none: not known
    access_level  TEXT COLLATE "C" NOT NULL DEFAULT 'shared',
    PRIMARY KEY (space, id)
);

CREATE INDEX conversations_by_update ON conversations (space, updated_at, number);
CREATE INDEX conversations_by_id ON conversations (id);

CREATE TABLE messages (
    space        TEXT COLLATE "C" NOT NULL,
    conversation TEXT COLLATE "C" NOT NULL,
    number       BIGINT GENERATED BY DEFAULT AS IDENTITY,  -- order of arrival
    id           TEXT COLLATE "C" NOT NULL,
    role         TEXT COLLATE "C" NOT NULL,                -- memory.Speaker
    content      TEXT COLLATE "C" NOT NULL,
    reply_to     TEXT COLLATE "C",                         -- the message that this one answers
    created_at   BIGINT NOT NULL,
    PRIMARY KEY (space, conversation, number)
);

CREATE UNIQUE INDEX messages_by_question ON messages (space, conversation, reply_to) WHERE reply_to IS NOT NULL;

-- Which memories a person put into a conversation, and whether they are in force.
CREATE TABLE injections (
    space        TEXT COLLATE "C" NOT NULL,
    conversation TEXT COLLATE "C" NOT NULL,
    memory       TEXT COLLATE "C" NOT NULL,                -- its id
    number       BIGINT GENERATED BY DEFAULT AS IDENTITY,  -- order of injection
    active       BOOLEAN NOT NULL,
    injected_at  BIGINT NOT NULL,
    PRIMARY KEY (space, conversation, memory)
);

CREATE INDEX injections_by_memory ON injections (space, memory);

-- What was done to many memories at once, to be undone at once.
CREATE TABLE deeds (
    id      TEXT COLLATE "C" PRIMARY KEY,
    action  TEXT COLLATE "C" NOT NULL,
    user_id TEXT COLLATE "C" NOT NULL,
    at      BIGINT NOT NULL,
    reason  TEXT COLLATE "C"
);

CREATE TABLE deed_memories (
    deed   TEXT COLLATE "C" NOT NULL,
    memory TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (deed, memory)
);

INSERT INTO counters (clock) VALUES (0);
INSERT INTO facts (key, value) VALUES ('origin', substr(replace(gen_random_uuid()::TEXT, '-', ''), 17));
INSERT INTO spaces (name, created_at) VALUES ('default', floor(extract(epoch FROM now()) * 1000)::BIGINT);
-- What cursors are signed with: made here, so that no list has to write before it can answer.
INSERT INTO facts (key, value)
VALUES ('cursor_key', replace(gen_random_uuid()::TEXT || gen_random_uuid()::TEXT, '-', ''));
