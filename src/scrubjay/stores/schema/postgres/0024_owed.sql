-- What a client is still to be told: which of its new memories could not be compared with earlier ones in time. A row
-- goes when the client has been told what the comparison found. Released files are never edited.
CREATE TABLE owed (
    memory  TEXT COLLATE "C" NOT NULL,  -- by id, like links
    user_id TEXT COLLATE "C" NOT NULL,  -- who stored it …
    client  TEXT COLLATE "C" NOT NULL,  -- … with which program
    PRIMARY KEY (memory)
);

CREATE INDEX owed_by_client ON owed (user_id, client);
