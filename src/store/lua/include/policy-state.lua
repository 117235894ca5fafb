-- A policy's state is one hash; store/policy-states.ts reads it. The field `policy`, without a gap:
--   first outcome, last time that targets had no room (ms, 13 digits each), durations of good runs
-- A field for each target (JSON), with tabs between:
--   last end (ms), weight, since when (ms), how many in a row, last good (ms), last bad (ms), last
--   outcome (JSON)
-- In one text, a hundred targets would cost a start a tenth: Lua is slow with long ones.
local stateTargetsMax, stateTargetsSpare, durationsWidth = 100, 50, 20 * 7

-- Drops targets down to those that ended last.
local function dropStates(stateKey)
  local flat, ends = redis.call('HGETALL', stateKey), {}
  for i = 1, #flat, 2 do
    if flat[i] ~= 'policy' then ends[#ends + 1] = { flat[i], tonumber(string.match(flat[i + 1], '^%d+')) } end
  end
  table.sort(ends, function(a, b) return a[2] < b[2] end)
  for i = 1, #ends - stateTargetsMax do redis.call('HDEL', stateKey, ends[i][1]) end
end

-- Notes an outcome. `last`: its JSON; `weight`: '+' good, '-' bad, '' neither; `duration`: of a
-- good run, 7 digits to the base of 36, else ''.
local function notePolicyState(stateKey, finishedMs, target, weight, duration, last)
  local found = redis.call('HMGET', stateKey, 'policy', target)
  local head, line = found[1] or (finishedMs .. '0000000000000'), found[2]
  local firstMs, cutMs = string.sub(head, 1, 13), string.sub(head, 14, 26)
  local durations = string.sub(string.sub(head, 27) .. duration, -durationsWidth)
  local lastMs, known, since, inARow, goodMs, badMs, before = '0', '', '', 0, '', '', nil
  if line then
    lastMs, known, since, inARow, goodMs, badMs, before =
      string.match(line, '^(%d+)\t([+-]?)\t(%d*)\t(%d+)\t(%d*)\t(%d*)\t(.*)$')
  elseif redis.call('HLEN', stateKey) > stateTargetsMax + stateTargetsSpare then
    dropStates(stateKey)
    cutMs = finishedMs
  end
  if tonumber(finishedMs) < tonumber(firstMs) then firstMs = finishedMs end
  if weight == '+' and tonumber(finishedMs) > (tonumber(goodMs) or 0) then goodMs = finishedMs end
  if weight == '-' and tonumber(finishedMs) > (tonumber(badMs) or 0) then badMs = finishedMs end
  if tonumber(finishedMs) < tonumber(lastMs) then
    -- It comes in late: nothing else changes.
    finishedMs, last = lastMs, before
  elseif weight ~= '' and weight ~= known then
    known, since, inARow = weight, finishedMs, 1
  elseif weight ~= '' then
    inARow = inARow + 1
  end
  line = table.concat({ finishedMs, known, since, inARow, goodMs, badMs, last }, '\t')
  redis.call('HSET', stateKey, 'policy', firstMs .. cutMs .. durations, target, line)
end
