-- Which memories have changed in what a search by meaning asks of them. Released files are never edited.
--
-- Servers keep the vectors of scopes that they are often asked about in memory, and ask here what they have missed (see
-- postgres/scopes.py). Triggers note it, so that what servers of the version before write is noted too.
-- Writers take turns (see postgres/connections.py): whoever sees a number has seen all that are lower.

CREATE TABLE changed_memories (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    memory BIGINT,  -- none: more than are worth naming
    mark   UUID NOT NULL DEFAULT gen_random_uuid()  -- a number may come again after a restore, this does not
);

CREATE FUNCTION note_changes() RETURNS TRIGGER
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $$
DECLARE
    those BIGINT[] := ARRAY(SELECT memory FROM changed LIMIT 101);
    last BIGINT;
BEGIN
    IF cardinality(those) = 0 THEN
        RETURN NULL;
    ELSIF cardinality(those) > 100 THEN
        those := ARRAY[NULL];
    END IF;
    INSERT INTO changed_memories (memory) SELECT DISTINCT unnest(those);
    last := lastval();
    IF last % 1000 < cardinality(those) THEN  -- whoever has missed more than 10,000 starts over
        DELETE FROM changed_memories WHERE number < last - 10000;
    END IF;
    RETURN NULL;
END;
$$;

CREATE TRIGGER signatures_came AFTER INSERT ON signatures
REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_changes();

CREATE TRIGGER signatures_changed AFTER UPDATE ON signatures
REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_changes();

CREATE TRIGGER signatures_went AFTER DELETE ON signatures
REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_changes();

CREATE TRIGGER tags_came AFTER INSERT ON tags
REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_changes();

CREATE TRIGGER tags_changed AFTER UPDATE ON tags
REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_changes();

CREATE TRIGGER tags_went AFTER DELETE ON tags
REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_changes();
