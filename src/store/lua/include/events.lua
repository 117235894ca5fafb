-- The most events that wait for the notifier, about 900 bytes each. With more, the oldest go; the
-- notifier counts those that it missed.
local eventsMax = 100000
local function addEvent(streamKey, ...) redis.call('XADD', streamKey, 'MAXLEN', '~', eventsMax, '*', ...) end
