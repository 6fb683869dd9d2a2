-- Brings a store of 465e9b5 (schema 19) to the schema in `sqlite.sql`.

-- Other words under which a memory may be looked for.
ALTER TABLE memories ADD COLUMN also TEXT NOT NULL DEFAULT '[]';         -- JSON
ALTER TABLE memories ADD COLUMN former_also TEXT NOT NULL DEFAULT '[]';  -- JSON, values.memory.FormerPhrases

-- Vectors of a second model are made of the text and the phrases.
DROP TRIGGER second_vectors_outdated;
CREATE TRIGGER second_vectors_outdated
AFTER UPDATE OF fingerprint, also ON memories
WHEN NEW.fingerprint IS NOT OLD.fingerprint OR NEW.also <> OLD.also
BEGIN
    DELETE FROM second_vectors WHERE memory = NEW.seq;
END;

-- What a client is still to be told: which of its new memories could not be compared with earlier ones in time. A row
-- goes when the client has been told what the comparison found.
CREATE TABLE owed (
    memory TEXT PRIMARY KEY,  -- by id, like links
    user   TEXT NOT NULL,     -- who stored it …
    client TEXT NOT NULL      -- … with which program
) STRICT, WITHOUT ROWID;

CREATE INDEX owed_by_client ON owed (user, client);

-- With which credential something was done: the audit shows who made it.
ALTER TABLE events ADD COLUMN credential TEXT;
ALTER TABLE acts ADD COLUMN credential TEXT;

-- Topics are the same whether their words are joined by spaces, `_` or `-`.
UPDATE memories SET topic_key = topic_key(topic) WHERE topic IS NOT NULL;

-- What the planner was told of tables that were empty.
DELETE FROM sqlite_stat1 WHERE stat LIKE '0 0%' OR tbl LIKE 'words%';
