-- Conversations, messages, injected memories; deeds that are undone together. Released files are never edited.

-- Spaces can be called something more than their name, and be put away once they are empty.
ALTER TABLE spaces ADD COLUMN title TEXT;
ALTER TABLE spaces ADD COLUMN deleted_at INTEGER;

CREATE TABLE conversations (
    number        INTEGER PRIMARY KEY,
    space         INTEGER NOT NULL REFERENCES spaces,
    id            TEXT NOT NULL,
    title         TEXT,
    system_prompt TEXT,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,  -- of the last message or change
    UNIQUE (space, id)
) STRICT;

CREATE INDEX conversations_by_update ON conversations (space, updated_at, number);
CREATE INDEX conversations_by_id ON conversations (id);

CREATE TABLE messages (
    number       INTEGER PRIMARY KEY,  -- order of arrival
    conversation INTEGER NOT NULL REFERENCES conversations ON DELETE CASCADE,
    id           TEXT NOT NULL UNIQUE,
    role         TEXT NOT NULL,  -- memory.Speaker
    content      TEXT NOT NULL,
    reply_to     TEXT,  -- the message that this one answers
    created_at   INTEGER NOT NULL
) STRICT;

CREATE INDEX messages_by_conversation ON messages (conversation, number);
CREATE UNIQUE INDEX messages_by_question ON messages (conversation, reply_to) WHERE reply_to IS NOT NULL;

-- Which memories a person put into a conversation, and whether they are in force.
CREATE TABLE injections (
    number       INTEGER PRIMARY KEY,  -- order of injection
    conversation INTEGER NOT NULL REFERENCES conversations ON DELETE CASCADE,
    memory       INTEGER NOT NULL REFERENCES memories,
    active       INTEGER NOT NULL,
    injected_at  INTEGER NOT NULL,
    UNIQUE (conversation, memory)
) STRICT;

CREATE INDEX injections_by_memory ON injections (memory);

-- Whoever deletes a memory or moves it away takes it out of every conversation.
CREATE TRIGGER injections_of_what_is_gone
AFTER UPDATE OF state, space ON memories
WHEN NEW.state >= 3 OR OLD.space <> NEW.space
BEGIN
    DELETE FROM injections WHERE memory = NEW.seq;
END;

-- What was done to many memories at once, to be undone at once.
CREATE TABLE deeds (
    id     TEXT PRIMARY KEY,
    action TEXT NOT NULL,
    user   TEXT NOT NULL,
    at     INTEGER NOT NULL,
    reason TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE deed_memories (
    deed   TEXT NOT NULL REFERENCES deeds,
    memory TEXT NOT NULL,
    PRIMARY KEY (deed, memory)
) STRICT, WITHOUT ROWID;

-- What is flagged, and open conflicts, are few among many.
CREATE INDEX memories_by_flag ON memories (space, state, created_at) WHERE flags <> '[]';
CREATE INDEX links_open ON links (created_at, number) WHERE kind = 'may_outdate' AND state = 'open';

INSERT INTO sqlite_stat1 (tbl, idx, stat)
VALUES
    ('memories', 'memories_by_flag', '1000 500 250 2'),
    ('messages', 'messages_by_conversation', '100000 50 1'),
    ('injections', 'injections_by_memory', '10000 2');
