-- Reads the same fields of many hashes.
-- KEYS: the hashes
-- ARGV: the fields
-- Answers a list for each hash: the values of the fields; nil where it has none.
local found = {}
for index, key in ipairs(KEYS) do
  found[index] = redis.call('HMGET', key, unpack(ARGV))
end
return found
