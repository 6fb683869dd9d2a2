-- For Citus: run once, as the store's owner, with `SET search_path = scrubjay`, after scrubjay has made the schema and
-- before anything is stored. Everything of a space lies on one shard; what belongs to no space lies on every node.
-- The triggers on `words` and `signatures` write rows of the same space: allow them with `SET citus.enable_unsafe_triggers = on`.
-- Those that note changes in `changed_memories` cannot be spread: without them no vectors are kept in memory.

DROP TRIGGER IF EXISTS signatures_came ON signatures;
DROP TRIGGER IF EXISTS signatures_changed ON signatures;
DROP TRIGGER IF EXISTS signatures_went ON signatures;
DROP TRIGGER IF EXISTS tags_came ON tags;
DROP TRIGGER IF EXISTS tags_changed ON tags;
DROP TRIGGER IF EXISTS tags_went ON tags;
DROP TRIGGER IF EXISTS words_noted_new ON words;
DROP TRIGGER IF EXISTS words_noted_changed ON words;
DROP TRIGGER IF EXISTS words_noted_gone ON words;

SELECT create_distributed_table('memories', 'space');
SELECT create_distributed_table('aliases', 'space', colocate_with => 'memories');
SELECT create_distributed_table('tags', 'space', colocate_with => 'memories');
SELECT create_distributed_table('versions', 'space', colocate_with => 'memories');
SELECT create_distributed_table('vectors', 'space', colocate_with => 'memories');
SELECT create_distributed_table('second_vectors', 'space', colocate_with => 'memories');
SELECT create_distributed_table('signatures', 'space', colocate_with => 'memories');
SELECT create_distributed_table('pending', 'space', colocate_with => 'memories');
SELECT create_distributed_table('words', 'space', colocate_with => 'memories');
SELECT create_distributed_table('vocabulary', 'space', colocate_with => 'memories');
SELECT create_distributed_table('audience_vocabulary', 'space', colocate_with => 'memories');
SELECT create_distributed_table('audience_passages', 'space', colocate_with => 'memories');
SELECT create_distributed_table('totals', 'space', colocate_with => 'memories');
SELECT create_distributed_table('activity', 'space', colocate_with => 'memories');
SELECT create_distributed_table('events', 'space', colocate_with => 'memories');
SELECT create_distributed_table('recalls', 'space', colocate_with => 'memories');
SELECT create_distributed_table('recall_counts', 'space', colocate_with => 'memories');
SELECT create_distributed_table('ancestry', 'space', colocate_with => 'memories');
SELECT create_distributed_table('archives', 'space', colocate_with => 'memories');
SELECT create_distributed_table('files', 'space', colocate_with => 'memories');
SELECT create_distributed_table('outbox', 'space', colocate_with => 'memories');
SELECT create_distributed_table('sections', 'space', colocate_with => 'memories');
SELECT create_distributed_table('conversations', 'space', colocate_with => 'memories');
SELECT create_distributed_table('messages', 'space', colocate_with => 'memories');
SELECT create_distributed_table('injections', 'space', colocate_with => 'memories');
SELECT create_reference_table('spaces');
