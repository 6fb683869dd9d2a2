-- Brings a store of 465e9b5 (schema 22) to schema 27.

-- Other words under which a memory may be looked for.
ALTER TABLE memories
    ADD COLUMN also TEXT COLLATE "C" NOT NULL DEFAULT '[]',
    ADD COLUMN former_also TEXT COLLATE "C" NOT NULL DEFAULT '[]';

-- Vectors of all models are in one table. Indexes are made again of each model's own.
DO $$
DECLARE
    known TEXT;
BEGIN
    FOR known IN
        SELECT indexname FROM pg_indexes WHERE schemaname = current_schema() AND indexname LIKE '%vectors_by_meaning_%'
    LOOP
        EXECUTE format('DROP INDEX %I', known);
    END LOOP;
END;
$$;

ALTER TABLE vectors ADD COLUMN model TEXT COLLATE "C" NOT NULL DEFAULT '';

ALTER TABLE vectors
    ALTER COLUMN model DROP DEFAULT,
    DROP CONSTRAINT vectors_pkey,
    ADD PRIMARY KEY (space, memory, model, part);

CREATE INDEX vectors_by_model ON vectors (model) WHERE model <> '';

INSERT INTO vectors (space, memory, part, model, vector)
SELECT space, memory, part, model, vector FROM second_vectors;

DROP TABLE second_vectors;

UPDATE facts SET key = 'own_model' WHERE key = 'model';

UPDATE facts SET key = 'further_models', value = json_build_array(value)::TEXT WHERE key = 'second_model';

-- A server of 465e9b5 that still runs takes these for vectors of a model that is not its own: it searches by words and
-- leaves new memories without vectors, until it is started again and refuses the store.
INSERT INTO facts (key, value) VALUES ('model', 'of a newer schema');

DROP TRIGGER second_vectors_outdated ON memories;

DROP FUNCTION forget_second_vectors();

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

CREATE INDEX outbox_by_memory ON outbox (memory);
