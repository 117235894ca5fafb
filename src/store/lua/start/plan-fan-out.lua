-- Names the sync jobs of a run over masks, if this step has the claim. The policy's state forgets
-- what they no longer name, and that masks could not be read, unless that is of a newer slot; so do
-- the noted troubles.
-- KEYS: entry, event stream, policy state, changed policies, troubles
-- ARGV: claimant, targets (JSON), policy, slot, '1' to write an event for the notifier
-- Answers 1 when done.
local entryKey, streamKey, stateKey, changedKey, troublesKey = unpack(KEYS)
local claimant, targets, policy, slot, isNotified = unpack(ARGV)
--- @include "events"
--- @include "policy-state"

local function forgetUnnamed()
  local named, flat, isChanged = {}, redis.call('HGETALL', stateKey), false
  for _, target in ipairs(cjson.decode(targets)) do named[cjson.encode(target)] = true end
  for i = 1, #flat, 2 do
    local target = flat[i]
    local last = string.match(flat[i + 1], '^%d+\t[+-]?\t%d*\t%d+\t%d*\t%d*\t[^\t]*\t([^\t]*)\t')
    if last and not named[target] and cjson.decode(last)[7] <= tonumber(slot) then
      updateAcknowledgement(stateKey, redis.call('HGET', stateKey, 'acknowledged'), target, 0, true)
      redis.call('HDEL', stateKey, target)
      local name = cjson.decode('[' .. target .. ']')[1]
      local noted = '/' .. policy .. '/' .. name
      redis.call('ZREM', troublesKey, 'failing' .. noted, 'conflicts' .. noted)
      isChanged = true
    end
  end
  if isChanged then noteChanged(changedKey, policy) end
end

local entry = redis.call('HMGET', entryKey, 'state', 'claimant')
if entry[1] ~= 'claimed' or entry[2] ~= claimant then return 0 end
redis.call('HSET', entryKey, 'targets', targets)
forgetUnnamed()
if isNotified == '1' then addEvent(streamKey, 'p', policy, 's', slot, 'm', targets) end
return 1
