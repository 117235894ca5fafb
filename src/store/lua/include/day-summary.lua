-- A day of a policy is one field of `days:POLICY:MONTH`: names and numbers in turn, `S47F1kf30`,
-- which store/day-summaries.ts explains. Values of at most 64 bytes keep the hash compact.
local daysKeptMs = 431 * 86400000

-- Adds to a day, `22S1kf1`. Of `L` the greater number stands.
local function addToDay(daysKey, change)
  local day, changes = string.match(change, '^(%d+)(.*)$')
  local text = redis.call('HGET', daysKey, day) or ''
  for name, number in string.gmatch(changes, '(%a+)(-?%d+)') do
    local from, to, known = string.find(text, name .. '(%d+)')
    if from then
      local sum = name == 'L' and math.max(known, number) or known + number
      text = string.sub(text, 1, from - 1) .. name .. sum .. string.sub(text, to + 1)
    elseif tonumber(number) > 0 then
      text = text .. name .. number
    end
  end
  -- The month's last day may come 30 days after this one, and each day is kept for 400.
  if redis.call('HSET', daysKey, day, text) == 1 then redis.call('PEXPIRE', daysKey, daysKeptMs) end
end
