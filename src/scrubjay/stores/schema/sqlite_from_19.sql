-- Brings a store of 465e9b5 (schema 19) to schema 27.

-- Other words under which a memory may be looked for.
ALTER TABLE memories ADD COLUMN also TEXT NOT NULL DEFAULT '[]';         -- JSON
ALTER TABLE memories ADD COLUMN former_also TEXT NOT NULL DEFAULT '[]';  -- JSON, values.memory.FormerPhrases

-- What a client is still to be told: which of its new memories could not be compared with earlier ones in time. A row
-- goes when the client has been told what the comparison found.
CREATE TABLE owed (
    memory  TEXT PRIMARY KEY,  -- by id, like links
    user_id TEXT NOT NULL,  -- who stored it …
    client  TEXT NOT NULL   -- … with which program
) STRICT, WITHOUT ROWID;

CREATE INDEX owed_by_client ON owed (user_id, client);

-- With which credential something was done: the audit shows who made it.
ALTER TABLE acts ADD COLUMN credential TEXT;

-- Topics are the same whether their words are joined by spaces, `_` or `-`.
UPDATE memories SET topic_key = topic_key(topic) WHERE topic IS NOT NULL;

-- Vectors that were written before schema 18 have four bytes for each number. Indexes are made again of what there is.
UPDATE vectors SET vector = shortened(vector) WHERE length(vector) % 4 = 0;
UPDATE second_vectors SET vector = shortened(vector) WHERE length(vector) % 4 = 0;
UPDATE vector_indexes SET state = 'retired';

-- Columns are called as on PostgreSQL.
ALTER TABLE memories RENAME COLUMN conversation TO conversation_id;
ALTER TABLE memories RENAME COLUMN session TO session_id;
ALTER TABLE memories RENAME COLUMN user TO user_id;
ALTER TABLE recalls RENAME COLUMN user TO user_id;
ALTER TABLE recall_counts RENAME COLUMN user TO user_id;
ALTER TABLE jobs RENAME COLUMN user TO user_id;
ALTER TABLE credentials RENAME COLUMN user TO user_id;
ALTER TABLE grants RENAME COLUMN user TO user_id;
ALTER TABLE acts RENAME COLUMN user TO user_id;
ALTER TABLE deeds RENAME COLUMN user TO user_id;

-- What stands beside memories names spaces, conversations, memories and results as on PostgreSQL.
DROP TRIGGER a_new_memory_of_a_mirrored_space_is_a_file;
DROP TRIGGER a_changed_memory_waits_for_its_file;
DROP TRIGGER a_moved_memory_is_named_anew;
DROP TRIGGER a_link_waits_for_its_file;
DROP TRIGGER a_changed_link_waits_for_its_file;
DROP TRIGGER injections_of_what_is_gone;
ALTER TABLE events RENAME TO former_events;
ALTER TABLE results RENAME TO former_results;
ALTER TABLE result_memories RENAME TO former_result_memories;
ALTER TABLE files RENAME TO former_files;
ALTER TABLE outbox RENAME TO former_outbox;
ALTER TABLE sections RENAME TO former_sections;
ALTER TABLE conversations RENAME TO former_conversations;
ALTER TABLE messages RENAME TO former_messages;
ALTER TABLE injections RENAME TO former_injections;

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

INSERT INTO events
SELECT
    spaces.name, former.number, at, action, memory, fields, user, client, caller, transport, dialect, reason, NULL
FROM former_events AS former
JOIN spaces ON spaces.number = former.space;

CREATE TABLE results (
    caller    TEXT NOT NULL,
    key       TEXT NOT NULL,
    operation TEXT NOT NULL,
    arguments BLOB NOT NULL,  -- SHA-256
    result    TEXT NOT NULL,
    at        INTEGER NOT NULL,
    PRIMARY KEY (caller, key)
) STRICT;

INSERT INTO results SELECT caller, key, operation, arguments, result, at FROM former_results;

