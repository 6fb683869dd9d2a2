-- A store in one SQLite file. `sqlite_from_….sql` bring earlier ones here, see stores/scripts.py: whoever changes this file
-- adds one of them.
--
-- Times are milliseconds since 1970, UTC. JSON is text. A memory's row is never removed: erased ones stay as
-- tombstones (state 4), so "row absent" never means "never seen", and `seq` counts arrivals without reuse.

CREATE TABLE spaces (
    number      INTEGER PRIMARY KEY,
    name        TEXT NOT NULL UNIQUE,
    description TEXT,
    created_at  INTEGER NOT NULL,
    events      INTEGER NOT NULL DEFAULT 0,  -- number of the last event in the feed
    checkpoints INTEGER NOT NULL DEFAULT 0,  -- number of the last one
    mirrored    INTEGER NOT NULL DEFAULT 0,  -- 1: every memory of it is kept as a file
    title       TEXT,
    deleted_at  INTEGER                      -- it was put away once it was empty
) STRICT;

-- Users and conversations, kept once and compared as numbers. Never removed, so a number means one name for ever.
CREATE TABLE names (
    number INTEGER PRIMARY KEY,
    name   TEXT NOT NULL UNIQUE
) STRICT;

-- What filters ask for comes first and long text last: SQLite reads a row from its beginning. What changes when a memory
-- is read stands behind the text, where it is overwritten in place; counting a read changes neither `version` nor
-- `updated_at` nor `change`.
CREATE TABLE memories (
    seq               INTEGER PRIMARY KEY,
    id                TEXT NOT NULL UNIQUE,
    space             INTEGER NOT NULL REFERENCES spaces,
    state             INTEGER NOT NULL,  -- memory.State
    audience          INTEGER NOT NULL,  -- 0 public, 1 shared, 2 + user's number: private to that user
    user_id           INTEGER NOT NULL REFERENCES names,
    conversation_id   INTEGER REFERENCES names,
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
    session_id        TEXT,
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
    content           TEXT NOT NULL,
    accessed_at       INTEGER NOT NULL DEFAULT 0,
    access_count      INTEGER NOT NULL DEFAULT 0,
    category_agreed   INTEGER,                     -- with most of its neighbours' when stored; NULL: not judged
    repeat            INTEGER NOT NULL DEFAULT 0,  -- 1: an earlier row in states 0 or 2 has its text
    topic_key         TEXT,                        -- memory.topic_key: what topics are compared by
    final             INTEGER NOT NULL DEFAULT 0,  -- 1: somebody wished it erased, and no other store brings it back;
                                                   -- 0: not erased, or because its date had come: with its stamp
    also              TEXT NOT NULL DEFAULT '[]',  -- JSON, other words under which it may be looked for
    former_also       TEXT NOT NULL DEFAULT '[]'   -- JSON, values.memory.FormerPhrases
) STRICT;

CREATE INDEX memories_by_fingerprint ON memories (fingerprint) WHERE fingerprint IS NOT NULL;
CREATE INDEX memories_by_change ON memories (change);
CREATE INDEX memories_by_conversation ON memories (conversation_id, created_at) WHERE conversation_id IS NOT NULL;
CREATE INDEX memories_by_topic ON memories (space, topic_key, state, created_at) WHERE topic_key IS NOT NULL;
CREATE INDEX memories_by_recovery ON memories (recoverable_until) WHERE state = 3;
CREATE INDEX memories_by_flag ON memories (space, state, created_at) WHERE flags <> '[]';

-- One shared or public memory at a path, and one private one of each user: that another user keeps something private at
-- a path must not show in an error.
CREATE UNIQUE INDEX memories_by_place ON memories (space, path, max(audience, 1)) WHERE state IN (0, 1);

-- Only for reading all of one user's memories, by name (INDEXED BY): its statistics keep the planner from taking it
-- for lists, which have indexes in their own order.
CREATE INDEX memories_by_user ON memories (user_id, space, state);

