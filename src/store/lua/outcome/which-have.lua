-- Tells which tasks of a policy have an outcome, by the outcomes themselves and not by an index.
-- KEYS: 1 outcomes; ARGV: ids of tasks
-- Answer: for each 1 or 0
local has = {}
for index, id in ipairs(ARGV) do
  has[index] = redis.call('HEXISTS', KEYS[1], id)
end
return has
