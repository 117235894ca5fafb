-- Saves the notifier's states and moves its cursor, all or nothing, if the owner has the lease.
-- KEYS: lease, state, stream, policies, services, muted, outbox, heartbeats, deadlines, digests
-- ARGV: owner, cursor ('' for none), number of events that it passes, then triples of key (4 to
-- 10), field and value ('' removes the field)
-- Answers 1, or 0 when another notifier has the lease.
local leaseKey, stateKey, streamKey = unpack(KEYS, 1, 3)
local owner, cursor, passed = unpack(ARGV, 1, 3)
if redis.call('GET', leaseKey) ~= owner then return 0 end
for i = 4, #ARGV, 3 do
  local key, field, value = KEYS[tonumber(ARGV[i])], ARGV[i + 1], ARGV[i + 2]
  if value == '' then redis.call('HDEL', key, field) else redis.call('HSET', key, field, value) end
end
redis.call('HINCRBY', stateKey, 'handled', passed)
if cursor ~= '' then
  redis.call('HSET', stateKey, 'cursor', cursor)
  redis.call('XTRIM', streamKey, 'MINID', '=', cursor)
  redis.call('XDEL', streamKey, cursor)
end
return 1
