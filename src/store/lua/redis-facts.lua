-- Reads the time and what INFO shows; a section is '' where INFO is not allowed.
-- KEYS: any of ours, so that in a cluster its node answers
local texts = { redis.call('TIME') }
for _, section in ipairs({ 'server', 'memory', 'persistence', 'replication' }) do
  local text = redis.pcall('INFO', section)
  table.insert(texts, type(text) == 'string' and text or '')
end
return texts
