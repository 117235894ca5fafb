-- How long nothing starts in a new term, so that every process can report what it remembers.
local holdMs = 3000

-- Answers the identity of this server process, '' where INFO is not allowed, and INFO's text.
local function serverRun()
  local info = redis.pcall('INFO', 'server')
  if type(info) ~= 'string' then info = '' end
  return string.match(info, 'run_id:(%w+)') or '', info
end
