// The atomic steps of the start journal, in Lua. Called by start-journal.ts only. Unless a script
// says otherwise, KEYS[1] is the task's entry and KEYS[2] the starts of its sync job in flight:
// task → when its request was sent, with "+" behind it once answered, with "e" before it once ended
// (history.ts).

import { acquireLua } from "./leases.ts";
import { limiterAcquireLua } from "./limiter-scripts.ts";
import { noteMasksLua } from "./notify-scripts.ts";
import { createScript } from "./redis.ts";
import { countIntentLua, fenceLua } from "./watch-scripts.ts";

const now = `local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000)`;

/** Lua: claims a start, unless it is beyond `claimed` or its entry has a newer version. */
const claimLua = `
local function claim(owner, retention)
  local entry = redis.call('HMGET', KEYS[1], 'state', 'v')
  if (entry[1] and entry[1] ~= 'claimed') or (tonumber(entry[2]) or 1) > 1 then return false end
  redis.call('HSET', KEYS[1], 'v', 1, 'state', 'claimed', 'owner', owner)
  redis.call('HSETNX', KEYS[1], 'claimedAtMs', now)
  redis.call('PEXPIRE', KEYS[1], retention)
  return true
end`;

/**
 * Lua: writes the intent of a claimed start. `baseline`: what a walk showed before. `knownSeq`: how
 * far the feed had been read.
 */
const permitLua = `
local function permit(task, retention, baseline, knownSeq)
  redis.call('HSET', KEYS[1], 'state', 'sending', 'sends', 1, 'sentAtMs', now, 'lastSentAtMs', now, 'baseline', baseline)
  if knownSeq ~= '' then redis.call('HSET', KEYS[1], 'knownSeq', knownSeq) end
  redis.call('HSET', KEYS[2], task, now)
  redis.call('PEXPIRE', KEYS[2], retention)
end`;

/** Lua: takes back the only permission of a start. */
const takeBackLua = `
local function takeBack(task)
  redis.call('HSET', KEYS[1], 'state', 'claimed')
  redis.call('HDEL', KEYS[1], 'sends', 'sentAtMs', 'lastSentAtMs', 'baseline', 'knownSeq', 'lost', 'heldUntilMs', 'unreadableAtMs')
  redis.call('HDEL', KEYS[2], task)
end`;

/**
 * Claims a start. One already under way prolongs its lease in the same step; an ended one must not
 * take it again.
 * KEYS[2]: lease, if the task needs one.
 * ARGV: owner, retention, task, duration of the lease.
 * Answers the entry.
 */
export const claimScript = createScript(`${now} ${claimLua} ${acquireLua}
claim(ARGV[1], ARGV[2])
local state = redis.call('HGET', KEYS[1], 'state')
if KEYS[2] and (state == 'sending' or state == 'answered') then acquire(KEYS[2], ARGV[3], ARGV[4]) end
return redis.call('HGETALL', KEYS[1])`);

/**
 * Permits the request. A repeated command of the same asking, after a lost answer, is permitted
 * again.
 * KEYS[3], KEYS[4]: watch and losses, for the fence.
 * ARGV: owner, start-by time, baseline, task, retention of starts in flight, known number of the
 * feed or '', term, slot, id of this asking.
 * Answers 'permitted' with the count of intents, or the reason why not.
 */
export const sendScript = createScript(`${now} ${permitLua} ${fenceLua} ${countIntentLua}
local entry = redis.call('HMGET', KEYS[1], 'state', 'owner', 'asking')
if entry[1] == 'sending' and entry[3] == ARGV[9] then return 'permitted ' .. countIntent(KEYS[3]) end
if entry[1] ~= 'claimed' or entry[2] ~= ARGV[1] then return 'lost-claim' end
if now > tonumber(ARGV[2]) then return 'too-late' end
local why = shut({ watch = KEYS[3], losses = KEYS[4], term = ARGV[7], slot = ARGV[8], startBy = ARGV[2] })
if why then return why end
permit(ARGV[4], ARGV[5], ARGV[3], ARGV[6])
redis.call('HSET', KEYS[1], 'asking', ARGV[9])
return 'permitted ' .. countIntent(KEYS[3])`);

