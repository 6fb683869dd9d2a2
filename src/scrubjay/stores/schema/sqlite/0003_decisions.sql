-- Decisions: topics however they are spelt, and checkpoints that count per space. Released files are never edited.

ALTER TABLE memories ADD COLUMN topic_key TEXT;  -- memory.topic_key: what topics are compared by
UPDATE memories SET topic_key = lower(trim(topic)) WHERE topic IS NOT NULL;

DROP INDEX memories_by_topic;
CREATE INDEX memories_by_topic ON memories (space, topic_key, state, created_at) WHERE topic_key IS NOT NULL;

ALTER TABLE spaces ADD COLUMN checkpoints INTEGER NOT NULL DEFAULT 0;  -- number of the last one

-- See 0001: what a grown store looks like. Dropping an index took its row along.
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('memories', 'memories_by_topic', '20000 10000 10 8 1');
