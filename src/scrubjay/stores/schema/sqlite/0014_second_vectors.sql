-- Vectors of a second model, beside those in `vectors`. Released files are never edited.
--
-- Both are asked, and what they say is added up (engine/search/languages.py); vectors of two models are never compared.
-- A memory may have none: then it is found by the first model alone. All parts of a text come together.
CREATE TABLE second_vectors (
    id     INTEGER PRIMARY KEY,
    memory INTEGER NOT NULL REFERENCES memories,
    part   INTEGER NOT NULL,
    model  TEXT NOT NULL,  -- the fingerprint of whoever made it
    vector BLOB NOT NULL,  -- float32, little endian, unit length
    UNIQUE (memory, part)
) STRICT;

-- They go with the text that they were made of, whoever changes or erases it.
CREATE TRIGGER second_vectors_outdated
AFTER UPDATE OF fingerprint ON memories
WHEN NEW.fingerprint IS NOT OLD.fingerprint
BEGIN
    DELETE FROM second_vectors WHERE memory = NEW.seq;
END;

-- Whose vectors an index holds; NULL: those in `vectors`.
ALTER TABLE vector_indexes ADD COLUMN model TEXT;
