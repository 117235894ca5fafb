// The atomic steps of the start journal, in Redis's own language. Called by start-journal.ts only, which knows what they are for.
// KEYS[1] is the entry of a task, KEYS[2] the starts of its sync job that are in flight: task → when it was sent, and "+" once it was answered;
// with "e" before it when it has ended (history.ts).
import { enterLua } from "./gate-scripts.ts";
import { acquireLua } from "./leases.ts";
import { createScript } from "./redis.ts";
import { countIntentLua, fenceLua } from "./watch-scripts.ts";

const now = `local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000)`;

/** Lua: claims a start for an owner, if it has not gone further and is of no newer version. */
const claimLua = `
local function claim(owner, retention)
  local entry = redis.call('HMGET', KEYS[1], 'state', 'v')
  if (entry[1] and entry[1] ~= 'claimed') or (tonumber(entry[2]) or 1) > 1 then return false end
  redis.call('HSET', KEYS[1], 'v', 1, 'state', 'claimed', 'owner', owner)
  redis.call('HSETNX', KEYS[1], 'claimedAtMs', now)
  redis.call('PEXPIRE', KEYS[1], retention)
  return true
end`;

/** Lua: writes the intent of a claimed start. `baseline`: what a walk showed before; `knownSeq`: how far the feed had been read at some time. */
const permitLua = `
local function permit(task, retention, baseline, knownSeq)
  redis.call('HSET', KEYS[1], 'state', 'sending', 'sends', 1, 'sentAtMs', now, 'lastSentAtMs', now, 'baseline', baseline)
  if knownSeq ~= '' then redis.call('HSET', KEYS[1], 'knownSeq', knownSeq) end
  redis.call('HSET', KEYS[2], task, now)
  redis.call('PEXPIRE', KEYS[2], retention)
end`;

/**
 * Claims; a start that is under way prolongs its lease in the same step, since one that has ended meanwhile must not take it again.
 * KEYS[2]: its lease, if it holds one. ARGV: owner, retention, task, duration of the lease. Answers the entry; an entry of a newer version as it is.
 */
export const claimScript = createScript(`${now} ${claimLua} ${acquireLua}
claim(ARGV[1], ARGV[2])
local state = redis.call('HGET', KEYS[1], 'state')
if KEYS[2] and (state == 'sending' or state == 'answered') then acquire(KEYS[2], ARGV[3], ARGV[4]) end
return redis.call('HGETALL', KEYS[1])`);

/**
 * The one step that permits the request. KEYS[3] and [4]: watch and losses, for the fence. ARGV: owner, start-by time, baseline, task,
 * how long starts in flight are known, known number of the feed or '', term, slot. Answers 'permitted' with the count of intents, or why not.
 */
export const sendScript = createScript(`${now} ${permitLua} ${fenceLua} ${countIntentLua}
local entry = redis.call('HMGET', KEYS[1], 'state', 'owner')
if entry[1] ~= 'claimed' or entry[2] ~= ARGV[1] then return 'lost-claim' end
if now > tonumber(ARGV[2]) then return 'too-late' end
local why = shut({ watch = KEYS[3], losses = KEYS[4], term = ARGV[7], slot = ARGV[8], startBy = ARGV[2] })
if why then return why end
permit(ARGV[4], ARGV[5], ARGV[3], ARGV[6])
return 'permitted ' .. countIntent(KEYS[3])`);

/**
 * The way of a plain start in one step: claim, lease, a place at the gate, permission. KEYS[3]: its lease, KEYS[4]: its feed, then watch
 * and losses, if anybody watches, then the gate, if it has limits. ARGV: owner, start-by time, task, retention, how long starts in flight
 * are known, duration of the lease ('' for none), whether the feed's number is noted, term, slot, where the gate's keys begin (0: nowhere),
 * then what is wanted of the gate. Answers the gate's view ('' without one), and where that lets it in, now and the count of intents;
 * nothing at all when something else stands in the way, and then the steps one by one say what.
 */
