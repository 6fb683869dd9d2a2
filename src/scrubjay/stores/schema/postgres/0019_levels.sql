-- Signatures with two bits for each number of a vector. Released files are never edited.
--
-- Is it above -t, is it above t, where t is half of what a number of a vector of length one has on average. What differs
-- in few of these bits is nearer than what differs in few signs: fewer vectors have to be compared exactly, and more of
-- the nearest are among them (docs/decisions/the-index.md). `bits` stay for programs of the version before.

CREATE FUNCTION levels_of(given VECTOR) RETURNS BIT VARYING
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN
    binary_quantize(given + array_fill((0.5 / sqrt(vector_dims(given)))::REAL, ARRAY[vector_dims(given)])::VECTOR)
    || binary_quantize(given - array_fill((0.5 / sqrt(vector_dims(given)))::REAL, ARRAY[vector_dims(given)])::VECTOR);

ALTER TABLE signatures ADD COLUMN levels BIT VARYING STORAGE PLAIN;  -- read as it is, without a copy

DROP INDEX IF EXISTS signatures_by_category;  -- a copy that was cut off has none

UPDATE signatures SET levels = levels_of(vector)
FROM vectors
WHERE vectors.space = signatures.space AND vectors.memory = signatures.memory AND vectors.part = signatures.part;

-- With all that is compared, so that a category, a ninth of a store on every page of it, is read from a few pages.
CREATE INDEX signatures_of_category ON signatures (space, category, state)
    INCLUDE (memory, part, id, audience, created_at, expires_at, levels);

-- Servers of the version before write signatures without levels.
CREATE FUNCTION add_levels() RETURNS TRIGGER
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $$
BEGIN
    UPDATE signatures SET levels = levels_of(vector)
    FROM vectors
    WHERE signatures.space = NEW.space AND signatures.memory = NEW.memory AND signatures.part = NEW.part
    AND vectors.space = NEW.space AND vectors.memory = NEW.memory AND vectors.part = NEW.part;
    RETURN NULL;
END;
$$;

CREATE TRIGGER signatures_without_levels
AFTER INSERT ON signatures
FOR EACH ROW
WHEN (NEW.levels IS NULL)
EXECUTE FUNCTION add_levels();
