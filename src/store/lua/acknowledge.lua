-- Notes that a person knows of a policy's trouble, or ends that; open pages show it.
-- KEYS: policy state, outcome count
-- ARGV: acknowledgement (JSON; '' ends it), end of the newest task that the person knows of (ms)
-- Answers 1, or 0 when a newer task has ended meanwhile, or there is nothing to end.
local stateKey, outcomeCountKey = unpack(KEYS)
local acknowledgement, knownMs = unpack(ARGV)
if acknowledgement == '' then
  if redis.call('HDEL', stateKey, 'acknowledged') == 0 then return 0 end
else
  for _, line in ipairs(redis.call('HVALS', stateKey)) do
    local endedMs = string.match(line, '^(%d+)\t')
    if endedMs and tonumber(endedMs) > tonumber(knownMs) then return 0 end
  end
  redis.call('HSET', stateKey, 'acknowledged', acknowledgement)
end
redis.call('INCR', outcomeCountKey)
return 1
