-- The join counter of a predecessor's slot is one hash, held only while a follower waits.
--   kind      the kind of its tasks
--   waiting   followers without a record
--   open      tasks without an outcome
--   held      tasks that may still hold the lease of their sync job
--   ended     the latest end of a task
--   =TARGET   the task's status; '' while the task is open
--   ~TARGET   set once the task has released its lease
local joinCounterKeptMs = 32 * 86400000

-- Opens the join counter of a started slot with waiting followers.
local function openJoinCounter(counterKey, record, waiting)
  local started = cjson.decode(record)
  if started.state ~= 'started' or waiting == 0 then return end
  local targets = started.targets or {}
  redis.call('HSET', counterKey, 'kind', started.kind, 'waiting', waiting, 'ended', 0)
  redis.call('HSET', counterKey, 'open', #targets, 'held', #targets)
  for _, target in ipairs(targets) do redis.call('HSET', counterKey, '=' .. target, '') end
  redis.call('PEXPIRE', counterKey, joinCounterKeptMs)
end
