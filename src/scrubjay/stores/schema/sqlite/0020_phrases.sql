-- Other words under which a memory may be looked for. Released files are never edited.
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
