-- A policy's state is one hash; store/policy-states.ts reads it. The field `policy`, without a gap:
--   first outcome, last time that targets had no room (ms, 13 digits each)
-- A field for each target (JSON), with tabs between:
--   last end (ms), weight, since when (ms), how many in a row, last success (ms), last bad (ms),
--   the newest runs that ended well, without a gap, last outcome (JSON), then where that says
--   nothing of the trouble before it: when the one that does ended (13 digits), and its JSON
-- The field `acknowledged`, while a person knows of the trouble (JSON): who, why, since when, and
-- `targets`, the rank of the trouble of each target. No target is called so: targets are JSON.
-- In one text, a hundred targets would cost a start a tenth: Lua is slow with long ones.
local stateTargetsMax, stateTargetsSpare, runsWidth = 100, 50, 20 * 16
-- The JSON of an outcome that a skip does not mend: blocked, conflicts, failed, missed, unknown.
local openEnding = '%["%a+","[bcfmu]'

-- Drops targets down to those that are bad, then those that wait, then those that ended last. Where
-- the last end was eight days ago, the policy may have no such target any more.
local function dropStates(stateKey, nowMs)
  local flat, ends = redis.call('HGETALL', stateKey), {}
  for i = 1, #flat, 2 do
    local endedMs, weight, rest = string.match(flat[i + 1], '^(%d+)\t([+-]?)\t(.*)$')
    if endedMs then
      -- What is wrong stands in the last outcome, or behind it.
      local isOpen = not string.find(rest, '\t$') or string.find(rest, '\t' .. openEnding .. '[^\t]*\t$') ~= nil
      local isOld = tonumber(nowMs) - tonumber(endedMs) > 8 * 86400000
      local rank = isOld and 0 or weight == '-' and 2 or isOpen and 1 or 0
      ends[#ends + 1] = { target = flat[i], ms = tonumber(endedMs), rank = rank }
    end
  end
  table.sort(ends, function(a, b)
    if a.rank ~= b.rank then return a.rank < b.rank end
    return a.ms < b.ms
  end)
  for i = 1, #ends - stateTargetsMax do redis.call('HDEL', stateKey, ends[i].target) end
end

-- Ends the acknowledgement when all that it is about is over, or when another target is in trouble
-- or this one in worse. `rank`: of the target's trouble; 0: none; '' says nothing of it. `isGone`:
-- the policy has no such target any more.
local function updateAcknowledgement(stateKey, text, target, rank, isGone)
  if not text or rank == '' then return end
  local known, name = cjson.decode(text), cjson.decode('[' .. target .. ']')[1]
  local before = known.targets[name]
  rank = tonumber(rank)
  if rank > (before or 0) then
    redis.call('HDEL', stateKey, 'acknowledged')
  elseif rank == 0 and (before or known.targets['']) then
    -- A slot that did something ends what was wrong with slots.
    known.targets[name] = nil
    if not isGone then known.targets[''] = nil end
    if next(known.targets) then
      redis.call('HSET', stateKey, 'acknowledged', cjson.encode(known))
    else
      redis.call('HDEL', stateKey, 'acknowledged')
    end
  end
end

-- Numbers a change of a policy's state: the member '' has the newest number, each policy its own.
local function noteChanged(changedKey, policy)
  redis.call('ZADD', changedKey, redis.call('ZINCRBY', changedKey, 1, ''), policy)
end

-- Notes an outcome. `last`: its JSON; `weight`: '+' success, '-' bad, '' neither; `run`: the
-- figures of a success, 16 characters, else ''; `rank`: see updateAcknowledgement.
local function notePolicyState(stateKey, finishedMs, target, weight, run, last, rank)
  local found = redis.call('HMGET', stateKey, 'policy', target, 'acknowledged')
  local head, line = found[1] or (finishedMs .. '0000000000000'), found[2]
  local firstMs, cutMs = string.sub(head, 1, 13), string.sub(head, 14, 26)
  local lastMs, known, since, inARow, successMs, badMs, runs, before, bad = '0', '', '', 0, '', '', '', nil, ''
  if line then
    lastMs, known, since, inARow, successMs, badMs, runs, before, bad =
      string.match(line, '^(%d+)\t([+-]?)\t(%d*)\t(%d+)\t(%d*)\t(%d*)\t([^\t]*)\t([^\t]*)\t(.*)$')
  elseif redis.call('HLEN', stateKey) > stateTargetsMax + stateTargetsSpare then
    dropStates(stateKey, finishedMs)
    cutMs = finishedMs
  end
  if tonumber(finishedMs) < tonumber(firstMs) then firstMs = finishedMs end
  if weight == '+' and tonumber(finishedMs) > (tonumber(successMs) or 0) then successMs = finishedMs end
  if weight == '-' and tonumber(finishedMs) > (tonumber(badMs) or 0) then badMs = finishedMs end
  local isLate = tonumber(finishedMs) < tonumber(lastMs)
  if isLate then
    -- It comes in late: nothing else changes.
    finishedMs, last = lastMs, before
  elseif weight ~= '' and weight ~= known then
    known, since, inARow, bad = weight, finishedMs, 1, ''
  elseif weight ~= '' then
    inARow, bad = inARow + 1, ''
  elseif known ~= '-' and rank ~= '' then
    bad = ''
  elseif bad == '' and (known == '-' or before and string.find(before, '^' .. openEnding)) then
    bad = lastMs .. before
  end
  if not isLate then updateAcknowledgement(stateKey, found[3], target, rank) end
  runs = string.sub(runs .. run, -runsWidth)
  line = table.concat({ finishedMs, known, since, inARow, successMs, badMs, runs, last, bad }, '\t')
  redis.call('HSET', stateKey, 'policy', firstMs .. cutMs, target, line)
end

-- Whether the last task of a target ended well, in this slot or in a newer one.
local function hasEndedWell(stateKey, slot)
  for _, line in ipairs(redis.call('HVALS', stateKey)) do
    local endedMs, successMs, last = string.match(line, '^(%d+)\t[+-]?\t%d*\t%d+\t(%d*)\t%d*\t[^\t]*\t([^\t]*)\t')
    if endedMs and endedMs == successMs and cjson.decode(last)[7] >= slot then return true end
  end
  return false
end
