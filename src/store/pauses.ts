// The pauses in Redis. The command line sets and ends them; the scheduler reads them once a tick,
// in one command. Redis keeps an ended pause for a while: the scheduler may plan a slot inside it
// later.
import { type Pause, type PauseSubject, parsePause, subjectKey } from "../model/pause.ts";
import { createScript, type Store } from "./redis.ts";

/** The most pauses in force at once. */
export const pausesMax = 1_000;
/** Ended pauses kept, about 250 bytes each, and for how long: the longest catch-up window. */
const endedMax = 200;
const endedRetentionMs = 31 * 86_400_000;

const now = `local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000)`;

// Ends the pause in force of a scope, drops old ones and adds the new one.
// KEYS: pauses.
// ARGV: scope and name, 'set' or 'end', pause (JSON without its instants), until ('' for open),
// actor, limits.
// Answers the ended pauses, or the new one.
const changeScript = createScript(`${now}
local entries = redis.call('HGETALL', KEYS[1])
local inForce, ended, out = 0, {}, {}
for i = 1, #entries, 2 do
  local pause = cjson.decode(entries[i + 1])
  local open = pause.untilMs == cjson.null or pause.untilMs > now
  if open and pause.scope .. '/' .. pause.name == ARGV[1] then
    pause.untilMs = now
    pause.endedBy = ARGV[5]
    local text = cjson.encode(pause)
    redis.call('HSET', KEYS[1], entries[i], text)
    table.insert(out, text)
    open = false
  end
  if open then inForce = inForce + 1
  elseif pause.untilMs < now - tonumber(ARGV[8]) then redis.call('HDEL', KEYS[1], entries[i])
  else table.insert(ended, { untilMs = pause.untilMs, field = entries[i] }) end
end
table.sort(ended, function(a, b) return a.untilMs > b.untilMs end)
for i = tonumber(ARGV[7]) + 1, #ended do redis.call('HDEL', KEYS[1], ended[i].field) end
if ARGV[2] == 'end' then return out end
if inForce >= tonumber(ARGV[6]) then return redis.error_reply('TOOMANY pauses') end
local pause = cjson.decode(ARGV[3])
pause.sinceMs = now
pause.untilMs = ARGV[4] == '' and cjson.null or tonumber(ARGV[4])
local text = cjson.encode(pause)
redis.call('HSET', KEYS[1], ARGV[1] .. '@' .. string.format('%.0f', now), text)
return { text }`);

/** The pauses in Redis. */
export class Pauses {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Returns the pauses in force, and the newest 200 that ended in the last 31 days. */
  async all(): Promise<Pause[]> {
    const texts = await this.#store.redis.hvals(this.#store.key("pauses"));
    return texts.map((text) => parsePause(JSON.parse(text)));
  }

  /**
   * Sets a pause from now on; it replaces one in force of the same scope and name. undefined: there
   * are `pausesMax` already.
   */
  async set(pause: Pick<Pause, "scope" | "name" | "note" | "actor" | "untilMs">): Promise<Pause | undefined> {
    const { untilMs, ...rest } = pause;
    const text = JSON.stringify({ v: 1, ...rest, endedBy: null });
    try {
      const [set] = await this.#change({ what: "set", subject: pause, actor: pause.actor, text, untilMs });
      return set;
    } catch (error) {
      if (error instanceof Error && error.message.startsWith("TOOMANY")) return undefined;
      throw error;
    }
  }

  /** Ends the pause in force now. Answers the ended ones: none when there was no pause. */
  end(subject: PauseSubject, actor: string): Promise<Pause[]> {
    return this.#change({ what: "end", subject, actor, text: "", untilMs: null });
  }

  async #change(change: {
    readonly what: "set" | "end";
    readonly subject: PauseSubject;
    readonly actor: string;
    readonly text: string;
    readonly untilMs: number | null;
  }): Promise<Pause[]> {
    const { what, subject, actor, text, untilMs } = change;
    const answer = await changeScript(
      this.#store,
      [this.#store.key("pauses")],
      [subjectKey(subject), what, text, untilMs ?? "", actor, pausesMax, endedMax, endedRetentionMs],
    );
    return Array.isArray(answer) ? answer.map((one) => parsePause(JSON.parse(String(one)))) : [];
  }
}
