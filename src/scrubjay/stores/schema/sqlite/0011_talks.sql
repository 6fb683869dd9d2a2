-- Conversations belong to a user and are seen as memories are. Released files are never edited.
--
-- Nobody knows who began those that are here already: they are shared, and only owners delete them.

ALTER TABLE conversations ADD COLUMN user_id TEXT;  -- who began it; none: not known
ALTER TABLE conversations ADD COLUMN access_level TEXT NOT NULL DEFAULT 'shared';
