-- One vector per part in the file. Released files are never edited.
--
-- A vec1 table (0009) needs a vector to place its code, and once more to take the code out; in between it lies only in
-- `vectors`. What a transaction replaces or deletes there is kept here until it has taken the codes out, at its end.
CREATE TABLE former_vectors (
    second INTEGER NOT NULL,  -- 1: of a second model
    id     INTEGER NOT NULL,  -- memory × 4096 + part, as in the vec1 tables
    vector BLOB NOT NULL,
    PRIMARY KEY (second, id)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER former_after_delete
AFTER DELETE ON vectors
WHEN EXISTS (SELECT 1 FROM vector_indexes WHERE state <> 'retired')
BEGIN
    INSERT INTO former_vectors (second, id, vector)
    VALUES (0, OLD.memory * 4096 + OLD.part, OLD.vector)
    ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER former_after_update
AFTER UPDATE OF vector ON vectors
WHEN EXISTS (SELECT 1 FROM vector_indexes WHERE state <> 'retired')
BEGIN
    INSERT INTO former_vectors (second, id, vector)
    VALUES (0, OLD.memory * 4096 + OLD.part, OLD.vector)
    ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER former_after_second_delete
AFTER DELETE ON second_vectors
WHEN EXISTS (SELECT 1 FROM vector_indexes WHERE state <> 'retired')
BEGIN
    INSERT INTO former_vectors (second, id, vector)
    VALUES (1, OLD.memory * 4096 + OLD.part, OLD.vector)
    ON CONFLICT DO NOTHING;
END;

-- 0: its rows hold whole vectors; it is rebuilt.
ALTER TABLE vector_indexes ADD COLUMN lean INTEGER NOT NULL DEFAULT 0;
