-- Frequencies of words within what a caller may see. Released files are never edited.
--
-- FTS5 counts words over the whole file, so another's private memories would show in everybody's scores. For callers from
-- whom something is hidden, passages are counted here: whose each is, and how long. A row stands for a row of `words`, or
-- of `archived_words`, with the same number.

CREATE TABLE passages (
    id       INTEGER PRIMARY KEY,  -- memories.seq × 256 + its place
    space    INTEGER NOT NULL REFERENCES spaces,
    audience INTEGER NOT NULL,
    archived INTEGER NOT NULL,     -- 1: of a memory that was put away
    length   INTEGER NOT NULL      -- in words
) STRICT;

CREATE TABLE passage_totals (
    archived INTEGER NOT NULL,
    space    INTEGER NOT NULL REFERENCES spaces,
    audience INTEGER NOT NULL,
    passages INTEGER NOT NULL,
    words    INTEGER NOT NULL,
    changes  INTEGER NOT NULL,     -- only ever rises: while it stays, so do all counts within
    PRIMARY KEY (archived, space, audience)
) STRICT, WITHOUT ROWID;

-- What `passages` should hold. FTS5 keeps the lengths of a row's columns as varints: the text's, of up to three bytes
-- here, then the scope's, which is one byte.
CREATE VIEW indexed_passages (id, space, audience, archived, length)
AS SELECT
    documents.id, memories.space, memories.audience, documents.archived,
    CASE length(documents.bytes)
        WHEN 4 THEN
            instr('123456789ABCDEF', substr(bytes, 1, 1)) * 16 + instr('123456789ABCDEF', substr(bytes, 2, 1))
        WHEN 6 THEN
            (instr('123456789ABCDEF', substr(bytes, 1, 1)) & 7) * 2048
            + instr('123456789ABCDEF', substr(bytes, 2, 1)) * 128
            + instr('123456789ABCDEF', substr(bytes, 3, 1)) * 16
            + instr('123456789ABCDEF', substr(bytes, 4, 1))
        ELSE
            (instr('123456789ABCDEF', substr(bytes, 1, 1)) & 7) * 262144
            + instr('123456789ABCDEF', substr(bytes, 2, 1)) * 16384
            + (instr('123456789ABCDEF', substr(bytes, 3, 1)) & 7) * 2048
            + instr('123456789ABCDEF', substr(bytes, 4, 1)) * 128
            + instr('123456789ABCDEF', substr(bytes, 5, 1)) * 16
            + instr('123456789ABCDEF', substr(bytes, 6, 1))
    END
FROM (
    SELECT id, hex(sz) AS bytes, 0 AS archived FROM words_docsize
    UNION ALL
    SELECT id, hex(sz), 1 FROM archived_words_docsize
) AS documents
CROSS JOIN memories ON memories.seq = documents.id / 256;

INSERT INTO passages (id, space, audience, archived, length)
SELECT id, space, audience, archived, length FROM indexed_passages;

INSERT INTO passage_totals (archived, space, audience, passages, words, changes)
SELECT archived, space, audience, count(*), sum(length), count(*)
FROM passages
GROUP BY archived, space, audience;

CREATE TRIGGER passages_counted
AFTER INSERT ON passages
BEGIN
    INSERT INTO passage_totals (archived, space, audience, passages, words, changes)
    VALUES (NEW.archived, NEW.space, NEW.audience, 1, NEW.length, 1)
    ON CONFLICT DO UPDATE SET
        passages = passages + 1, words = words + excluded.words, changes = changes + 1;
END;

CREATE TRIGGER passages_taken_out
AFTER DELETE ON passages
BEGIN
    UPDATE passage_totals
    SET passages = passages - 1, words = words - OLD.length, changes = changes + 1
    WHERE archived = OLD.archived AND space = OLD.space AND audience = OLD.audience;
END;

CREATE TRIGGER passages_moved
AFTER UPDATE ON passages
BEGIN
    UPDATE passage_totals
    SET passages = passages - 1, words = words - OLD.length, changes = changes + 1
    WHERE archived = OLD.archived AND space = OLD.space AND audience = OLD.audience;
    INSERT INTO passage_totals (archived, space, audience, passages, words, changes)
    VALUES (NEW.archived, NEW.space, NEW.audience, 1, NEW.length, 1)
    ON CONFLICT DO UPDATE SET
        passages = passages + 1, words = words + excluded.words, changes = changes + 1;
END;

CREATE TRIGGER memories_move_passages
AFTER UPDATE OF space, audience ON memories
WHEN OLD.space <> NEW.space OR OLD.audience <> NEW.audience
BEGIN
    UPDATE passages
    SET space = NEW.space, audience = NEW.audience
    WHERE id BETWEEN NEW.seq * 256 AND NEW.seq * 256 + 255;
END;
