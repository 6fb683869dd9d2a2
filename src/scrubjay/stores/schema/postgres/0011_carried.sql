-- Words carry what most filters ask, as signatures do. Released files are never edited.
--
-- A search by words then looks at no memory: what a filter leaves out is not even weighed. The program keeps these columns
-- (see CARRIED in postgres/filters.py).

DROP INDEX IF EXISTS words_by_term;  -- a copy that was cut off has none

ALTER TABLE words
    ADD COLUMN id              TEXT COLLATE "C",
    ADD COLUMN state           SMALLINT,
    ADD COLUMN audience        TEXT COLLATE "C",
    ADD COLUMN user_id         TEXT COLLATE "C",
    ADD COLUMN conversation_id TEXT COLLATE "C",
    ADD COLUMN kind            TEXT COLLATE "C",
    ADD COLUMN category        TEXT COLLATE "C",
    ADD COLUMN importance      DOUBLE PRECISION,
    ADD COLUMN created_at      BIGINT,
    ADD COLUMN expires_at      BIGINT,
    SET (fillfactor = 90);  -- room for them to change without the index of words

UPDATE words SET
    id = memories.id, state = memories.state, audience = memories.audience, user_id = memories.user_id,
    conversation_id = memories.conversation_id, kind = memories.kind, category = memories.category,
    importance = memories.importance, created_at = memories.created_at, expires_at = memories.expires_at
FROM memories
WHERE memories.space = words.space AND memories.seq = words.memory;

DELETE FROM words WHERE id IS NULL;  -- of no memory: there should be none

ALTER TABLE words
    ALTER COLUMN id SET NOT NULL,
    ALTER COLUMN state SET NOT NULL,
    ALTER COLUMN audience SET NOT NULL,
    ALTER COLUMN user_id SET NOT NULL,
    ALTER COLUMN kind SET NOT NULL,
    ALTER COLUMN category SET NOT NULL,
    ALTER COLUMN importance SET NOT NULL,
    ALTER COLUMN created_at SET NOT NULL;

CREATE INDEX words_by_term ON words USING gin (terms) WITH (fastupdate = off);

-- Most questions about ids only ask where the memory's vectors and words are.
DROP INDEX memories_by_id;
CREATE INDEX memories_by_id ON memories (id) INCLUDE (space, seq);

CREATE INDEX signatures_by_user ON signatures (space, user_id, state);
CREATE INDEX signatures_by_created ON signatures (space, state, created_at);
