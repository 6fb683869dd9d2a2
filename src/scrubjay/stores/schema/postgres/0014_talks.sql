-- Conversations belong to a user and are seen as memories are. Released files are never edited.
--
-- Nobody knows who began those that are here already, or that programs of before begin: they are shared, and only owners
-- delete them.

ALTER TABLE conversations
    ADD COLUMN user_id TEXT COLLATE "C",  -- who began it; none: not known
    ADD COLUMN access_level TEXT COLLATE "C" NOT NULL DEFAULT 'shared';