/**
 * The fast path: claim, lease, permit of the limiter and permission in one step.
 * KEYS[3]: lease. KEYS[4]: status of the feed. Then watch and losses, if there is a watch; then the
 * four keys of the limiter, if it has limits.
 * ARGV: owner, start-by time, task, retention, retention of starts in flight, duration of the lease
 * ('' for none), '1' to note the feed's number, term, slot, index of the limiter's first key (0:
 * none), id of this asking, then the arguments of `limiterAcquireLua`.
 * Answers the limiter's view ('' without one); once permitted also now and the count of intents.
 * Answers nothing when another obstacle stands: the single steps then name it.
 */
export const tryAcquireAndSendScript =
  createScript(`${now} ${takeBackLua} ${claimLua} ${acquireLua} ${fenceLua} ${countIntentLua} ${limiterAcquireLua}
local owner, startBy, task, atLimiter = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[10])
local watch, losses = KEYS[5], KEYS[6]
if atLimiter == 5 then watch, losses = nil, nil end
local entry = redis.call('HMGET', KEYS[1], 'state', 'v', 'claimedAtMs', 'asking')
if entry[1] == 'sending' and entry[4] == ARGV[11] then
  -- The same asking again, after a lost answer. No request has gone out, so it begins anew.
  entry[1] = 'claimed'
  takeBack(task)
end
if (entry[1] and entry[1] ~= 'claimed') or (tonumber(entry[2]) or 1) > 1 then return false end
local function refuse(answer)
  claim(owner, ARGV[4])
  return answer
end
if now > tonumber(startBy) then return refuse(false) end
if ARGV[6] ~= '' and acquire(KEYS[3], task, ARGV[6]) ~= task then return refuse(false) end
if shut({ watch = watch, losses = losses, term = ARGV[8], slot = ARGV[9], startBy = startBy }) then return refuse(false) end
local limiter = ''
if atLimiter > 0 then
  limiter = enter(openLimiter(KEYS[atLimiter], KEYS[atLimiter + 1], KEYS[atLimiter + 2], KEYS[atLimiter + 3]), ARGV, 12)
  if limiter[1] ~= 'in' then return refuse({ limiter }) end
end
local intent = { 'v', 1, 'state', 'sending', 'owner', owner, 'claimedAtMs', entry[3] or now, 'sends', 1, 'sentAtMs', now, 'lastSentAtMs', now, 'baseline', '', 'asking', ARGV[11] }
if ARGV[7] == '1' then
  table.insert(intent, 'knownSeq')
  table.insert(intent, redis.call('HGET', KEYS[4], 'seq') or 0)
end
redis.call('HSET', KEYS[1], unpack(intent))
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('HSET', KEYS[2], task, now)
redis.call('PEXPIRE', KEYS[2], ARGV[5])
return { limiter, now, countIntent(watch) }`);

/**
 * Permits one more request after `sends` unanswered ones, the newest of `sender`: another sender
 * means that it was taken back and another request may be under way.
 * KEYS and answer: as for `sendScript`.
 * ARGV: owner, start-by time, sends, sender, term, slot, id of this asking.
 */
export const sendAgainScript = createScript(`${now} ${fenceLua} ${countIntentLua}
local entry = redis.call('HMGET', KEYS[1], 'state', 'sends', 'owner', 'asking')
local sends = tonumber(entry[2]) or 1
if entry[1] == 'sending' and entry[4] == ARGV[7] then return 'permitted ' .. countIntent(KEYS[3]) end
if entry[1] ~= 'sending' or sends ~= tonumber(ARGV[3]) or entry[3] ~= ARGV[4] then return 'lost-claim' end
if now > tonumber(ARGV[2]) then return 'too-late' end
local why = shut({ watch = KEYS[3], losses = KEYS[4], term = ARGV[5], slot = ARGV[6], startBy = ARGV[2] })
if why then return why end
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'sends', ARGV[3] + 1, 'lastSentAtMs', now, 'asking', ARGV[7])
redis.call('HDEL', KEYS[1], 'unreadableAtMs')
return 'permitted ' .. countIntent(KEYS[3])`);