-- One index for each order of a list: space, state, what is sorted by, arrival; then everything that lists are usually
-- filtered by, so that rows which do not fit are passed over without being read. The same columns let the first one
-- count. Lists of archived memories are read by time and sorted.
CREATE INDEX memories_by_created
ON memories (space, state, created_at, seq, audience, expires_at, user_id, conversation_id, category, importance);
CREATE INDEX memories_by_updated
ON memories (space, state, updated_at, seq, audience, expires_at, user_id, conversation_id, category, importance, created_at)
WHERE state <> 2;
CREATE INDEX memories_by_accessed
ON memories (space, state, accessed_at, seq, audience, expires_at, user_id, conversation_id, category, importance, created_at)
WHERE state <> 2;
CREATE INDEX memories_by_importance
ON memories (space, state, importance, seq, audience, expires_at, user_id, conversation_id, category, created_at)
WHERE state <> 2;
CREATE INDEX memories_by_access_count
ON memories (space, state, access_count, seq, audience, expires_at, user_id, conversation_id, category, importance, created_at)
WHERE state <> 2;
CREATE INDEX memories_by_length
ON memories (
    space, state, content_length, seq, audience, expires_at, user_id, conversation_id, category, importance, created_at
)
WHERE state <> 2;
CREATE INDEX memories_by_expiry
ON memories (space, expires_at, state, audience, user_id, conversation_id, category)
WHERE expires_at IS NOT NULL;
CREATE INDEX memories_by_deletion
ON memories (space, deleted_at, state, audience, user_id, conversation_id, category)
WHERE state >= 3;

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

-- To whom memories were handed out; only the newest rows are kept.
CREATE TABLE recalls (
    number   INTEGER PRIMARY KEY,
    at       INTEGER NOT NULL,
    space    TEXT NOT NULL,
    user_id  TEXT NOT NULL,
    client   TEXT NOT NULL,
    memories TEXT NOT NULL  -- JSON, ids
) STRICT;