export const sendAtOnceScript = createScript(`${now} ${claimLua} ${acquireLua} ${fenceLua} ${countIntentLua} ${enterLua}
local owner, startBy, task, atGate = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[10])
local watch, losses = KEYS[5], KEYS[6]
if atGate == 5 then watch, losses = nil, nil end
local entry = redis.call('HMGET', KEYS[1], 'state', 'v', 'claimedAtMs')
if (entry[1] and entry[1] ~= 'claimed') or (tonumber(entry[2]) or 1) > 1 then return false end
local function refuse(answer)
  claim(owner, ARGV[4])
  return answer
end
if now > tonumber(startBy) then return refuse(false) end
if ARGV[6] ~= '' and acquire(KEYS[3], task, ARGV[6]) ~= task then return refuse(false) end
if shut({ watch = watch, losses = losses, term = ARGV[8], slot = ARGV[9], startBy = startBy }) then return refuse(false) end
local gate = ''
if atGate > 0 then
  gate = enter(openGate(KEYS[atGate], KEYS[atGate + 1], KEYS[atGate + 2], KEYS[atGate + 3]), ARGV, 11)
  if gate[1] ~= 'in' then return refuse({ gate }) end
end
local intent = { 'v', 1, 'state', 'sending', 'owner', owner, 'claimedAtMs', entry[3] or now, 'sends', 1, 'sentAtMs', now, 'lastSentAtMs', now, 'baseline', '' }
if ARGV[7] == '1' then
  table.insert(intent, 'knownSeq')
  table.insert(intent, redis.call('HGET', KEYS[4], 'seq') or 0)
end
redis.call('HSET', KEYS[1], unpack(intent))
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('HSET', KEYS[2], task, now)
redis.call('PEXPIRE', KEYS[2], ARGV[5])
return { gate, now, countIntent(watch) }`);

/**
 * Permits one more request after this many went unanswered, the newest of them this owner's: else it was taken back, and another one may be
 * under way. Keys and answer as above. ARGV: owner, start-by time, sends so far, whose the newest is, term, slot.
 */
export const sendAgainScript = createScript(`${now} ${fenceLua} ${countIntentLua}
local entry = redis.call('HMGET', KEYS[1], 'state', 'sends', 'owner')
if entry[1] ~= 'sending' or (tonumber(entry[2]) or 1) ~= tonumber(ARGV[3]) or entry[3] ~= ARGV[4] then return 'lost-claim' end
if now > tonumber(ARGV[2]) then return 'too-late' end
local why = shut({ watch = KEYS[3], losses = KEYS[4], term = ARGV[5], slot = ARGV[6], startBy = ARGV[2] })
if why then return why end
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'sends', ARGV[3] + 1, 'lastSentAtMs', now)
redis.call('HDEL', KEYS[1], 'unreadableAtMs')
return 'permitted ' .. countIntent(KEYS[3])`);

/**
 * Takes back the newest permission, if it is this owner's and nothing else happened. With none left the task may claim anew, as if
 * nothing had been. ARGV: owner, task.
 */
export const notSentScript = createScript(`
local entry = redis.call('HMGET', KEYS[1], 'state', 'owner', 'sends')
if entry[1] ~= 'sending' or entry[2] ~= ARGV[1] then return 0 end
local sends = (tonumber(entry[3]) or 1) - 1
if sends > 0 then
  redis.call('HSET', KEYS[1], 'sends', sends)
else
  redis.call('HSET', KEYS[1], 'state', 'claimed')
  redis.call('HDEL', KEYS[1], 'sends', 'sentAtMs', 'lastSentAtMs', 'baseline', 'knownSeq', 'lost', 'heldUntilMs', 'unreadableAtMs')
  redis.call('HDEL', KEYS[2], ARGV[2])
end
return 1`);

/** The start was accepted ('answer'), or an activity proves it. An answer to the only request is not missing any more. ARGV: task, which of both. */
export const answeredScript = createScript(`${now}
local entry = redis.call('HMGET', KEYS[1], 'state', 'sends')
if entry[1] ~= 'sending' then return 0 end
if ARGV[2] == 'answer' and (tonumber(entry[2]) or 1) == 1 then redis.call('HDEL', KEYS[1], 'lost') end
redis.call('HSET', KEYS[1], 'state', 'answered', 'answeredAtMs', now)
local sent = redis.call('HGET', KEYS[2], ARGV[1])
if sent then redis.call('HSET', KEYS[2], ARGV[1], sent .. '+') end
return 1`);

