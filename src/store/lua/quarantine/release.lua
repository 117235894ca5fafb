-- Ends a quarantine by hand and forgets the failures.
-- KEYS: quarantines
-- ARGV: policy, actor
-- Answers the ended entry; nothing when none was in force.
local quarantinesKey = KEYS[1]
local policy, actor = unpack(ARGV)
--- @include "now"
local text = redis.call('HGET', quarantinesKey, policy)
if not text then return false end
local entry = cjson.decode(text)
local isInForce = entry.untilMs ~= cjson.null and entry.untilMs > now
entry.failures = 0
if isInForce then
  entry.untilMs = now
  entry.endedBy = actor
end
text = cjson.encode(entry)
redis.call('HSET', quarantinesKey, policy, text)
return isInForce and text or false
