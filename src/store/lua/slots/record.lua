-- Records steps, each on its own: only if the policy's watermark is where the step expects it. A
-- follower's slot waits only from its own watermark on, which moves along.
-- KEYS: watermarks, outbox, kept-since, waiting, event stream, troubles; then for each step slots,
-- slot-index, the join counter of each slot when it has followers, and the month of each slot that
-- the day summaries count
-- ARGV: most records of a policy, their retention (ms); then for each step policy, expected
-- watermark, new watermark, tasks (JSON), number of records, number of followers, '1' to publish
-- missed slots; slot, record (JSON) and change of the day's summary ('' for none) of each record;
-- pairs of follower and waiting slot (JSON)
-- Answers for each step 'recorded', 'moved' or 'fault', the watermark that stands ('' for none) and
-- Redis's refusal. The other steps are recorded all the same.
local watermarksKey, outboxKey, keptSinceKey, waitingKey, streamKey, troublesKey = unpack(KEYS, 1, 6)
local most, retentionMs = unpack(ARGV, 1, 2)
--- @include "slot-record"
--- @include "join-counter"
--- @include "day-summary"
-- Opens the waiting slots of one follower; `waits` counts the direct followers of each record.
local function openWaiting(step, follower, waitingSlot, waits)
  local begun = redis.call('HGET', watermarksKey, follower)
  if not begun then
    redis.call('HSET', watermarksKey, follower, step.new)
    redis.call('HSET', keptSinceKey, follower, step.new)
    return
  end
  -- A replica that did not know the follower yet planned the slots before.
  if tonumber(begun) < tonumber(step.expected) then redis.call('HSET', keptSinceKey, follower, step.expected) end
  local isDirect = cjson.decode(waitingSlot).after == step.policy
  for i, slot in ipairs(step.slots) do
    if tonumber(slot) > tonumber(begun) then
      redis.call('HSET', waitingKey, follower .. '/' .. slot, waitingSlot)
      if isDirect then waits[i] = (waits[i] or 0) + 1 end
    end
  end
  if tonumber(step.new) > tonumber(begun) then redis.call('HSET', watermarksKey, follower, step.new) end
end

local function record(step)
  for i, slot in ipairs(step.slots) do
    local isNew = writeRecord(step.slotsKey, step.indexKey, troublesKey, step.policy, step.new, slot, step.records[i])
    if isNew and step.daysKeys[i] then addToDay(step.daysKeys[i], step.changes[i]) end
  end
  local waits = {}
  for i, follower in ipairs(step.followers) do openWaiting(step, follower, step.waitingSlots[i], waits) end
  for i, text in ipairs(step.records) do
    if waits[i] then openJoinCounter(step.counterKeys[i], text, waits[i]) end
  end
  trimRecords(step.slotsKey, step.indexKey, keptSinceKey, step.policy, most, step.new - retentionMs)
  -- The watermark last: a step that fails before this line is repeated, and no slot is jumped over.
  if step.tasks ~= '[]' then redis.call('HSET', outboxKey, step.policy .. '/' .. step.new, step.tasks) end
  redis.call('HSET', watermarksKey, step.policy, step.new)
end

local function run(step)
  local watermark = redis.call('HGET', watermarksKey, step.policy)
  if watermark ~= step.expected then return { 'moved', watermark or '', '' } end
  local isDone, why = pcall(record, step)
  if not isDone then return { 'fault', step.expected, type(why) == 'table' and why.err or tostring(why) } end
  if step.isPublished then
    for i, slot in ipairs(step.slots) do
      -- The notifier reports a broken stream. No slot waits for it.
      pcall(publishMissed, streamKey, step.policy, slot, step.records[i])
    end
  end
  return { 'recorded', step.new, '' }
end

local atArg, atKey = 3, 7
local function nextArg()
  atArg = atArg + 1
  return ARGV[atArg - 1]
end
local function nextKey()
  atKey = atKey + 1
  return KEYS[atKey - 1]
end
local function readStep()
  local policy, expected, new, tasks, recordCount, followerCount, isPublished = unpack(ARGV, atArg, atArg + 6)
  local step = { policy = policy, expected = expected, new = new, tasks = tasks, isPublished = isPublished == '1' }
  atArg = atArg + 7
  step.slots, step.records, step.changes = {}, {}, {}
  for i = 1, tonumber(recordCount) do
    step.slots[i], step.records[i], step.changes[i] = nextArg(), nextArg(), nextArg()
  end
  step.followers, step.waitingSlots = {}, {}
  for i = 1, tonumber(followerCount) do step.followers[i], step.waitingSlots[i] = nextArg(), nextArg() end
  step.slotsKey, step.indexKey, step.counterKeys, step.daysKeys = nextKey(), nextKey(), {}, {}
  if #step.followers > 0 then
    for i = 1, #step.slots do step.counterKeys[i] = nextKey() end
  end
  for i = 1, #step.slots do
    if step.changes[i] ~= '' then step.daysKeys[i] = nextKey() end
  end
  return step
end

local answers = {}
while atArg <= #ARGV do answers[#answers + 1] = run(readStep()) end
return answers
