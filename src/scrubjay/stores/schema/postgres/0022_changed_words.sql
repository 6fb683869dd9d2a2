-- Which memories have changed in their words, too. Released files are never edited.
--
-- Servers keep which passages of a scope hold a word beside its vectors (see postgres/postings.py), and
-- ask `changed_memories` what they have missed. A function of its own: servers of the version before count the triggers
-- that they know by theirs.

CREATE FUNCTION note_changed_words() RETURNS TRIGGER
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
    IF last % 1000 < cardinality(those) THEN  -- as in 0021: every thousandth number may be noted here
        DELETE FROM changed_memories WHERE number < last - 10000;
    END IF;
    RETURN NULL;
END;
$$;

CREATE TRIGGER words_noted_new AFTER INSERT ON words
REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_changed_words();

CREATE TRIGGER words_noted_changed AFTER UPDATE ON words
REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_changed_words();

CREATE TRIGGER words_noted_gone AFTER DELETE ON words
REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_changed_words();
