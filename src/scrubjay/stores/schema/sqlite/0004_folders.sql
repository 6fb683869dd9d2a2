-- Spaces that are folders of Markdown files as well. Released files are never edited.
--
-- A memory with a row in `files` is kept as a file. Every change of it puts it into `outbox`, in the transaction of the
-- change and whoever makes it: an entry means "write the file", never "it was deleted". Triggers do it, so that no verb
-- can forget it; whoever has written the file, or has taken the change from it, takes the entry out again.

ALTER TABLE spaces ADD COLUMN mirrored INTEGER NOT NULL DEFAULT 0;  -- 1: every memory of it is kept as a file

CREATE TABLE files (
    memory  INTEGER PRIMARY KEY REFERENCES memories,
    space   INTEGER NOT NULL REFERENCES spaces,
    name    TEXT NOT NULL,                -- below the folder, with forward slashes; '' until one was chosen
    path    TEXT NOT NULL DEFAULT '',     -- the memory's, when both sides last agreed
    version INTEGER NOT NULL DEFAULT 0,   -- the memory's, then
    hash    BLOB,                         -- SHA-256 of the file's bytes then; none before the first time
    stamp   TEXT NOT NULL DEFAULT ''      -- what the file system said of the file then; '' is never believed
) STRICT;

CREATE INDEX files_by_space ON files (space, name);

CREATE TABLE outbox (
    memory  INTEGER PRIMARY KEY REFERENCES memories,
    space   INTEGER NOT NULL REFERENCES spaces,
    version INTEGER NOT NULL  -- of the memory when it was last put here
) STRICT;

CREATE INDEX outbox_by_space ON outbox (space);

CREATE TRIGGER a_new_memory_of_a_mirrored_space_is_a_file
AFTER INSERT ON memories
WHEN NEW.state < 2 AND (SELECT mirrored FROM spaces WHERE number = NEW.space)
BEGIN
    INSERT INTO files (memory, space, name) VALUES (NEW.seq, NEW.space, '');
    INSERT INTO outbox (memory, space, version) VALUES (NEW.seq, NEW.space, NEW.version);
END;

CREATE TRIGGER a_changed_memory_waits_for_its_file
AFTER UPDATE OF version ON memories
BEGIN
    INSERT INTO files (memory, space, name)
    SELECT NEW.seq, NEW.space, ''
    FROM spaces
    WHERE number = NEW.space
    AND mirrored
    AND NEW.state < 2
    ON CONFLICT (memory) DO NOTHING;
    INSERT INTO outbox (memory, space, version)
    SELECT memory, space, NEW.version
    FROM files
    WHERE memory = NEW.seq
    ON CONFLICT (memory) DO UPDATE SET version = excluded.version;
END;

-- Files name what their memory is linked with, by path.

CREATE TRIGGER a_moved_memory_is_named_anew
AFTER UPDATE OF path ON memories
WHEN OLD.path <> NEW.path
BEGIN
    INSERT INTO outbox (memory, space, version)
    SELECT files.memory, files.space, others.version
    FROM links
    JOIN memories AS others ON others.id IN (links.source, links.target)
    JOIN files ON files.memory = others.seq
    WHERE (links.source = NEW.id OR links.target = NEW.id)
    AND others.seq <> NEW.seq
    ON CONFLICT (memory) DO UPDATE SET version = excluded.version;
END;

CREATE TRIGGER a_link_waits_for_its_file
AFTER INSERT ON links
WHEN NEW.kind <> 'may_outdate'
BEGIN
    INSERT INTO outbox (memory, space, version)
    SELECT files.memory, files.space, memories.version
    FROM memories
    JOIN files ON files.memory = memories.seq
    WHERE memories.id = NEW.source
    ON CONFLICT (memory) DO UPDATE SET version = excluded.version;
END;

CREATE TRIGGER a_changed_link_waits_for_its_file
AFTER UPDATE OF state ON links
WHEN NEW.kind <> 'may_outdate' AND OLD.state <> NEW.state
BEGIN
    INSERT INTO outbox (memory, space, version)
    SELECT files.memory, files.space, memories.version
    FROM memories
    JOIN files ON files.memory = memories.seq
    WHERE memories.id = NEW.source
    ON CONFLICT (memory) DO UPDATE SET version = excluded.version;
END;

-- Sections of a space (the folder part of paths) that are described, or were made before anything lay in them.
CREATE TABLE sections (
    space       INTEGER NOT NULL REFERENCES spaces,
    path        TEXT NOT NULL,
    description TEXT,
    PRIMARY KEY (space, path)
) STRICT, WITHOUT ROWID;
