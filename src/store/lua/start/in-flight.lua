-- Reads the starts in flight of many sync jobs at once: one flat list of tasks and marks each.
-- KEYS: their hashes of starts in flight
local all = {}
for index, key in ipairs(KEYS) do
  all[index] = redis.call('HGETALL', key)
end
return all
