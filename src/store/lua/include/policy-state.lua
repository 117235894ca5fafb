-- A policy's state is one field of `policy-states`: a line of the policy, then a line for each
-- target, the newest first. store/policy-states.ts reads it. The first line, without a gap:
--   first outcome, last time that a target had no room (ms, 13 digits each), durations of good runs
-- The others, with tabs between:
--   target (JSON), last end (ms), weight, since when (ms), how many in a row, last good (ms),
--   last bad (ms), last outcome (JSON)
local stateTargetsMax, durationsWidth = 100, 20 * 7

-- Notes an outcome. `last`: its JSON; `weight`: '+' good, '-' bad, '' neither; `duration`: of a
-- good run, 7 digits to the base of 36, else ''. It cuts by position: patterns take long.
local function notePolicyState(statesKey, policy, finishedMs, target, weight, duration, last)
  local text = redis.call('HGET', statesKey, policy) or (finishedMs .. '0000000000000')
  local headEnd = string.find(text, '\n', 1, true) or #text + 1
  local firstMs, cutMs = string.sub(text, 1, 13), string.sub(text, 14, 26)
  if tonumber(finishedMs) < tonumber(firstMs) then firstMs = finishedMs end
  local durations = string.sub(string.sub(text, 27, headEnd - 1) .. duration, -durationsWidth)
  local others, lastMs, known, since, inARow, goodMs, badMs = nil, '0', '', '', 0, '', ''
  local from, to = string.find(text, '\n' .. target .. '\t', headEnd, true)
  if from then
    local stop, lastAt = string.find(text, '\n', to, true) or #text + 1, nil
    lastMs, known, since, inARow, goodMs, badMs, lastAt =
      string.match(text, '^(%d+)\t([+-]?)\t(%d*)\t(%d+)\t(%d*)\t(%d*)\t()', to + 1)
    others = string.sub(text, headEnd, from - 1) .. string.sub(text, stop)
    if tonumber(finishedMs) < tonumber(lastMs) then last = string.sub(text, lastAt, stop - 1) end
  else
    others = string.sub(text, headEnd)
    if select(2, string.gsub(others, '\n', '')) >= stateTargetsMax then
      others, cutMs = string.gsub(others, '\n[^\n]*$', ''), finishedMs
    end
  end
  if weight == '+' and tonumber(finishedMs) > (tonumber(goodMs) or 0) then goodMs = finishedMs end
  if weight == '-' and tonumber(finishedMs) > (tonumber(badMs) or 0) then badMs = finishedMs end
  if tonumber(finishedMs) < tonumber(lastMs) then
    -- It comes in late: nothing else changes.
    finishedMs = lastMs
  elseif weight ~= '' and weight ~= known then
    known, since, inARow = weight, finishedMs, 1
  elseif weight ~= '' then
    inARow = inARow + 1
  end
  local head = firstMs .. cutMs .. durations .. '\n' .. target
  local line = table.concat({ head, finishedMs, known, since, inARow, goodMs, badMs, last }, '\t')
  redis.call('HSET', statesKey, policy, line .. others)
end
