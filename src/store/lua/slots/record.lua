-- Records planned slots, each policy on its own: only if its watermark is where the plan expects
-- it, and its schedule in force. A follower's slot waits only from its own watermark on, which
-- moves along. Slots that another replica planned without the follower wait as left out.
-- KEYS: watermarks, schedules, outbox, kept-since, waiting, event stream, troubles, changed
-- policies, begun; then for each policy slots, slot-index, the join counter of each slot when it
-- has followers, and the month of each slot that the day summaries count
-- ARGV: most records of a policy, their retention (ms); then for each policy its name, schedule (''
-- for any), expected watermark, new watermark, outbox field, tasks (JSON, '' for none), number of
-- records, number of followers, '1' to write missed slots as events, when it was planned; slot,
-- record (JSON) and change of the day's summary ('' for none) of each record; follower, its
-- schedule and waiting slot (JSON) in turn
-- Answers for each policy 'recorded', 'moved', 'superseded' (another schedule is in force) or
-- 'fault', the watermark that stands ('' for none), Redis's refusal, and each follower of recorded
-- slots that another schedule is in force of. The slots of the others are recorded all the same.
local watermarksKey, schedulesKey, outboxKey, keptSinceKey, waitingKey, streamKey, troublesKey, changedKey, begunKey =
  unpack(KEYS, 1, 9)
local most, retentionMs = unpack(ARGV, 1, 2)
--- @include "slot-record"
--- @include "join-counter"
--- @include "day-summary"
-- The watermark of one follower. A replica without it may have forgotten it: then it goes on from
-- where this plan begins.
local function watermarkOf(plan, follower, schedule)
  local known = redis.call('HGET', watermarksKey, follower)
  if known then return known end
  for _, key in ipairs({ watermarksKey, keptSinceKey, begunKey }) do
    redis.call('HSET', key, follower, plan.expected)
  end
  redis.call('HSET', schedulesKey, follower, schedule)
  return plan.expected
end

-- Opens the slots of one follower, up to this one, that another replica planned without it. The
-- join counters of their predecessors do not count them.
local function openLeftOut(plan, one, upTo)
  local follower, schedule, waitingSlot = unpack(one)
  local begun = watermarkOf(plan, follower, schedule)
  if tonumber(begun) >= tonumber(upTo) then return end
  if redis.call('HGET', schedulesKey, follower) ~= schedule then return end
  -- The predecessor's oldest records may be dropped.
  local since = redis.call('HGET', keptSinceKey, plan.policy)
  if since and tonumber(since) > tonumber(begun) then redis.call('HSET', keptSinceKey, follower, since) end
  local leftOut = string.gsub(waitingSlot, '}$', ',"isLeftOut":true}')
  for _, slot in ipairs(redis.call('ZRANGEBYSCORE', plan.indexKey, '(' .. begun, upTo)) do
    redis.call('HSETNX', waitingKey, follower .. '/' .. slot, leftOut)
  end
  redis.call('HSET', watermarksKey, follower, upTo)
end

