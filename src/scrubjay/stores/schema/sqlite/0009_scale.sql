-- The vec1 index, bulk loads. Released files are never edited.

-- Derived tables for finding by meaning in a large store (stores/sqlite/vec1_tables.py): each row here stands for a virtual
-- table `near_<number>`, made once there are enough vectors to learn from. Nothing depends on them: whatever is missing
-- or wrong there is found by reading `vectors`.
--
--     filling ──> ready ──> retired ──> gone
CREATE TABLE vector_indexes (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used twice: processes remember which one failed them
    dimension INTEGER NOT NULL,
    state     TEXT NOT NULL,     -- filling, ready or retired
    buckets   INTEGER NOT NULL,  -- lists that its rows are spread over
    trained   INTEGER NOT NULL,  -- how many vectors there were when it was made
    filled    INTEGER NOT NULL   -- memories up to this one are in it; later ones as they change
) STRICT;

-- Only for reading all of one user's memories, by name (INDEXED BY): its statistics keep the planner from taking it
-- for lists, which have indexes in their own order.
CREATE INDEX memories_by_user ON memories (user, space, state);

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('memories', 'memories_by_user', '100000 100000 100000 100000');
