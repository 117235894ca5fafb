// The atomic steps of the slot ledger, in Lua. Called by slot-ledger.ts and chain-store.ts only.
// Redis runs each script as one command: all of it or nothing, and no client sees half of it.

import { noteSlotLua } from "./notify-scripts.ts";
import { createScript } from "./redis.ts";
import { noteMissedLua, noteTroublesLua } from "./troubles.ts";

/**
 * Lua: writes one record, unless the slot has one; drops old and surplus records. kept-since only
 * moves forward.
 */
export const recordLua = `
local function write(slots, index, slot, record)
  redis.call('HSETNX', slots, slot, record)
  redis.call('ZADD', index, slot, slot)
end
local function trim(slots, index, kept, policy, most, oldest)
  redis.call('PERSIST', slots)
  redis.call('PERSIST', index)
  local extra = redis.call('ZCARD', index) - tonumber(most)
  extra = math.max(extra, redis.call('ZCOUNT', index, '-inf', '(' .. string.format('%.0f', oldest)))
  if extra <= 0 then return end
  local old = redis.call('ZPOPMIN', index, extra)
  for i = 1, #old, 2 do redis.call('HDEL', slots, old[i]) end
  local newest, since = old[#old - 1], redis.call('HGET', kept, policy)
  if not since or tonumber(since) < tonumber(newest) then redis.call('HSET', kept, policy, newest) end
end
local function tally(key, record, waiting)
  local started = cjson.decode(record)
  if started.state ~= 'started' or waiting == 0 then return end
  local targets = started.targets or {}
  redis.call('HSET', key, 'kind', started.kind, 'waiting', waiting, 'open', #targets, 'held', #targets, 'ended', 0)
  for _, target in ipairs(targets) do redis.call('HSET', key, '=' .. target, '') end
  redis.call('PEXPIRE', key, 32 * 86400000)
end`;

/**
 * Records steps, each on its own: only if the policy's watermark is where the step expects it.
 * KEYS: 1 watermarks, 2 outbox, 3 kept-since, 4 waiting, 5 event stream, 6 troubles; then for each
 * step slots, slot-index and, when it has followers, the join counter of each slot.
 * ARGV: most records of a policy, their retention (ms); then for each step policy, expected
 * watermark, new watermark, tasks (JSON), number of records, number of followers, '1' to publish
 * missed slots, pairs of slot and record (JSON), pairs of follower and waiting slot (JSON).
 * Answers for each step 'ok', the watermark that stands, '' for none, or 'fault' and Redis's
 * refusal; the other steps are recorded all the same. A follower's slot waits only from its own
 * watermark on, which moves along.
 */
export const recordScript = createScript(`${recordLua} ${noteSlotLua} ${noteTroublesLua} ${noteMissedLua}
local function follow(policy, expected, new, first, count, name, value, waits)
  local begun = redis.call('HGET', KEYS[1], name)
  if not begun then
    redis.call('HSET', KEYS[1], name, new)
    redis.call('HSET', KEYS[3], name, new)
    return
  end
  -- A replica that did not know the follower yet planned the slots before.
  if tonumber(begun) < tonumber(expected) then redis.call('HSET', KEYS[3], name, expected) end
  local isDirect = cjson.decode(value).after == policy
  for i = 0, count - 1 do
    local slot = ARGV[first + 2 * i]
    if tonumber(slot) > tonumber(begun) then
      redis.call('HSET', KEYS[4], name .. '/' .. slot, value)
      if isDirect then waits[i] = (waits[i] or 0) + 1 end
    end
  end
  if tonumber(new) > tonumber(begun) then redis.call('HSET', KEYS[1], name, new) end
end
local answers = {}
local at, key = 3, 7
while at <= #ARGV do
  local slots, index = KEYS[key], KEYS[key + 1]
  local policy, expected, new, tasks = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local count, followers = tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5])
  local first = at + 7
  local last = first + 2 * count
  local mark = redis.call('HGET', KEYS[1], policy)
  local function step()
    for i = first, last - 1, 2 do
      write(slots, index, ARGV[i], ARGV[i + 1])
      noteMissed(KEYS[6], new, policy, ARGV[i + 1])
    end
    local waits = {}
    for i = last, last + 2 * followers - 1, 2 do follow(policy, expected, new, first, count, ARGV[i], ARGV[i + 1], waits) end
    for i = 0, count - 1 do
      if waits[i] then tally(KEYS[key + 2 + i], ARGV[first + 2 * i + 1], waits[i]) end
    end
    trim(slots, index, KEYS[3], policy, ARGV[1], tonumber(new) - tonumber(ARGV[2]))
    -- The watermark last: a step that fails before this line is repeated, and no slot is jumped
    -- over.
    if tasks ~= '[]' then redis.call('HSET', KEYS[2], policy .. '/' .. new, tasks) end
    redis.call('HSET', KEYS[1], policy, new)
  end
  if mark ~= expected then
    answers[#answers + 1] = mark or ''
  else
    local isDone, why = pcall(step)
    answers[#answers + 1] = isDone and 'ok' or 'fault ' .. (type(why) == 'table' and why.err or tostring(why))
    -- The notifier reports a broken stream. No slot waits for it.
    if isDone and ARGV[at + 6] == '1' then
      for i = first, last - 1, 2 do pcall(tell, KEYS[5], policy, ARGV[i], ARGV[i + 1]) end
    end
  end
  at = last + 2 * followers
  key = key + 2 + (followers > 0 and count or 0)
end
return answers`);

