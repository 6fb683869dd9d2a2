-- Vectors of a second model, beside those in `vectors`. Released files are never edited.
--
-- Both are asked, and what they say is added up (engine/search/languages.py); vectors of two models are never compared.
-- A memory may have none: then it is found by the first model alone. All parts of a text come together.

CREATE TABLE second_vectors (
    space  TEXT COLLATE "C" NOT NULL,
    memory BIGINT NOT NULL,
    part   SMALLINT NOT NULL,
    model  TEXT COLLATE "C" NOT NULL,  -- the fingerprint of whoever made it
    vector VECTOR NOT NULL,
    PRIMARY KEY (space, memory, part)
);

-- They go with the text that they were made of, whoever changes or erases it: servers of the version before, too.
CREATE FUNCTION forget_second_vectors() RETURNS TRIGGER
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $$
BEGIN
    DELETE FROM second_vectors WHERE space = OLD.space AND memory = OLD.seq;
    RETURN NULL;
END;
$$;

CREATE TRIGGER second_vectors_outdated
AFTER UPDATE OF fingerprint ON memories
FOR EACH ROW
WHEN (OLD.fingerprint IS DISTINCT FROM NEW.fingerprint)
EXECUTE FUNCTION forget_second_vectors();
