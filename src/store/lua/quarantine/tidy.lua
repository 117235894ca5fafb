-- Drops entries, unless an ending was counted since they were read.
-- KEYS: quarantines
-- ARGV: pairs of policy and entry as read
local quarantinesKey = KEYS[1]
for i = 1, #ARGV, 2 do
  local policy, text = ARGV[i], ARGV[i + 1]
  if redis.call('HGET', quarantinesKey, policy) == text then redis.call('HDEL', quarantinesKey, policy) end
end
