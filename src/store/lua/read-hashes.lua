-- Reads many hashes whole: of each one flat list of fields and values.
-- KEYS: the hashes
local all = {}
for index, key in ipairs(KEYS) do
  all[index] = redis.call('HGETALL', key)
end
return all
