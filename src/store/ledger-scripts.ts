// The atomic steps of the slot ledger, in Redis's own language. Called by slot-ledger.ts and chain-book.ts only, which know what they are for.
// Redis runs each script as one command: what it does is done whole or not at all, and nobody sees half of it.
import { createScript } from "./redis.ts";
import { noteSlotLua } from "./telling-scripts.ts";

/** Writes one record, unless the slot has one. Drops what is too old, and what is one too many; kept-since goes on, never back. */
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
 * Records steps. Each on its own: its mark is where it was expected, or nothing of it is written.
 * KEYS: marks, outbox, kept-since, waiting, events to be told, then for each step slots, slot-index and, when it has followers, the tally of each slot.
 * ARGV: the most records a policy keeps and for how long (ms); then for each step policy, expected mark, new mark, tasks (JSON), the
 * numbers of records and of followers, whether missed slots are told, so many pairs of slot and record (JSON), so many pairs of policy and waiting slot (JSON).
 * Answers for each step 'ok', the other mark, or '' for none. A follower's slot waits from its own mark on, which goes along.
 */
export const recordScript = createScript(`${recordLua} ${noteSlotLua}
local function follow(policy, expected, new, first, count, name, value, waits)
  local begun = redis.call('HGET', KEYS[1], name)
  if not begun then
    redis.call('HSET', KEYS[1], name, new)
    redis.call('HSET', KEYS[3], name, new)
    return
  end
  -- Slots before were planned by a replica that did not know the follower yet.
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
local at, key = 3, 6
while at <= #ARGV do
  local slots, index = KEYS[key], KEYS[key + 1]
  local policy, expected, new, tasks = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  local count, followers = tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5])
  local first = at + 7
  local last = first + 2 * count
  local mark = redis.call('HGET', KEYS[1], policy)
  if mark ~= expected then
    answers[#answers + 1] = mark or ''
  else
    redis.call('HSET', KEYS[1], policy, new)
    for i = first, last - 1, 2 do
      write(slots, index, ARGV[i], ARGV[i + 1])
      if ARGV[at + 6] == '1' then tell(KEYS[5], policy, ARGV[i], ARGV[i + 1]) end
    end
    if tasks ~= '[]' then redis.call('HSET', KEYS[2], policy .. '/' .. new, tasks) end
    local waits = {}
    for i = last, last + 2 * followers - 1, 2 do follow(policy, expected, new, first, count, ARGV[i], ARGV[i + 1], waits) end
    for i = 0, count - 1 do
      if waits[i] then tally(KEYS[key + 2 + i], ARGV[first + 2 * i + 1], waits[i]) end
    end
    trim(slots, index, KEYS[3], policy, ARGV[1], tonumber(new) - tonumber(ARGV[2]))
    answers[#answers + 1] = 'ok'
  end
  at = last + 2 * followers
  key = key + 2 + (followers > 0 and count or 0)
end
return answers`);

/**
 * A new policy begins now; one with another schedule than is known begins now at the earliest; the others keep their marks.
 * KEYS: marks, schedules, kept-since, then slots and slot-index of each policy. ARGV: now, then pairs of policy and schedule. Answers the marks.
 * Where a mark begins anew, or its schedule does, slots up to there have no records: kept-since says so. Old records stay again.
 */
export const marksScript = createScript(`
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
 * Forgets policies: their records in a while, their marks once they are old. KEYS: marks, schedules, kept-since, then slots and
 * slot-index of each policy. ARGV: how long records stay (ms), the mark up to which it is old, then the policies.
 * A mark stays as long as the records do, so that a policy that comes back goes on where it was.
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

/** Lets records stay for good that another replica, which does not know their policies, may have let end. KEYS: slots and indexes. */
export const keepScript = createScript(`
for i = 1, #KEYS do redis.call('PERSIST', KEYS[i]) end
return 'ok'`);

/** Turns a slot that a pause had skipped into a started one. KEYS: slots, outbox. ARGV: slot, record, outbox field, tasks. Answers 1 when done. */
export const startSkippedScript = createScript(`
local text = redis.call('HGET', KEYS[1], ARGV[1])
if not text then return 0 end
local record = cjson.decode(text)
if record.state ~= 'skipped' or record.detail ~= 'paused' then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('HSET', KEYS[2], ARGV[3], ARGV[4])
return 1`);
