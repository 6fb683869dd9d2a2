-- Other words under which a memory may be looked for. Released files are never edited.
ALTER TABLE memories
ADD COLUMN also TEXT COLLATE "C" NOT NULL DEFAULT '[]',         -- JSON
ADD COLUMN former_also TEXT COLLATE "C" NOT NULL DEFAULT '[]';  -- JSON, values.memory.FormerPhrases

-- Vectors of a second model are made of the text and the phrases.
CREATE TRIGGER second_vectors_rephrased
AFTER UPDATE OF also ON memories
FOR EACH ROW
WHEN (OLD.also <> NEW.also)
EXECUTE FUNCTION forget_second_vectors();
