-- Counts an ending. A slot counts once, however many of its tasks failed, and not at all when a
-- task of it, or of a newer slot, ended well: of a policy that is well, its state knows. A success
-- older than the first failure of the row ends nothing.
-- KEYS: quarantines, policy state
-- ARGV: policy, slot, '1' for a success, after (failures in a row), forMs, note
-- Answers 'quarantined', 'released' or 'nothing'.
local quarantinesKey, stateKey = unpack(KEYS)
local policy, slotText, isSuccess, after, forMs, note = unpack(ARGV)
--- @include "now"
--- @include "policy-state"
local text, slot = redis.call('HGET', quarantinesKey, policy), tonumber(slotText)
local entry = { v = 1, failures = 0, badMs = 0, goodMs = 0, sinceMs = cjson.null, untilMs = cjson.null, note = '' }
entry.endedBy = cjson.null
if text then entry = cjson.decode(text) end
local isInForce = entry.untilMs ~= cjson.null and entry.untilMs > now
local word = 'nothing'
if isSuccess == '1' then
  if not text or slot < (entry.rowFromMs or 0) then return 'nothing' end
  entry.failures = 0
  entry.rowFromMs = nil
  entry.goodMs = math.max(entry.goodMs, slot)
  if isInForce then
    entry.untilMs = now
    entry.endedBy = note
    word = 'released'
  end
else
  if isInForce or slot == entry.goodMs or slot <= entry.badMs or hasEndedWell(stateKey, slot) then return 'nothing' end
  entry.failures = entry.failures + 1
  if entry.failures == 1 then entry.rowFromMs = slot end
  entry.badMs = slot
  if entry.failures >= tonumber(after) then
    entry.sinceMs = now
    entry.untilMs = now + tonumber(forMs)
    entry.endedBy = cjson.null
    local count = entry.failures == 1 and '1 slot' or entry.failures .. ' slots in a row'
    entry.note = count .. ' failed; ' .. note
    word = 'quarantined'
  end
end
redis.call('HSET', quarantinesKey, policy, cjson.encode(entry))
return word
