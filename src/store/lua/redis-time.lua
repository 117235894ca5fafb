-- Reads the time.
-- KEYS: any of ours, so that in a cluster its node answers
return redis.call('TIME')
