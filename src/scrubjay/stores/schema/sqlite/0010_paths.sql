-- Paths are unique per audience: one shared or public memory at a path, and one private one of each user. That another
-- user keeps something private at a path must not show in an error. Released files are never edited.

CREATE UNIQUE INDEX memories_by_place ON memories (space, path, max(audience, 1)) WHERE state IN (0, 1);
DROP INDEX memories_by_path;

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('memories', 'memories_by_place', '90000 45000 1 1');
