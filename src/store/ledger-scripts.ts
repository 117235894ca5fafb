// The atomic steps of the slot ledger, in Redis's own language. Called by slot-ledger.ts only, which knows what they are for.
// Redis runs each script as one command: what it does is done whole or not at all, and nobody sees half of it.
import { createScript } from "./redis.ts";

/**
 * Records steps. Each on its own: its mark is where it was expected, or nothing of it is written.
 * KEYS: marks, outbox, kept-since, then slots and slot-index of each step. ARGV: the most records a policy keeps, then for each
 * step policy, expected mark, new mark, tasks (JSON), count, and so many pairs of slot and record (JSON).
 * Answers for each step 'ok', the other mark, or '' for none. Where old records are dropped, kept-since goes on, never back.
 */
export const recordScript = createScript(`
local answers = {}
local at = 2
for step = 1, (#KEYS - 3) / 2 do
  local slots, index = KEYS[2 * step + 2], KEYS[2 * step + 3]
  local policy, expected, new, tasks, count = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], tonumber(ARGV[at + 4])
  at = at + 5
  local mark = redis.call('HGET', KEYS[1], policy)
  if mark ~= expected then
    answers[step] = mark or ''
  else
    redis.call('HSET', KEYS[1], policy, new)
    for i = at, at + 2 * count - 1, 2 do
      redis.call('HSETNX', slots, ARGV[i], ARGV[i + 1])
      redis.call('ZADD', index, ARGV[i], ARGV[i])
    end
    if tasks ~= '[]' then redis.call('HSET', KEYS[2], policy .. '/' .. new, tasks) end
    local extra = redis.call('ZCARD', index) - tonumber(ARGV[1])
    if extra > 0 then
      local old = redis.call('ZPOPMIN', index, extra)
      for i = 1, #old, 2 do redis.call('HDEL', slots, old[i]) end
      local newest, kept = old[#old - 1], redis.call('HGET', KEYS[3], policy)
      if not kept or tonumber(kept) < tonumber(newest) then redis.call('HSET', KEYS[3], policy, newest) end
    end
    answers[step] = 'ok'
  end
  at = at + 2 * count
end
return answers`);

/**
 * A new policy begins now; one with another schedule than is known begins now at the earliest; the others keep their marks.
 * KEYS: marks, schedules, kept-since. ARGV: now, then pairs of policy and schedule. Answers the marks.
 * Where a mark begins anew, or its schedule does, slots up to there have no records: kept-since says so.
 */
export const marksScript = createScript(`
local marks = {}
for i = 2, #ARGV, 2 do
  local policy, schedule = ARGV[i], ARGV[i + 1]
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

/** Turns a slot that a pause had skipped into a started one. KEYS: slots, outbox. ARGV: slot, record, outbox field, tasks. Answers 1 when done. */
export const startSkippedScript = createScript(`
local text = redis.call('HGET', KEYS[1], ARGV[1])
if not text then return 0 end
local record = cjson.decode(text)
if record.state ~= 'skipped' or record.detail ~= 'paused' then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('HSET', KEYS[2], ARGV[3], ARGV[4])
return 1`);
