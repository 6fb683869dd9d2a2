-- Topics are the same whether their words are joined by spaces, `_` or `-` (memory.topic_key): `auth_strategy` and `Auth
-- Strategy`. A run of joints is one space. Released files are never edited.
UPDATE memories
SET topic_key = COALESCE(NULLIF(trim(
    replace(replace(replace(replace(replace(replace(replace(replace(topic_key, '_', ' '), '-', ' '), '‐', ' '), '–', ' '), '—', ' '), ' ', chr(1) || chr(2)), chr(2) || chr(1), ''), chr(1) || chr(2), ' ')
), ''), topic_key)
WHERE topic_key IS NOT NULL;
