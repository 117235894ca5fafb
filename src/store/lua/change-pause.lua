-- Ends the pause in force of a subject, drops old ones and adds the new one.
-- KEYS: pauses
-- ARGV: subject (SCOPE/NAME), 'set' or 'end', pause (JSON without its instants), untilMs ('' for
-- open), actor, pausesMax, endedMax, endedKeptMs
-- Answers { 'full' }, { 'set', the new one } or { 'ended', the ended ones }.
local pausesKey = KEYS[1]
local subject, what, newPause, untilMs, actor, pausesMax, endedMax, endedKeptMs = unpack(ARGV)
--- @include "now"
local entries = redis.call('HGETALL', pausesKey)
local inForce, ended, answer = 0, {}, { 'ended' }
for i = 1, #entries, 2 do
  local field, pause = entries[i], cjson.decode(entries[i + 1])
  local isOpen = pause.untilMs == cjson.null or pause.untilMs > now
  if isOpen and pause.scope .. '/' .. pause.name == subject then
    pause.untilMs = now
    pause.endedBy = actor
    local text = cjson.encode(pause)
    redis.call('HSET', pausesKey, field, text)
    table.insert(answer, text)
    isOpen = false
  end
  if isOpen then
    inForce = inForce + 1
  elseif pause.untilMs < now - endedKeptMs then
    redis.call('HDEL', pausesKey, field)
  else
    table.insert(ended, { untilMs = pause.untilMs, field = field })
  end
end
table.sort(ended, function(a, b) return a.untilMs > b.untilMs end)
for i = endedMax + 1, #ended do redis.call('HDEL', pausesKey, ended[i].field) end
if what == 'end' then return answer end
if inForce >= tonumber(pausesMax) then return { 'full' } end
local pause = cjson.decode(newPause)
pause.sinceMs = now
pause.untilMs = untilMs == '' and cjson.null or tonumber(untilMs)
local text = cjson.encode(pause)
redis.call('HSET', pausesKey, subject .. '@' .. now, text)
return { 'set', text }
