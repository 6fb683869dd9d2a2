-- Spaces that are folders of Markdown files as well. Released files are never edited.
--
-- A memory with a row in `files` is kept as a file. Every change of it puts it into `outbox`, in the transaction of the
-- change and whoever makes it: an entry means "write the file", never "it was deleted". Whoever has written the file,
-- or has taken the change from it, takes the entry out again. The space is that of the file: a memory may leave it.

ALTER TABLE spaces ADD COLUMN mirrored BOOLEAN NOT NULL DEFAULT FALSE;  -- every memory of it is kept as a file

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

-- Sections of a space (the folder part of paths) that are described, or were made before anything lay in them.
CREATE TABLE sections (
    space       TEXT COLLATE "C" NOT NULL,
    path        TEXT COLLATE "C" NOT NULL,
    description TEXT COLLATE "C",
    PRIMARY KEY (space, path)
);
