// All that Redis holds under a store's prefix, as one text: whether anything was changed.
import type { Store } from "../../src/store/redis.ts";

// A dump may change its order while a hash is only read.
const script = `local found, text = redis.call('KEYS', ARGV[1]), ''
table.sort(found)
for _, key in ipairs(found) do
  local held
  if redis.call('TYPE', key).ok == 'hash' then
    local entries = redis.call('HGETALL', key)
    held = {}
    for i = 1, #entries, 2 do table.insert(held, entries[i] .. '=' .. entries[i + 1]) end
    table.sort(held)
    held = table.concat(held, ' ')
  end
  local isShort = redis.call('PTTL', key) >= 0 and redis.call('PTTL', key) < 600000
  local isNote = isShort or key:find(':meta$') or key:find(':changes$') or key:find(':request[-]') or key:find(':failed[-]replays:')
  if not isNote then text = redis.sha1hex(text .. key .. (held or redis.call('DUMP', key))) end
end
return text`;

/** The text, without what ends soon, settings of queues, records, and what guards a repeat. */
export async function stateOfRedis({ redis, key }: Store): Promise<string> {
  return String(await redis.eval(script, 0, key("*")));
}
