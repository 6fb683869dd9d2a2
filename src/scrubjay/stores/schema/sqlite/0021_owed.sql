-- What a client is still to be told: which of its new memories could not be compared with earlier ones in time. A row
-- goes when the client has been told what the comparison found. Released files are never edited.
CREATE TABLE owed (
    memory TEXT PRIMARY KEY,  -- by id, like links
    user   TEXT NOT NULL,     -- who stored it …
    client TEXT NOT NULL      -- … with which program
) STRICT, WITHOUT ROWID;

CREATE INDEX owed_by_client ON owed (user, client);
