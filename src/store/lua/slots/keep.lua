-- Makes records permanent again: a replica that does not know their policies may have let them
-- expire.
-- KEYS: slots and indexes
for i = 1, #KEYS do redis.call('PERSIST', KEYS[i]) end
