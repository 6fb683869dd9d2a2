-- With which credential something was done: the audit shows who made it. Released files are never edited.
ALTER TABLE events ADD COLUMN credential TEXT;
ALTER TABLE acts ADD COLUMN credential TEXT;