/** Takes a start without an outcome of its own out of flight. ARGV: task, retention, '1' when it is over as well. */
export const closeScript = createScript(`
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
if ARGV[3] == '1' then redis.call('HSET', KEYS[1], 'state', 'settled') end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('HDEL', KEYS[2], ARGV[1])
return 1`);

/** Names the sync jobs of a run over masks, by the owner of its claim. ARGV: owner, their list. Answers 1 when it stands. */
export const willExpandScript = createScript(`
local entry = redis.call('HMGET', KEYS[1], 'state', 'owner')
if entry[1] ~= 'claimed' or entry[2] ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'targets', ARGV[2])
return 1`);

/** Other tasks stand for one, under their own names from now on. ARGV: their list, retention. */
export const expandedScript = createScript(`
redis.call('HSET', KEYS[1], 'v', 1, 'state', 'settled', 'expanded', ARGV[1])
redis.call('HDEL', KEYS[1], 'targets')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1`);

/** Sets a field once. ARGV: field, value ('' for now). Answers what stands there. */
export const noteScript = createScript(`${now}
local value = ARGV[2] == '' and now or ARGV[2]
redis.call('HSETNX', KEYS[1], ARGV[1], value)
return redis.call('HGET', KEYS[1], ARGV[1])`);

/**
 * Gives each activity to the one start in flight that is nearest in time; without a time to the first one that has none yet, those
 * that were answered before the others. What was given once stays. KEYS: given activities, starts in flight, order of giving, losses of Redis.
 * ARGV: how long it is remembered, how many are, then pairs of activity and when it began ('' for unknown), oldest first.
 * Answers the tasks, in this order ('' for nobody), and then each start in flight with its instant; and beside that the losses.
 */
export const attributeScript = createScript(`${now}
local flat = redis.call('HGETALL', KEYS[2])
local starts, has = {}, {}
for i = 1, #flat, 2 do
  starts[#starts + 1] = { task = flat[i], at = tonumber(string.match(flat[i + 1], '%d+')), open = string.sub(flat[i + 1], -1) ~= '+' }
end
table.sort(starts, function(a, b)
  if a.open ~= b.open then return b.open end
  if a.at ~= b.at then return a.at < b.at end
  return a.task < b.task
end)
if #starts > 1 then
  for _, task in ipairs(redis.call('HVALS', KEYS[1])) do has[task] = true end
end
local answer = {}
for i = 3, #ARGV, 2 do
  local task = redis.call('HGET', KEYS[1], ARGV[i])
  if not task then
    local began, best = tonumber(ARGV[i + 1]), nil
    for _, start in ipairs(starts) do
      if began then
        if not best or math.abs(start.at - began) < math.abs(best.at - began) then best = start end
      elseif not best or (has[best.task] and not has[start.task]) then
        best = start
      end
    end
    if best then
      task = best.task
      has[task] = true
      redis.call('HSET', KEYS[1], ARGV[i], task)
      redis.call('ZADD', KEYS[3], now, ARGV[i])
      redis.call('PEXPIRE', KEYS[1], ARGV[1])
      redis.call('PEXPIRE', KEYS[3], ARGV[1])
    end
  end
  answer[#answer + 1] = task or ''
end
local extra = redis.call('ZCARD', KEYS[3]) - tonumber(ARGV[2])
if extra > 0 then
  local old = redis.call('ZPOPMIN', KEYS[3], extra)
  for i = 1, #old, 2 do redis.call('HDEL', KEYS[1], old[i]) end
end
for _, start in ipairs(starts) do
  answer[#answer + 1] = start.task
  answer[#answer + 1] = start.at
end
return { answer, redis.call('ZRANGE', KEYS[4], 0, -1) }`);
