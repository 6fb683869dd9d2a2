-- Brings a store of schema 27 to 28: nothing is added up in advance any more.

DROP TRIGGER memories_counted;
DROP TRIGGER memories_taken_out;
DROP TRIGGER memories_put_in;
DROP TRIGGER memories_moved;
DROP TRIGGER memories_marked;
DROP TRIGGER vectors_counted;
DROP TRIGGER vectors_replaced;
DROP TRIGGER vectors_taken_out;
DROP TRIGGER archives_counted;
DROP TRIGGER archives_taken_out;
DROP VIEW counts_of_memories;
DROP VIEW counted;
DROP VIEW happened;
DROP TABLE totals;

ALTER TABLE counters DROP COLUMN counted_later;

ALTER TABLE activity RENAME TO former_activity;

CREATE TABLE activity (
    part           TEXT NOT NULL,
    at             INTEGER NOT NULL,
    space          INTEGER NOT NULL REFERENCES spaces,
    audience       INTEGER NOT NULL,
    reads          INTEGER NOT NULL,
    consolidations INTEGER NOT NULL,
    consolidated   INTEGER NOT NULL,
    PRIMARY KEY (part, at, space, audience)
) STRICT, WITHOUT ROWID;

INSERT INTO activity (part, at, space, audience, reads, consolidations, consolidated)
SELECT part, at, space, audience, reads, consolidations, consolidated
FROM former_activity
WHERE hours = 1 AND (reads > 0 OR consolidations > 0);

DROP TABLE former_activity;

-- Of memories whose date had come, the names of their files were left.
DELETE FROM files
WHERE memory IN (SELECT id FROM memories WHERE state = 4)
AND NOT EXISTS (SELECT 1 FROM outbox WHERE outbox.space = files.space AND outbox.memory = files.memory);
