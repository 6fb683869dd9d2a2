-- Signatures of vectors. Released files are never edited.
--
-- One bit for each number of a vector (is it above zero?), beside what most filters ask. Rows are a tenth as wide as
-- vectors and memories are: so those that a filter admits are compared without reading either. The program keeps them
-- (see postgres/signatures.py); they say nothing that is not in `memories` and `vectors`.

CREATE TABLE signatures (
    space           TEXT COLLATE "C" NOT NULL,
    memory          BIGINT NOT NULL,
    part            SMALLINT NOT NULL,
    id              TEXT COLLATE "C" NOT NULL,
    state           SMALLINT NOT NULL,
    audience        TEXT COLLATE "C" NOT NULL,
    user_id         TEXT COLLATE "C" NOT NULL,
    conversation_id TEXT COLLATE "C",
    kind            TEXT COLLATE "C" NOT NULL,
    category        TEXT COLLATE "C" NOT NULL,
    importance      DOUBLE PRECISION NOT NULL,
    created_at      BIGINT NOT NULL,
    expires_at      BIGINT,
    bits            BIT VARYING NOT NULL,
    PRIMARY KEY (space, memory, part)
);

INSERT INTO signatures
SELECT
    vectors.space, vectors.memory, vectors.part, id, state, audience, user_id, conversation_id, kind, category,
    importance, created_at, expires_at, binary_quantize(vector)
FROM vectors
JOIN memories ON memories.space = vectors.space AND memories.seq = vectors.memory;

CREATE INDEX signatures_by_category ON signatures (space, category, state);
