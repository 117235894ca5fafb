-- Fields of an event: `o` an outcome; or `p` policy and `s` slot, with `r` record of a missed slot,
-- `m` sync jobs of the masks, or `l` long run (store/notify-store.ts reads them).
-- The most events that wait for the notifier, about 900 bytes each. With more, the oldest go; the
-- notifier counts those that it missed, from Redis 7.0 on.
local eventsMax = 100000
local function addEvent(streamKey, ...) redis.call('XADD', streamKey, 'MAXLEN', '~', eventsMax, '*', ...) end