-- Opens the waiting slots of one follower; `waits` counts the direct followers of each record.
local function openWaiting(plan, one, waits)
  local follower, schedule, waitingSlot = unpack(one)
  local begun, after = watermarkOf(plan, follower, schedule), cjson.decode(waitingSlot).after
  -- A follower of a superseded policy would wait for a slot that is never opened.
  if plan.isSuperseded[after] or redis.call('HGET', schedulesKey, follower) ~= schedule then
    plan.superseded[#plan.superseded + 1], plan.isSuperseded[follower] = follower, true
    return
  end
  local isDirect = after == plan.policy
  for i, slot in ipairs(plan.slots) do
    if tonumber(slot) > tonumber(begun) then
      redis.call('HSET', waitingKey, follower .. '/' .. slot, waitingSlot)
      if isDirect then waits[i] = (waits[i] or 0) + 1 end
    end
  end
  if tonumber(plan.new) > tonumber(begun) then redis.call('HSET', watermarksKey, follower, plan.new) end
end

local function record(plan)
  local slotsKey, indexKey, policy, at = plan.slotsKey, plan.indexKey, plan.policy, plan.plannedAt
  for i, slot in ipairs(plan.slots) do
    local isNew = writeRecord(slotsKey, indexKey, troublesKey, policy, at, slot, plan.records[i])
    if isNew and plan.daysKeys[i] then addToDay(plan.daysKeys[i], plan.changes[i]) end
  end
  local waits = {}
  for i, follower in ipairs(plan.followers) do
    openLeftOut(plan, follower, plan.expected)
    openWaiting(plan, follower, waits)
  end
  for i, text in ipairs(plan.records) do
    if waits[i] then openJoinCounter(plan.counterKeys[i], text, waits[i]) end
  end
  trimRecords(plan.slotsKey, plan.indexKey, keptSinceKey, plan.policy, most, plan.new - retentionMs)
  -- Its own watermark last (those of followers moved above, with their slots): what fails before
  -- that line is repeated, and no slot is jumped over.
  if plan.tasks ~= '' then redis.call('HSET', outboxKey, plan.outboxField, plan.tasks) end
  redis.call('HSET', watermarksKey, plan.policy, plan.new)
end

local hasRecorded = false
local function run(plan)
  local watermark = redis.call('HGET', watermarksKey, plan.policy)
  local isInForce = plan.schedule == '' or redis.call('HGET', schedulesKey, plan.policy) == plan.schedule
  if watermark and not isInForce then return { 'superseded', watermark, '' } end
  if watermark ~= plan.expected then
    -- The next plan opens what cannot be opened here, or its answer says why not.
    for _, follower in ipairs(watermark and plan.followers or {}) do pcall(openLeftOut, plan, follower, watermark) end
    return { 'moved', watermark or '', '' }
  end
  local isDone, why = pcall(record, plan)
  if not isDone then return { 'fault', plan.expected, type(why) == 'table' and why.err or tostring(why) } end
  hasRecorded = true
  if plan.isNotified then
    for i, slot in ipairs(plan.slots) do
      -- The notifier reports a broken stream. No slot waits for it.
      pcall(notifyMissed, streamKey, plan.policy, slot, plan.records[i])
    end
  end
  local answer = { 'recorded', plan.new, '' }
  for _, follower in ipairs(plan.superseded) do answer[#answer + 1] = follower end
  return answer
end

local atArg, atKey = 3, 10
local function nextArg()
  atArg = atArg + 1
  return ARGV[atArg - 1]
end
local function nextKey()
  atKey = atKey + 1
  return KEYS[atKey - 1]
end
local function readPlan()
  local policy, schedule, expected, new, outboxField = unpack(ARGV, atArg, atArg + 4)
  local tasks, recordCount, followerCount, isNotified, plannedAt = unpack(ARGV, atArg + 5, atArg + 9)
  local plan = { policy = policy, schedule = schedule, expected = expected, new = new }
  plan.outboxField, plan.tasks, plan.isNotified = outboxField, tasks, isNotified == '1'
  plan.plannedAt = plannedAt
  atArg = atArg + 10
  plan.slots, plan.records, plan.changes = {}, {}, {}
  for i = 1, tonumber(recordCount) do
    plan.slots[i], plan.records[i], plan.changes[i] = nextArg(), nextArg(), nextArg()
  end
  plan.followers, plan.superseded, plan.isSuperseded = {}, {}, {}
  for i = 1, tonumber(followerCount) do plan.followers[i] = { nextArg(), nextArg(), nextArg() } end
  plan.slotsKey, plan.indexKey, plan.counterKeys, plan.daysKeys = nextKey(), nextKey(), {}, {}
  if #plan.followers > 0 then
    for i = 1, #plan.slots do plan.counterKeys[i] = nextKey() end
  end
  for i = 1, #plan.slots do
    if plan.changes[i] ~= '' then plan.daysKeys[i] = nextKey() end
  end
  return plan
end

local answers = {}
while atArg <= #ARGV do answers[#answers + 1] = run(readPlan()) end
-- Makes open pages load again; a slot does not wait for that. Only the member '' counts up, since
-- no state of a policy has changed (include/policy-state.lua).
if hasRecorded then redis.pcall('ZINCRBY', changedKey, 1, '') end
return answers
