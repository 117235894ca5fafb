-- A note older than the longest interval between two slots says nothing any more.
local notesKeptMs = 31 * 86400000
-- About 60 bytes each; with more, the oldest go.
local notesMax = 20000

-- Adds (`+MEMBER`) and removes (`-MEMBER`) notes, one a line.
local function noteTroubles(troublesKey, at, changes)
  for sign, member in string.gmatch(changes, '([+-])([^\n]+)') do
    if sign == '-' then
      redis.call('ZREM', troublesKey, member)
    else
      redis.call('ZADD', troublesKey, at, member)
      redis.call('ZREMRANGEBYSCORE', troublesKey, '-inf', at - notesKeptMs)
      redis.call('ZREMRANGEBYRANK', troublesKey, 0, -notesMax - 1)
    end
  end
end
