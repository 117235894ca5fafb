-- A policy's state is one field of `policy-states`: a line of the policy, then a line for each
-- target, the newest first. store/policy-states.ts reads it. Tabs stand between:
--   first outcome (ms), last time that a target had no room (ms), durations of good runs
--   target (JSON), last end (ms), weight, since when (ms), how many in a row, last good (ms),
--   last bad (ms), last outcome (JSON)
local stateTargetsMax, stateDurationsMax = 100, 20

local function countOf(text, char) return select(2, string.gsub(text, char, char)) end

-- Notes an outcome. `last`: its JSON; `weight`: '+' good, '-' bad, '' neither; `durationMs`: '' for
-- none.
local function notePolicyState(statesKey, policy, finishedMs, target, weight, durationMs, last)
  local text = redis.call('HGET', statesKey, policy) or (finishedMs .. '\t\t')
  local began, cutMs, durations, lines = string.match(text, '^(%d+)\t(%d*)\t([%d,]*)(.*)$')
  if weight == '+' and durationMs ~= '' then
    durations = durations == '' and durationMs or durations .. ',' .. durationMs
    if countOf(durations, ',') >= stateDurationsMax then durations = string.gsub(durations, '^%d+,', '') end
  end
  local known, lastMs, since, inARow, goodMs, badMs, before = '', '0', '', 0, '', '', last
  local from, to = string.find(lines, '\n' .. target .. '\t', 1, true)
  if from then
    local stop = string.find(lines, '\n', to, true) or #lines + 1
    local line = string.sub(lines, to + 1, stop - 1)
    lastMs, known, since, inARow, goodMs, badMs, before =
      string.match(line, '^(%d+)\t([+-]?)\t(%d*)\t(%d+)\t(%d*)\t(%d*)\t(.*)$')
    lines = string.sub(lines, 1, from - 1) .. string.sub(lines, stop)
  elseif countOf(lines, '\n') >= stateTargetsMax then
    lines, cutMs = string.gsub(lines, '\n[^\n]*$', ''), finishedMs
  end
  -- Outcomes may come in late: one that ended earlier changes nothing but the last good or bad.
  local isLate = tonumber(finishedMs) < tonumber(lastMs)
  if weight == '+' and tonumber(finishedMs) > (tonumber(goodMs) or 0) then goodMs = finishedMs end
  if weight == '-' and tonumber(finishedMs) > (tonumber(badMs) or 0) then badMs = finishedMs end
  if isLate then
    finishedMs, last = lastMs, before
  elseif weight ~= '' and weight ~= known then
    known, since, inARow = weight, finishedMs, 1
  elseif weight ~= '' then
    inARow = inARow + 1
  end
  local line = table.concat({ '\n' .. target, finishedMs, known, since, inARow, goodMs, badMs, last }, '\t')
  redis.call('HSET', statesKey, policy, table.concat({ began, cutMs, durations }, '\t') .. line .. lines)
end
