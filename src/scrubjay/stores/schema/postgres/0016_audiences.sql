-- Frequencies of words within what a caller may see. Released files are never edited.
--
-- `vocabulary` and `spaces` count over a whole space, so another's private memories would show in everybody's scores.
-- Here what is not shared is counted once more by audience, and taken off for those who may not see it. The server does
-- it, so that programs of the version before, which know nothing of it, do it too. Writers take turns (see
-- postgres/connections.py), so nobody waits for these rows.

CREATE TABLE audience_vocabulary (
    space    TEXT COLLATE "C" NOT NULL,
    term     TEXT COLLATE "C" NOT NULL,
    audience TEXT COLLATE "C" NOT NULL,  -- as in memories, but never 'shared'
    passages BIGINT NOT NULL,
    PRIMARY KEY (space, term, audience)
) WITH (fillfactor = 70);

CREATE TABLE audience_passages (
    space    TEXT COLLATE "C" NOT NULL,
    audience TEXT COLLATE "C" NOT NULL,
    passages BIGINT NOT NULL,
    words    BIGINT NOT NULL,
    PRIMARY KEY (space, audience)
) WITH (fillfactor = 70);

INSERT INTO audience_vocabulary (space, term, audience, passages)
SELECT words.space, lexeme, audience, count(*)
FROM words
CROSS JOIN unnest(terms)
WHERE audience <> 'shared'
AND weights IS NOT NULL  -- the lexeme that names the space has none
GROUP BY words.space, lexeme, audience;

INSERT INTO audience_passages (space, audience, passages, words)
SELECT space, audience, count(*), sum(length)
FROM words
WHERE audience <> 'shared'
GROUP BY space, audience;

CREATE FUNCTION count_audience() RETURNS TRIGGER
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $$
BEGIN
    IF TG_OP <> 'INSERT' AND OLD.audience <> 'shared' THEN
        UPDATE audience_vocabulary AS known
        SET passages = known.passages - 1
        FROM unnest(OLD.terms) AS gone
        WHERE known.space = OLD.space AND known.term = gone.lexeme AND known.audience = OLD.audience;
        -- A word that stands nowhere any more may be what was to be erased.
        DELETE FROM audience_vocabulary AS known
        USING unnest(OLD.terms) AS gone
        WHERE known.space = OLD.space AND known.term = gone.lexeme AND known.audience = OLD.audience
        AND known.passages <= 0;
        UPDATE audience_passages AS known
        SET passages = known.passages - 1, words = known.words - OLD.length
        WHERE known.space = OLD.space AND known.audience = OLD.audience;
    END IF;
    IF TG_OP <> 'DELETE' AND NEW.audience <> 'shared' THEN
        INSERT INTO audience_vocabulary AS known (space, term, audience, passages)
        SELECT NEW.space, lexeme, NEW.audience, 1
        FROM unnest(NEW.terms)
        WHERE weights IS NOT NULL
        ON CONFLICT (space, term, audience) DO UPDATE SET passages = known.passages + 1;
        INSERT INTO audience_passages AS known (space, audience, passages, words)
        VALUES (NEW.space, NEW.audience, 1, NEW.length)
        ON CONFLICT (space, audience) DO UPDATE
        SET passages = known.passages + 1, words = known.words + excluded.words;
    END IF;
    RETURN NULL;
END;
$$;

CREATE TRIGGER words_came
AFTER INSERT ON words
FOR EACH ROW
WHEN (NEW.audience <> 'shared')
EXECUTE FUNCTION count_audience();

CREATE TRIGGER words_went
AFTER DELETE ON words
FOR EACH ROW
WHEN (OLD.audience <> 'shared')
EXECUTE FUNCTION count_audience();

CREATE TRIGGER words_changed_hands
AFTER UPDATE OF space, audience, length, terms ON words
FOR EACH ROW
WHEN (
    (OLD.space, OLD.audience, OLD.length) IS DISTINCT FROM (NEW.space, NEW.audience, NEW.length)
    OR OLD.terms IS DISTINCT FROM NEW.terms
)
EXECUTE FUNCTION count_audience();