/**
 * Reads watermarks. A new policy begins now; so does one whose schedule changed, unless its
 * watermark is later. kept-since then says that earlier slots have no records. Records become
 * permanent again.
 * KEYS: watermarks, schedules, kept-since, then slots and slot-index of each policy.
 * ARGV: now, then pairs of policy and schedule.
 * Answers the watermarks.
 */
export const watermarksScript = createScript(`
local marks = {}
for i = 2, #ARGV, 2 do
  local policy, schedule = ARGV[i], ARGV[i + 1]
  redis.call('PERSIST', KEYS[i + 2])
  redis.call('PERSIST', KEYS[i + 3])
  local mark = redis.call('HGET', KEYS[1], policy)
  local known = redis.call('HGET', KEYS[2], policy)
  local changed = known and known ~= schedule
  local begins = changed or not mark
  if not mark or (changed and tonumber(mark) < tonumber(ARGV[1])) then
    mark = ARGV[1]
    redis.call('HSET', KEYS[1], policy, mark)
  end
  if begins then
    redis.call('HSET', KEYS[3], policy, mark)
  else
    redis.call('HSETNX', KEYS[3], policy, ARGV[1])
  end
  if known ~= schedule then redis.call('HSET', KEYS[2], policy, schedule) end
  marks[i / 2] = mark
end
return marks`);

/**
 * Forgets policies: their records expire, and their watermarks go when they are old. A watermark
 * stays as long as the records, so that a policy that comes back resumes.
 * KEYS: watermarks, schedules, kept-since, then slots and slot-index of each policy.
 * ARGV: retention of records (ms), the watermark up to which it is old, then the policies.
 */
export const forgetScript = createScript(`
for i = 3, #ARGV do
  local policy, slots, index = ARGV[i], KEYS[2 * i - 2], KEYS[2 * i - 1]
  for _, key in ipairs({slots, index}) do
    if redis.call('PTTL', key) == -1 then redis.call('PEXPIRE', key, ARGV[1]) end
  end
  local mark = redis.call('HGET', KEYS[1], policy)
  local isOld = ARGV[2] == '+inf' or (redis.call('EXISTS', slots) == 0 and mark and tonumber(mark) < tonumber(ARGV[2]))
  if isOld then
    for n = 1, 3 do redis.call('HDEL', KEYS[n], policy) end
  end
end
return 'ok'`);

/**
 * Makes records permanent again: a replica that does not know their policies may have let them
 * expire.
 * KEYS: slots and indexes.
 */
export const keepScript = createScript(`
for i = 1, #KEYS do redis.call('PERSIST', KEYS[i]) end
return 'ok'`);

/**
 * Starts a slot that a pause had skipped.
 * KEYS: slots, outbox.
 * ARGV: slot, record, outbox field, tasks.
 * Answers 1 when done.
 */
export const startSkippedScript = createScript(`
local text = redis.call('HGET', KEYS[1], ARGV[1])
if not text then return 0 end
local record = cjson.decode(text)
if record.state ~= 'skipped' or record.detail ~= 'paused' then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('HSET', KEYS[2], ARGV[3], ARGV[4])
return 1`);
