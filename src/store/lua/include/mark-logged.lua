-- Notes that all discovered so far is in the log: a walk logs its findings before it ends.
local function markLogged(statusKey)
  redis.call('HSET', statusKey, 'loggedSeq', redis.call('HGET', statusKey, 'seq') or 0)
end