CREATE TABLE recall_counts (
    space    TEXT NOT NULL,
    user_id  TEXT NOT NULL,
    hour     INTEGER NOT NULL,  -- hours since 1970
    recalls  INTEGER NOT NULL,
    memories INTEGER NOT NULL,
    PRIMARY KEY (space, user_id, hour)
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
CREATE INDEX links_open ON links (created_at, number) WHERE kind = 'may_outdate' AND state = 'open';

-- Supersessions that do not count for everyone. A memory's own columns name what supersedes it (and what it supersedes)
-- if everyone who may see the memory may see that one too. Others are named here, and told only to those who may see
-- them. It follows from links.
CREATE TABLE asides (
    memory TEXT NOT NULL,     -- that says it, by id, like links
    role   TEXT NOT NULL,     -- the column that it stands in for: supersedes, superseded_by
    other  TEXT NOT NULL,     -- the memory that is named
    hlc    INTEGER NOT NULL,  -- of the link: the newest counts
    PRIMARY KEY (memory, role, other)
) STRICT, WITHOUT ROWID;

CREATE INDEX asides_by_other ON asides (other);

CREATE TABLE events (
    space      TEXT NOT NULL REFERENCES spaces (name),
    number     INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    action     TEXT NOT NULL,
    memory     TEXT,
    fields     TEXT NOT NULL,  -- JSON
    user_id    TEXT NOT NULL,
    client     TEXT NOT NULL,  -- provenance
    caller     TEXT NOT NULL,
    transport  TEXT NOT NULL,
    dialect    TEXT,
    reason     TEXT,
    credential TEXT,           -- with which it was done
    PRIMARY KEY (space, number)
) STRICT, WITHOUT ROWID;

-- Reasons of events go with the memory that they speak of (hard delete).
CREATE INDEX events_by_reason ON events (memory) WHERE reason IS NOT NULL;

-- What a client is still to be told: which of its new memories could not be compared with earlier ones in time. A row
-- goes when the client has been told what the comparison found.
CREATE TABLE owed (
    memory  TEXT PRIMARY KEY,  -- by id, like links
    user_id TEXT NOT NULL,  -- who stored it …
    client  TEXT NOT NULL   -- … with which program
) STRICT, WITHOUT ROWID;

CREATE INDEX owed_by_client ON owed (user_id, client);

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

-- Vectors of a text's parts, by the store's own model and by further ones (engine/store/models.py). Those of two models
-- are never compared. A further model's come all together, or not at all: then the memory is found without them.
CREATE TABLE vectors (
    id     INTEGER PRIMARY KEY,
    memory INTEGER NOT NULL REFERENCES memories,
    part   INTEGER NOT NULL,
    model  TEXT NOT NULL,  -- a further model's fingerprint; '' for the store's own, which the fact `model` names
    vector BLOB NOT NULL,  -- of unit length, see stores/sqlite/vectors.py
    UNIQUE (memory, model, part)
) STRICT;

-- Those of further models go with the text that they were made of, whoever changes or erases it.
CREATE TRIGGER vectors_outdated
AFTER UPDATE OF fingerprint, also ON memories
WHEN NEW.fingerprint IS NOT OLD.fingerprint OR NEW.also <> OLD.also
BEGIN
    DELETE FROM vectors WHERE memory = NEW.seq AND model <> '';
END;

-- Derived tables for finding by meaning in a large store (stores/sqlite/vec1.py): each row here stands for a virtual
-- table `near_<number>`, made once there are enough vectors to learn from. Nothing depends on them: whatever is missing
-- or wrong there is found by reading `vectors`.
--
--     filling ──> ready ──> retired ──> gone
CREATE TABLE vector_indexes (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used twice: processes remember which one failed them
    dimension INTEGER NOT NULL,
    state     TEXT NOT NULL,     -- filling, ready or retired
    buckets   INTEGER NOT NULL,  -- lists that its rows are spread over
    trained   INTEGER NOT NULL,  -- how many vectors there were when it was made
    filled    INTEGER NOT NULL,  -- memories up to this one are in it; later ones as they change
    model     TEXT,              -- a further model, whose vectors it holds; NULL: the store's own
    lean      INTEGER NOT NULL DEFAULT 0  -- 0: its rows hold whole vectors; it is rebuilt
) STRICT;

-- A vec1 table needs a vector to place its code, and once more to take the code out; in between it lies only in
-- `vectors`. What a transaction replaces or deletes there is kept here until it has taken the codes out, at its end.
CREATE TABLE former_vectors (
    model  TEXT NOT NULL,
    id     INTEGER NOT NULL,  -- memory × 4096 + part, as in the vec1 tables
    vector BLOB NOT NULL,
    PRIMARY KEY (model, id)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER former_after_delete
AFTER DELETE ON vectors
WHEN EXISTS (SELECT 1 FROM vector_indexes WHERE state <> 'retired')
BEGIN
    INSERT INTO former_vectors (model, id, vector)
    VALUES (OLD.model, OLD.memory * 4096 + OLD.part, OLD.vector)
    ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER former_after_update
AFTER UPDATE OF vector ON vectors
WHEN EXISTS (SELECT 1 FROM vector_indexes WHERE state <> 'retired')
BEGIN
    INSERT INTO former_vectors (model, id, vector)
    VALUES (OLD.model, OLD.memory * 4096 + OLD.part, OLD.vector)
    ON CONFLICT DO NOTHING;
END;

-- Memories whose vectors are not all there yet.
CREATE TABLE pending (
    memory    INTEGER PRIMARY KEY REFERENCES memories,
    next_part INTEGER NOT NULL,
    attempts  INTEGER NOT NULL DEFAULT 0,
    judged    INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX pending_by_attempts ON pending (attempts, memory);

-- Words as words.py makes them, a row per passage: rowid = memories.seq × 256 + its place. `scope` holds one token per
-- row that names its space. The table keeps its own text, so that a delete knows every word to take out, and secure-delete takes them out of the index at
-- once instead of marking them. Marks (M) belong to words in Indic scripts, symbols (So) are emoji.
CREATE VIRTUAL TABLE words USING fts5 (
    text,
    scope,
    tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* Co M* So'"
);

INSERT INTO words (words, rank) VALUES ('secure-delete', 1);

CREATE VIRTUAL TABLE vocabulary USING fts5vocab (words, col);

-- Work that outlives the call that asked for it. Whether an unfinished one runs or waits says the lease `job:<id>`.
CREATE TABLE jobs (
    number      INTEGER PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,
    kind        TEXT NOT NULL,
    user_id     TEXT NOT NULL,     -- the caller
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

CREATE INDEX jobs_by_user ON jobs (user_id, number);
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

-- --- words within what a caller may see ---
--
-- FTS5 counts words over the whole file, so another's private memories would show in everybody's scores. For callers from
-- whom something is hidden, passages are counted here: whose each is, and how long. A row stands for a row of `words`, or
-- of `archived_words`, with the same number.

CREATE TABLE passages (
    id       INTEGER PRIMARY KEY,  -- memories.seq × 256 + its place
    space    INTEGER NOT NULL REFERENCES spaces,
    audience INTEGER NOT NULL,
    archived INTEGER NOT NULL,     -- 1: of a memory that was put away
    length   INTEGER NOT NULL      -- in words
) STRICT;

CREATE TABLE passage_totals (
    archived INTEGER NOT NULL,
    space    INTEGER NOT NULL REFERENCES spaces,
    audience INTEGER NOT NULL,
    passages INTEGER NOT NULL,
    words    INTEGER NOT NULL,
    changes  INTEGER NOT NULL,     -- only ever rises: while it stays, so do all counts within
    PRIMARY KEY (archived, space, audience)
) STRICT, WITHOUT ROWID;

-- What `passages` should hold. FTS5 keeps the lengths of a row's columns as varints: the text's, of up to three bytes
-- here, then the scope's, which is one byte.
CREATE VIEW indexed_passages (id, space, audience, archived, length)
AS SELECT
    documents.id, memories.space, memories.audience, documents.archived,
    CASE length(documents.bytes)
        WHEN 4 THEN
            instr('123456789ABCDEF', substr(bytes, 1, 1)) * 16 + instr('123456789ABCDEF', substr(bytes, 2, 1))
        WHEN 6 THEN
            (instr('123456789ABCDEF', substr(bytes, 1, 1)) & 7) * 2048
            + instr('123456789ABCDEF', substr(bytes, 2, 1)) * 128
            + instr('123456789ABCDEF', substr(bytes, 3, 1)) * 16
            + instr('123456789ABCDEF', substr(bytes, 4, 1))
        ELSE
            (instr('123456789ABCDEF', substr(bytes, 1, 1)) & 7) * 262144
            + instr('123456789ABCDEF', substr(bytes, 2, 1)) * 16384
            + (instr('123456789ABCDEF', substr(bytes, 3, 1)) & 7) * 2048
            + instr('123456789ABCDEF', substr(bytes, 4, 1)) * 128
            + instr('123456789ABCDEF', substr(bytes, 5, 1)) * 16
            + instr('123456789ABCDEF', substr(bytes, 6, 1))
    END
FROM (
    SELECT id, hex(sz) AS bytes, 0 AS archived FROM words_docsize
    UNION ALL
    SELECT id, hex(sz), 1 FROM archived_words_docsize
) AS documents
CROSS JOIN memories ON memories.seq = documents.id / 256;

CREATE TRIGGER passages_counted
AFTER INSERT ON passages
BEGIN
    INSERT INTO passage_totals (archived, space, audience, passages, words, changes)
    VALUES (NEW.archived, NEW.space, NEW.audience, 1, NEW.length, 1)
    ON CONFLICT DO UPDATE SET
        passages = passages + 1, words = words + excluded.words, changes = changes + 1;
END;

CREATE TRIGGER passages_taken_out
AFTER DELETE ON passages
BEGIN
    UPDATE passage_totals
    SET passages = passages - 1, words = words - OLD.length, changes = changes + 1
    WHERE archived = OLD.archived AND space = OLD.space AND audience = OLD.audience;
END;

CREATE TRIGGER passages_moved
AFTER UPDATE ON passages
BEGIN
    UPDATE passage_totals
    SET passages = passages - 1, words = words - OLD.length, changes = changes + 1
    WHERE archived = OLD.archived AND space = OLD.space AND audience = OLD.audience;
    INSERT INTO passage_totals (archived, space, audience, passages, words, changes)
    VALUES (NEW.archived, NEW.space, NEW.audience, 1, NEW.length, 1)
    ON CONFLICT DO UPDATE SET
        passages = passages + 1, words = words + excluded.words, changes = changes + 1;
END;

CREATE TRIGGER memories_move_passages
AFTER UPDATE OF space, audience ON memories
WHEN OLD.space <> NEW.space OR OLD.audience <> NEW.audience
BEGIN
    UPDATE passages
    SET space = NEW.space, audience = NEW.audience
    WHERE id BETWEEN NEW.seq * 256 AND NEW.seq * 256 + 255;
END;

-- --- statistics ---
--
-- What there is is counted from `memories` when it is asked. What no row of it knows is kept by the hour: how often
-- memories were handed out and consolidated, once for each part they are in: '' (everything), 'user:<number>',
-- 'category:<name>', 'conversation:<number>', as it was then.

CREATE TABLE activity (
    part           TEXT NOT NULL,
    at             INTEGER NOT NULL,  -- hours since 1970
    space          INTEGER NOT NULL REFERENCES spaces,
    audience       INTEGER NOT NULL,
    reads          INTEGER NOT NULL,
    consolidations INTEGER NOT NULL,
    consolidated   INTEGER NOT NULL,
    PRIMARY KEY (part, at, space, audience)
) STRICT, WITHOUT ROWID;

-- --- results of writes, for callers that send one twice ---

CREATE TABLE results (
    caller    TEXT NOT NULL,
    key       TEXT NOT NULL,
    operation TEXT NOT NULL,
    arguments BLOB NOT NULL,  -- SHA-256
    result    TEXT NOT NULL,
    at        INTEGER NOT NULL,
    PRIMARY KEY (caller, key)
) STRICT;

CREATE INDEX results_by_time ON results (at);

-- Which memories a result speaks of: it goes when one of them is erased.
CREATE TABLE result_memories (
    memory TEXT NOT NULL,
    caller TEXT NOT NULL,
    key    TEXT NOT NULL,
    PRIMARY KEY (memory, caller, key),
    FOREIGN KEY (caller, key) REFERENCES results ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX result_memories_by_result ON result_memories (caller, key);

-- --- files ---
--
-- Spaces that are folders of Markdown files as well.
--
-- A memory with a row in `files` is kept as a file. Every change of it puts it into `outbox`, in the transaction of the
-- change and whoever makes it: an entry means "write the file", never "it was deleted". Triggers do it, so that no verb
-- can forget it; whoever has written the file, or has taken the change from it, takes the entry out again.

CREATE TABLE files (
    space   TEXT NOT NULL REFERENCES spaces (name),  -- of the file: a memory may leave it
    memory  TEXT NOT NULL,                           -- its id
    name    TEXT NOT NULL,                           -- below the folder, with forward slashes; '' until one was chosen
    path    TEXT NOT NULL DEFAULT '',                -- the memory's, when both sides last agreed
    version INTEGER NOT NULL DEFAULT 0,              -- the memory's, then
    hash    BLOB,                                    -- SHA-256 of the file's bytes then; none before the first time
    stamp   TEXT NOT NULL DEFAULT '',                -- what the file system said of the file then; '' is never believed
    PRIMARY KEY (space, memory)
) STRICT, WITHOUT ROWID;

CREATE INDEX files_by_memory ON files (memory);
CREATE INDEX files_by_name ON files (space, name);

CREATE TABLE outbox (
    space   TEXT NOT NULL REFERENCES spaces (name),
    memory  TEXT NOT NULL,
    version INTEGER NOT NULL,  -- of the memory when it was last put here
    PRIMARY KEY (space, memory)
) STRICT, WITHOUT ROWID;

CREATE INDEX outbox_by_memory ON outbox (memory);

CREATE TRIGGER a_new_memory_of_a_mirrored_space_is_a_file
AFTER INSERT ON memories
WHEN NEW.state < 2 AND (SELECT mirrored FROM spaces WHERE number = NEW.space)
BEGIN
    INSERT INTO files (space, memory, name) SELECT name, NEW.id, '' FROM spaces WHERE number = NEW.space;
    INSERT INTO outbox (space, memory, version) SELECT name, NEW.id, NEW.version FROM spaces WHERE number = NEW.space;
END;

CREATE TRIGGER a_changed_memory_waits_for_its_file
AFTER UPDATE OF version ON memories
BEGIN
    INSERT INTO files (space, memory, name)
    SELECT name, NEW.id, ''
    FROM spaces
    WHERE number = NEW.space
    AND mirrored
    AND NEW.state < 2
    AND NOT EXISTS (SELECT 1 FROM files WHERE files.memory = NEW.id);
    INSERT INTO outbox (space, memory, version)
    SELECT space, memory, NEW.version
    FROM files
    WHERE memory = NEW.id
    ON CONFLICT (space, memory) DO UPDATE SET version = excluded.version;
END;

-- Files name what their memory is linked with, by path.

CREATE TRIGGER a_moved_memory_is_named_anew
AFTER UPDATE OF path ON memories
WHEN OLD.path <> NEW.path
BEGIN
    INSERT INTO outbox (space, memory, version)
    SELECT files.space, files.memory, others.version
    FROM links
    JOIN memories AS others ON others.id IN (links.source, links.target)
    JOIN files ON files.memory = others.id
    WHERE (links.source = NEW.id OR links.target = NEW.id)
    AND others.id <> NEW.id
    ON CONFLICT (space, memory) DO UPDATE SET version = excluded.version;
END;

CREATE TRIGGER a_link_waits_for_its_file
AFTER INSERT ON links
WHEN NEW.kind <> 'may_outdate'
BEGIN
    INSERT INTO outbox (space, memory, version)
    SELECT files.space, files.memory, memories.version
    FROM memories
    JOIN files ON files.memory = memories.id
    WHERE memories.id = NEW.source
    ON CONFLICT (space, memory) DO UPDATE SET version = excluded.version;
END;

CREATE TRIGGER a_changed_link_waits_for_its_file
AFTER UPDATE OF state ON links
WHEN NEW.kind <> 'may_outdate' AND OLD.state <> NEW.state
BEGIN
    INSERT INTO outbox (space, memory, version)
    SELECT files.space, files.memory, memories.version
    FROM memories
    JOIN files ON files.memory = memories.id
    WHERE memories.id = NEW.source
    ON CONFLICT (space, memory) DO UPDATE SET version = excluded.version;
END;

-- Sections of a space (the folder part of paths) that are described, or were made before anything lay in them.
CREATE TABLE sections (
    space       TEXT NOT NULL REFERENCES spaces (name),
    path        TEXT NOT NULL,
    description TEXT,
    PRIMARY KEY (space, path)
) STRICT, WITHOUT ROWID;

-- --- sync ---

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

-- --- callers ---

-- Secrets are never kept: a key as its SHA-256 (it is random, so that is enough), a password as argon2 makes it.
-- Revoked rows stay, so that the audit can name them.
CREATE TABLE credentials (
    id         TEXT PRIMARY KEY,
    kind       TEXT NOT NULL,     -- memory.CredentialKind
    user_id    TEXT NOT NULL,
    role       TEXT NOT NULL,     -- memory.Role
    spaces     TEXT,              -- JSON; none: all that its user is granted
    name       TEXT NOT NULL,
    secret     BLOB,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX credentials_by_user ON credentials (user_id);

CREATE TABLE grants (
    user_id TEXT NOT NULL,
    space   TEXT NOT NULL,          -- a name, or * for every space
    at      INTEGER NOT NULL,
    by      TEXT NOT NULL,
    PRIMARY KEY (user_id, space)
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    secret     BLOB PRIMARY KEY,  -- SHA-256 of the cookie
    credential TEXT,              -- none: the local owner
    guard      TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Changes of rights, beside the feeds of the spaces, which tell of changes of memories.
CREATE TABLE acts (
    number    INTEGER PRIMARY KEY,
    at        INTEGER NOT NULL,
    user_id   TEXT NOT NULL,
    action    TEXT NOT NULL,
    space     TEXT,
    subject   TEXT,
    client    TEXT NOT NULL,
    transport TEXT NOT NULL,
    reason    TEXT,
    credential TEXT  -- with which it was done
) STRICT;

-- --- conversations ---

CREATE TABLE conversations (
    number        INTEGER PRIMARY KEY,
    space         TEXT NOT NULL REFERENCES spaces (name),
    id            TEXT NOT NULL,
    title         TEXT,
    system_prompt TEXT,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,  -- of the last message or change
    user_id       TEXT,              -- who began it, and sees it if it is private; none: not known
    access_level  TEXT NOT NULL DEFAULT 'shared',
    UNIQUE (space, id)
) STRICT;

CREATE INDEX conversations_by_update ON conversations (space, updated_at, number);
CREATE INDEX conversations_by_id ON conversations (id);

CREATE TABLE messages (
    number       INTEGER PRIMARY KEY,  -- order of arrival
    space        TEXT NOT NULL,
    conversation TEXT NOT NULL,        -- its id
    id           TEXT NOT NULL UNIQUE,
    role         TEXT NOT NULL,        -- memory.Speaker
    content      TEXT NOT NULL,
    reply_to     TEXT,                 -- the message that this one answers
    created_at   INTEGER NOT NULL
) STRICT;

CREATE INDEX messages_by_conversation ON messages (space, conversation, number);
CREATE UNIQUE INDEX messages_by_question ON messages (space, conversation, reply_to) WHERE reply_to IS NOT NULL;

-- Which memories a person put into a conversation, and whether they are in force.
CREATE TABLE injections (
    number       INTEGER PRIMARY KEY,  -- order of injection
    space        TEXT NOT NULL,
    conversation TEXT NOT NULL,
    memory       TEXT NOT NULL,        -- its id
    active       INTEGER NOT NULL,
    injected_at  INTEGER NOT NULL,
    UNIQUE (space, conversation, memory)
) STRICT;

CREATE INDEX injections_by_memory ON injections (memory);

-- Whoever deletes a memory or moves it away takes it out of every conversation.
CREATE TRIGGER injections_of_what_is_gone
AFTER UPDATE OF state, space ON memories
WHEN NEW.state >= 3 OR OLD.space <> NEW.space
BEGIN
    DELETE FROM injections WHERE memory = NEW.id;
END;

-- What was done to many memories at once, to be undone at once.
CREATE TABLE deeds (
    id      TEXT PRIMARY KEY,
    action  TEXT NOT NULL,
    user_id TEXT NOT NULL,
    at      INTEGER NOT NULL,
    reason  TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE deed_memories (
    deed   TEXT NOT NULL REFERENCES deeds,
    memory TEXT NOT NULL,
    PRIMARY KEY (deed, memory)
) STRICT, WITHOUT ROWID;

-- What a grown store looks like (rows, then rows per value of the index's first column, first two, …). Without it the
-- planner takes "this space, this state" for more selective than a fingerprint or a path and reads the whole space.
ANALYZE sqlite_schema;  -- makes the table, and counts nothing
INSERT INTO sqlite_stat1 (tbl, idx, stat)
VALUES
    ('memories', 'memories_by_access_count', '100000 50000 25000 300 1 1 1 1 1 1 1 1'),
    ('memories', 'memories_by_accessed', '100000 50000 25000 2 1 1 1 1 1 1 1 1'),
    ('memories', 'memories_by_change', '100000 2'),
    ('memories', 'memories_by_conversation', '50000 50 1'),
    ('memories', 'memories_by_created', '100000 50000 25000 2 1 1 1 1 1 1 1'),
    ('memories', 'memories_by_deletion', '10000 5000 2 1 1 1 1 1'),
    ('memories', 'memories_by_expiry', '10000 5000 2 1 1 1 1 1'),
    ('memories', 'memories_by_fingerprint', '100000 1'),
    ('memories', 'memories_by_flag', '1000 500 250 2'),
    ('memories', 'memories_by_importance', '100000 50000 25000 300 1 1 1 1 1 1 1'),
    ('memories', 'memories_by_length', '100000 50000 25000 50 1 1 1 1 1 1 1 1'),
    ('memories', 'memories_by_place', '90000 45000 1 1'),
    ('memories', 'memories_by_recovery', '5000 2'),
    ('memories', 'memories_by_topic', '20000 10000 10 8 1'),
    ('memories', 'memories_by_updated', '100000 50000 25000 2 1 1 1 1 1 1 1 1'),
    ('memories', 'memories_by_user', '100000 100000 100000 100000'),
    ('memories', 'sqlite_autoindex_memories_1', '100000 1'),
    ('archives', NULL, '10000'),
    ('files', 'files', '100000 50000 1'),
    ('files', 'files_by_memory', '100000 1 1'),
    ('files', 'files_by_name', '100000 50000 1 1'),
    ('holds', 'holds', '1000 1'),
    ('injections', 'injections_by_memory', '10000 2'),
    ('jobs', 'sqlite_autoindex_jobs_1', '1000 1'),
    ('messages', 'messages_by_conversation', '100000 50000 50 1'),
    ('results', 'results_by_time', '10000 1'),
    ('results', 'sqlite_autoindex_results_1', '10000 1000 1'),
    ('tags', 'tags', '300000 3 1'),
    ('tags', 'tags_by_tag', '300000 300 1');

INSERT INTO counters (change, clock) VALUES (0, 0);
INSERT INTO facts (key, value) VALUES ('origin', lower(hex(randomblob(8))));
-- What cursors are signed with: made here, so that no list has to write before it can answer.
INSERT INTO facts (key, value) VALUES ('cursor_key', lower(hex(randomblob(32))));
INSERT INTO spaces (number, name, created_at) VALUES (1, 'default', unixepoch() * 1000);
