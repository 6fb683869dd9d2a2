-- Memories that come by the hundred are counted together. Released files are never edited.
--
-- 1: whoever is writing counts its new memories itself, in the same transaction. Nobody else ever sees it.
ALTER TABLE counters ADD COLUMN counted_later INTEGER NOT NULL DEFAULT 0;

DROP TRIGGER memories_counted;
CREATE TRIGGER memories_counted
AFTER INSERT ON memories
WHEN coalesce((SELECT counted_later FROM counters), 0) = 0
BEGIN
    INSERT INTO counted
    SELECT
        space, audience, user, conversation, category, state, importance,
        memories, text_bytes, vector_bytes, reads, squared_reads, read_memories, judged, agreed, repeats
    FROM counts_of_memories
    WHERE seq = NEW.seq;

    INSERT INTO happened
    VALUES (
        NEW.space, NEW.audience, NEW.user, NEW.conversation, NEW.category, NEW.created_at / 3600000, 1, 0, 0, 0
    );
END;
