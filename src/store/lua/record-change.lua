-- Records a change and drops the oldest, or puts it in the place of its beginning.
-- KEYS: changes
-- ARGV: change ('' takes the beginning off), its beginning ('' without), index of the last one
-- to keep
local changesKey = KEYS[1]
local change, begun, lastIndex = unpack(ARGV)
local place = begun ~= '' and redis.call('LPOS', changesKey, begun)
if change == '' then
  redis.call('LREM', changesKey, 1, begun)
elseif place then
  redis.call('LSET', changesKey, place, change)
else
  redis.call('LPUSH', changesKey, change)
  redis.call('LTRIM', changesKey, 0, lastIndex)
end
