-- Notes that a person knows of a policy's trouble, or ends that; open pages show it.
-- KEYS: policy state, changed policies
-- ARGV: policy, acknowledgement (JSON; '' ends it), end of the newest task that the person knows
-- of (ms)
-- Answers 1, or 0 when a newer task has ended meanwhile, or there is nothing to end.
local stateKey, changedKey = unpack(KEYS)
local policy, acknowledgement, knownMs = unpack(ARGV)
--- @include "policy-state"
if acknowledgement == '' then
  if redis.call('HDEL', stateKey, 'acknowledged') == 0 then return 0 end
else
  for _, line in ipairs(redis.call('HVALS', stateKey)) do
    local endedMs = string.match(line, '^(%d+)\t')
    if endedMs and tonumber(endedMs) > tonumber(knownMs) then return 0 end
  end
  redis.call('HSET', stateKey, 'acknowledged', acknowledgement)
end
noteChanged(changedKey, policy)
return 1
