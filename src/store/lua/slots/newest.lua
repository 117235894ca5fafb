-- Reads the newest slot record of each policy, of slots up to an instant.
-- KEYS: slots and slot-index of each policy
-- ARGV: that instant
-- Answers slot and record of each policy, in turn: '' where there is none.
local answer = {}
for i = 1, #KEYS, 2 do
  local slot = redis.call('ZREVRANGEBYSCORE', KEYS[i + 1], ARGV[1], '-inf', 'LIMIT', 0, 1)[1]
  answer[i] = slot or ''
  answer[i + 1] = slot and redis.call('HGET', KEYS[i], slot) or ''
end
return answer
