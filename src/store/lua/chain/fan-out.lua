-- Replaces a task by those that it fanned out into; a second call changes nothing.
-- KEYS: join counter
-- ARGV: target of the task, then the targets of the others, whose outcomes may be there already
local counterKey, target = KEYS[1], ARGV[1]
if redis.call('HGET', counterKey, '=' .. target) ~= '' then return end
for i = 2, #ARGV do
  if redis.call('HSETNX', counterKey, '=' .. ARGV[i], '') == 1 then redis.call('HINCRBY', counterKey, 'open', 1) end
end
redis.call('HSET', counterKey, '=' .. target, 'fanned-out')
redis.call('HINCRBY', counterKey, 'open', -1)
redis.call('HINCRBY', counterKey, 'held', #ARGV - 1)
