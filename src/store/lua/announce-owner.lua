-- Announces an owner.
-- KEYS: owners (hash: name → when it was seen; '' → the holder)
-- ARGV: this owner, '' to read only
-- Answers the holder, then the other owners.
local ownersKey, me = KEYS[1], ARGV[1]
--- @include "now"
local silentForMs = 15000
local names, alive = redis.call('HGETALL', ownersKey), {}
for i = 1, #names, 2 do
  if names[i] ~= '' and now - names[i + 1] <= silentForMs then alive[names[i]] = true end
end
local holder = redis.call('HGET', ownersKey, '')
if not holder or not alive[holder] then holder = me end
if me ~= '' then
  redis.call('HSET', ownersKey, me, now, '', holder)
  for i = 1, #names, 2 do
    local name = names[i]
    if name ~= '' and name ~= me and not alive[name] then redis.call('HDEL', ownersKey, name) end
  end
end
local answer = { holder }
for name in pairs(alive) do
  if name ~= holder then table.insert(answer, name) end
end
return answer
