-- Reasons of events go with the memory that they speak of (hard delete): they are found by it. Released files are never
-- edited.
CREATE INDEX events_by_reason ON events (memory) WHERE reason IS NOT NULL;
