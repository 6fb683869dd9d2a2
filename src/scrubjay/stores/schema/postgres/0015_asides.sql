-- Supersessions that do not count for everyone. Released files are never edited.
--
-- A memory's own columns name what supersedes it (and what it supersedes) if everyone who may see the memory may see
-- that one too. Others are named here, and told only to those who may see them. It follows from links.

CREATE TABLE asides (
    memory TEXT COLLATE "C" NOT NULL,  -- that says it, by id, like links
    role   TEXT COLLATE "C" NOT NULL,  -- the column that it stands in for: supersedes, superseded_by
    other  TEXT COLLATE "C" NOT NULL,  -- the memory that is named
    hlc    BIGINT NOT NULL,            -- of the link: the newest counts
    PRIMARY KEY (memory, role, other)
);

CREATE INDEX asides_by_other ON asides (other);