CREATE TABLE result_memories (
    memory TEXT NOT NULL,
    caller TEXT NOT NULL,
    key    TEXT NOT NULL,
    PRIMARY KEY (memory, caller, key),
    FOREIGN KEY (caller, key) REFERENCES results ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

INSERT INTO result_memories
SELECT memory, caller, key
FROM former_result_memories
JOIN former_results ON former_results.number = former_result_memories.result;

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

INSERT INTO files
SELECT spaces.name, memories.id, former.name, former.path, former.version, former.hash, former.stamp
FROM former_files AS former
JOIN memories ON memories.seq = former.memory
JOIN spaces ON spaces.number = former.space;

CREATE TABLE outbox (
    space   TEXT NOT NULL REFERENCES spaces (name),
    memory  TEXT NOT NULL,
    version INTEGER NOT NULL,  -- of the memory when it was last put here
    PRIMARY KEY (space, memory)
) STRICT, WITHOUT ROWID;

CREATE INDEX outbox_by_memory ON outbox (memory);

INSERT INTO outbox
SELECT spaces.name, memories.id, former.version
FROM former_outbox AS former
JOIN memories ON memories.seq = former.memory
JOIN spaces ON spaces.number = former.space;

CREATE TABLE sections (
    space       TEXT NOT NULL REFERENCES spaces (name),
    path        TEXT NOT NULL,
    description TEXT,
    PRIMARY KEY (space, path)
) STRICT, WITHOUT ROWID;

INSERT INTO sections
SELECT spaces.name, path, former.description
FROM former_sections AS former
JOIN spaces ON spaces.number = former.space;

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

INSERT INTO conversations
SELECT
    former.number, spaces.name, id, former.title, system_prompt, former.created_at, updated_at, user_id, access_level
FROM former_conversations AS former
JOIN spaces ON spaces.number = former.space;

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

INSERT INTO messages
SELECT
    former.number, conversations.space, conversations.id, former.id, role, content, reply_to, former.created_at
FROM former_messages AS former
JOIN conversations ON conversations.number = former.conversation;

CREATE TABLE injections (
    number       INTEGER PRIMARY KEY,  -- order of injection
    space        TEXT NOT NULL,
    conversation TEXT NOT NULL,
    memory       TEXT NOT NULL,        -- its id
    active       INTEGER NOT NULL,
    injected_at  INTEGER NOT NULL,
    UNIQUE (space, conversation, memory)
) STRICT;

INSERT INTO injections
SELECT former.number, conversations.space, conversations.id, memories.id, active, injected_at
FROM former_injections AS former
JOIN conversations ON conversations.number = former.conversation
JOIN memories ON memories.seq = former.memory;

DROP TABLE former_events;
DROP TABLE former_result_memories;
DROP TABLE former_results;
DROP TABLE former_outbox;
DROP TABLE former_files;
DROP TABLE former_sections;
DROP TABLE former_injections;
DROP TABLE former_messages;
DROP TABLE former_conversations;

CREATE INDEX events_by_reason ON events (memory) WHERE reason IS NOT NULL;
CREATE INDEX results_by_time ON results (at);
CREATE INDEX result_memories_by_result ON result_memories (caller, key);
CREATE INDEX files_by_memory ON files (memory);
CREATE INDEX files_by_name ON files (space, name);
CREATE INDEX conversations_by_update ON conversations (space, updated_at, number);
CREATE INDEX conversations_by_id ON conversations (id);
CREATE INDEX messages_by_conversation ON messages (space, conversation, number);
CREATE UNIQUE INDEX messages_by_question ON messages (space, conversation, reply_to) WHERE reply_to IS NOT NULL;
CREATE INDEX injections_by_memory ON injections (memory);

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

CREATE TRIGGER injections_of_what_is_gone
AFTER UPDATE OF state, space ON memories
WHEN NEW.state >= 3 OR OLD.space <> NEW.space
BEGIN
    DELETE FROM injections WHERE memory = NEW.id;
END;

-- Vectors of all models are in one table. Nothing is altered from here on: what refers to them is made anew.
ALTER TABLE vectors RENAME TO own_vectors;
DROP TRIGGER second_vectors_outdated;
DROP TRIGGER vectors_counted;
DROP TRIGGER vectors_replaced;
DROP TRIGGER vectors_taken_out;
DROP TRIGGER former_after_delete;
DROP TRIGGER former_after_update;
DROP TRIGGER former_after_second_delete;
DROP VIEW counts_of_memories;
DROP TABLE former_vectors;

CREATE TABLE vectors (
    id     INTEGER PRIMARY KEY,
    memory INTEGER NOT NULL REFERENCES memories,
    part   INTEGER NOT NULL,
    model  TEXT NOT NULL,  -- a further model's fingerprint; '' for the store's own, which the fact `model` names
    vector BLOB NOT NULL,  -- of unit length, see stores/sqlite/vectors.py
    UNIQUE (memory, model, part)
) STRICT;

INSERT INTO vectors SELECT id, memory, part, '', vector FROM own_vectors;
INSERT INTO vectors (memory, part, model, vector) SELECT memory, part, model, vector FROM second_vectors ORDER BY id;

UPDATE facts SET key = 'own_model' WHERE key = 'model';
UPDATE facts SET key = 'further_models', value = json_array(value) WHERE key = 'second_model';
DROP TABLE own_vectors;
DROP TABLE second_vectors;

CREATE TABLE former_vectors (
    model  TEXT NOT NULL,
    id     INTEGER NOT NULL,  -- memory × 4096 + part, as in the vec1 tables
    vector BLOB NOT NULL,
    PRIMARY KEY (model, id)
) STRICT, WITHOUT ROWID;

CREATE VIEW counts_of_memories (
    seq, space, audience, user, conversation, category, state, importance,
    memories, text_bytes, vector_bytes, reads, squared_reads, read_memories, judged, agreed, repeats
)
AS SELECT
    seq, space, audience, user_id, conversation_id, category, state, importance,
    1,
    octet_length(content) + octet_length(metadata) + octet_length(detail) - 4
        + coalesce((SELECT bytes FROM archives WHERE archives.memory = memories.seq), 0),
    (
        SELECT coalesce(sum(octet_length(vector)), 0)
        FROM vectors
        WHERE vectors.memory = memories.seq AND vectors.model = ''
    ),
    access_count, access_count * access_count, access_count > 0,
    category_agreed IS NOT NULL, coalesce(category_agreed, 0), repeat
FROM memories;

CREATE TRIGGER vectors_outdated
AFTER UPDATE OF fingerprint, also ON memories
WHEN NEW.fingerprint IS NOT OLD.fingerprint OR NEW.also <> OLD.also
BEGIN
    DELETE FROM vectors WHERE memory = NEW.seq AND model <> '';
END;

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

CREATE TRIGGER vectors_counted
AFTER INSERT ON vectors
WHEN NEW.model = ''
BEGIN
    INSERT INTO counted
    SELECT
        space, audience, user_id, conversation_id, category, state, importance,
        0, 0, octet_length(NEW.vector), 0, 0, 0, 0, 0, 0
    FROM memories
    WHERE seq = NEW.memory;
END;

CREATE TRIGGER vectors_replaced
AFTER UPDATE OF vector ON vectors
WHEN NEW.model = '' AND octet_length(OLD.vector) <> octet_length(NEW.vector)
BEGIN
    INSERT INTO counted
    SELECT
        space, audience, user_id, conversation_id, category, state, importance,
        0, 0, octet_length(NEW.vector) - octet_length(OLD.vector), 0, 0, 0, 0, 0, 0
    FROM memories
    WHERE seq = NEW.memory;
END;

CREATE TRIGGER vectors_taken_out
AFTER DELETE ON vectors
WHEN OLD.model = ''
BEGIN
    INSERT INTO counted
    SELECT
        space, audience, user_id, conversation_id, category, state, importance,
        0, 0, -octet_length(OLD.vector), 0, 0, 0, 0, 0, 0
    FROM memories
    WHERE seq = OLD.memory;
END;

-- What the planner was told of tables that were empty.
DELETE FROM sqlite_stat1 WHERE stat LIKE '0 0%' OR tbl LIKE 'words%' OR tbl IN ('messages', 'injections', 'results');
INSERT INTO sqlite_stat1 (tbl, idx, stat)
VALUES
    ('files', 'files', '100000 50000 1'),
    ('files', 'files_by_memory', '100000 1 1'),
    ('files', 'files_by_name', '100000 50000 1 1'),
    ('injections', 'injections_by_memory', '10000 2'),
    ('messages', 'messages_by_conversation', '100000 50000 50 1'),
    ('results', 'results_by_time', '10000 1'),
    ('results', 'sqlite_autoindex_results_1', '10000 1000 1');
