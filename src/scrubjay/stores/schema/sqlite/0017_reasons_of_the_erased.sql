-- Reasons of changes quote the memory that they speak of. Those of memories that were erased before reasons went with
-- them are erased here; why it was erased stays in the audit. Released files are never edited.
UPDATE events SET reason = NULL
WHERE reason IS NOT NULL
AND action <> 'purged'
AND memory IN (SELECT id FROM memories WHERE state = 4);
