-- Vectors in half the bytes. Released files are never edited.
--
-- From here on a vector is written as 16-bit integers with a scale (stores/sqlite/vectors.py): an odd number of bytes. What
-- is there already is rewritten in the background, found by these indexes; either form is read.
CREATE INDEX whole_vectors ON vectors (id) WHERE length(vector) % 4 = 0;
CREATE INDEX whole_second_vectors ON second_vectors (id) WHERE length(vector) % 4 = 0;
