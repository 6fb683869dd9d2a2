-- Paths are unique per audience: one shared or public memory at a path, and one private one of each user. That another
-- user keeps something private at a path must not show in an error. Released files are never edited.
--
-- Programs of the schema before go on working: they look for a memory at a path before they write, under the writers'
-- lock, and never name the index that goes.

CREATE UNIQUE INDEX memories_by_place
    ON memories (space, path, (CASE audience WHEN 'public' THEN 'shared' ELSE audience END))
    WHERE state IN (0, 1);
DROP INDEX memories_by_path;
