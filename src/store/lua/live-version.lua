-- A hash that changes whenever there is something new to show: for live pages.
-- KEYS: hashes (policy states, watermarks, pauses, quarantines)
-- answer: 40 hex digits
local parts = {}
for index, key in ipairs(KEYS) do
  parts[index] = redis.sha1hex(table.concat(redis.call('HVALS', key), '\n'))
end
return redis.sha1hex(table.concat(parts))
