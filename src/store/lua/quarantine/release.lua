-- Ends a quarantine before its time and forgets the failures.
-- KEYS: quarantines
-- ARGV: policy, actor
-- Answers the ended entry; nothing, with nothing changed, when none was in force.
local quarantinesKey = KEYS[1]
local policy, actor = unpack(ARGV)
--- @include "now"
local text = redis.call('HGET', quarantinesKey, policy)
if not text then return false end
local entry = cjson.decode(text)
if entry.untilMs == cjson.null or entry.untilMs <= now then return false end
entry.failures = 0
entry.rowFromMs = nil
entry.untilMs = now
entry.endedBy = actor
text = cjson.encode(entry)
redis.call('HSET', quarantinesKey, policy, text)
return text