/**
 * Takes back the newest permission of this owner. With no request left, the task may claim anew.
 * Repeating the command changes nothing.
 * ARGV: owner, task.
 */
export const notSentScript = createScript(`${takeBackLua}
local entry = redis.call('HMGET', KEYS[1], 'state', 'owner', 'sends')
if entry[1] ~= 'sending' or entry[2] ~= ARGV[1] then return 0 end
local sends = (tonumber(entry[3]) or 1) - 1
if sends > 0 then
  redis.call('HSET', KEYS[1], 'sends', sends, 'owner', '')
else
  takeBack(ARGV[2])
end
return 1`);

/**
 * Marks a start as answered: by the service, or by an activity as evidence. An answer to the only
 * request is no longer lost.
 * ARGV: task, 'answer' or 'evidence'.
 */
export const answeredScript = createScript(`${now}
local entry = redis.call('HMGET', KEYS[1], 'state', 'sends')
if entry[1] ~= 'sending' then return 0 end
if ARGV[2] == 'answer' and (tonumber(entry[2]) or 1) == 1 then redis.call('HDEL', KEYS[1], 'lost') end
redis.call('HSET', KEYS[1], 'state', 'answered', 'answeredAtMs', now, 'shownBy', ARGV[2])
local sent = redis.call('HGET', KEYS[2], ARGV[1])
if sent then redis.call('HSET', KEYS[2], ARGV[1], sent .. '+') end
return 1`);

/**
 * Takes a start without an outcome of its own out of flight.
 * ARGV: task, retention, '1' to settle it as well.
 */
export const closeScript = createScript(`
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
if ARGV[3] == '1' then redis.call('HSET', KEYS[1], 'state', 'settled') end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('HDEL', KEYS[2], ARGV[1])
return 1`);

/**
 * Names the sync jobs of a run over masks, if this owner has the claim.
 * KEYS: entry, event stream.
 * ARGV: owner, their list, policy, slot, '1' to notify the policy's sinks.
 * Answers 1 when done.
 */
export const planFanOutScript = createScript(`${noteMasksLua}
local entry = redis.call('HMGET', KEYS[1], 'state', 'owner')
if entry[1] ~= 'claimed' or entry[2] ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'targets', ARGV[2])
if ARGV[5] == '1' then tellMasks(KEYS[2], ARGV[3], ARGV[4], ARGV[2]) end
return 1`);

/**
 * Replaces a task by those that it fanned out into.
 * ARGV: their list, retention.
 */
export const fannedOutScript = createScript(`
redis.call('HSET', KEYS[1], 'v', 1, 'state', 'settled', 'expanded', ARGV[1])
redis.call('HDEL', KEYS[1], 'targets')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1`);

/**
 * Sets a field, unless it is set.
 * ARGV: field, value ('' for now).
 * Answers its value.
 */
export const noteScript = createScript(`${now}
local value = ARGV[2] == '' and now or ARGV[2]
redis.call('HSETNX', KEYS[1], ARGV[1], value)
return redis.call('HGET', KEYS[1], ARGV[1])`);

/**
 * Notes since when the same activities of a run are finished.
 * ARGV: the activities as one text; '' while one of them goes on.
 * Answers since when; nothing for ''.
 */
export const finishSeenScript = createScript(`${now}
if ARGV[1] == '' then
  redis.call('HDEL', KEYS[1], 'finishSeenAtMs', 'finishSeenOf')
  return false
end
if redis.call('HGET', KEYS[1], 'finishSeenOf') ~= ARGV[1] then
  redis.call('HSET', KEYS[1], 'finishSeenOf', ARGV[1], 'finishSeenAtMs', now)
end
return redis.call('HGET', KEYS[1], 'finishSeenAtMs')`);

/**
 * Attributes each activity to one start in flight: the nearest in time. Without a time: the first
 * start without an activity, answered ones before others. An attribution stays.
 * KEYS: attributions, starts in flight, their order, losses of Redis.
 * ARGV: retention, how many to keep, then pairs of activity and its beginning ('' when unknown),
 * oldest first.
 * Answers the task of each activity ('' for none), each start in flight with its instant; then the
 * losses.
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
