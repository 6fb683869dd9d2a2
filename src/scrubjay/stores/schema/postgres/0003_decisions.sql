-- Decisions: topics however they are spelt, and checkpoints that count per space. Released files are never edited.

ALTER TABLE memories ADD COLUMN topic_key TEXT COLLATE "C";  -- memory.topic_key: what topics are compared by
CREATE INDEX memories_by_topic ON memories (space, topic_key, state, created_at) WHERE topic_key IS NOT NULL;

ALTER TABLE spaces ADD COLUMN checkpoints BIGINT NOT NULL DEFAULT 0;  -- number of the last one
