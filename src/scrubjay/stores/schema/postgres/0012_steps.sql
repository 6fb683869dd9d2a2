-- How far the schema was expanded. Released files are never edited.
--
-- Programs that know files up to 0011 refuse a store whose `facts.schema` is higher. From here on files only add, so
-- that those programs go on serving; which were run is kept here (see postgres/schema.py). It is a table, not a fact:
-- `scrubjay copy` takes facts to other databases.

CREATE TABLE schema_steps (
    number INTEGER PRIMARY KEY,
    done_at TIMESTAMPTZ NOT NULL DEFAULT now()
);
