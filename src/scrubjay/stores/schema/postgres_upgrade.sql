-- Brings a store of 465e9b5 (schema 22) to the schema in `postgres.sql`.

-- Other words under which a memory may be looked for.
ALTER TABLE memories
    ADD COLUMN also TEXT COLLATE "C" NOT NULL DEFAULT '[]',
    ADD COLUMN former_also TEXT COLLATE "C" NOT NULL DEFAULT '[]';

DROP TRIGGER second_vectors_outdated ON memories;

CREATE TRIGGER second_vectors_outdated
AFTER UPDATE OF fingerprint, also ON memories
FOR EACH ROW
WHEN (OLD.fingerprint IS DISTINCT FROM NEW.fingerprint OR OLD.also <> NEW.also)
EXECUTE FUNCTION forget_second_vectors();

-- Topics are the same whether their words are joined by spaces, `_` or `-`. A run of joints is one space.
UPDATE memories
SET topic_key = coalesce(nullif(trim(regexp_replace(topic_key, '[ _‐–—-]+', ' ', 'g')), ''), topic_key)
WHERE topic_key IS NOT NULL;

CREATE TABLE owed (
    memory  TEXT COLLATE "C" NOT NULL,
    user_id TEXT COLLATE "C" NOT NULL,
    client  TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (memory)
);

CREATE INDEX owed_by_client ON owed (user_id, client);

ALTER TABLE events ADD COLUMN credential TEXT COLLATE "C";

ALTER TABLE acts ADD COLUMN credential TEXT COLLATE "C";

-- What servers of earlier versions needed.
DROP TRIGGER signatures_without_levels ON signatures;

DROP FUNCTION add_levels();

ALTER TABLE signatures ALTER COLUMN levels SET NOT NULL;

DROP TRIGGER words_noted_new ON words;

DROP TRIGGER words_noted_changed ON words;

DROP TRIGGER words_noted_gone ON words;

DROP FUNCTION note_changed_words();

CREATE TRIGGER words_noted_new AFTER INSERT ON words
REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_changes();

CREATE TRIGGER words_noted_changed AFTER UPDATE ON words
REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_changes();

CREATE TRIGGER words_noted_gone AFTER DELETE ON words
REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_changes();

DROP TABLE schema_steps;
