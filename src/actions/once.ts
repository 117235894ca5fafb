// Does once what a caller asks for under a key, however often and wherever it is asked again. The
// first request fixes the instant that names the new tasks: a repeat makes the same ones, and
// queue and start journal drop them. Called by web/ for what starts something.
import { createDeadline, systemClock } from "../core/clock.ts";
import { ConflictError, UsageError } from "../core/errors.ts";
import { canonicalJson, hashText } from "../core/stable-hash.ts";
import { redisTimeMs, type Store } from "../store/redis.ts";

/** The first request under a key goes on: the same key asks again without a second start. */
export class StillAtWork extends ConflictError {}

/** The key stands for another request. */
export class KeyTaken extends UsageError {}

/** A key, whose it is, and what is asked under it: anything that JSON can hold. */
export interface KeyedRequest {
  readonly caller: string;
  readonly key: string;
  readonly asked: unknown;
}

/** How long a key is known. */
const keptMs = 86_400_000;
/** A request that shows no life for this time has died with its process: a repeat goes on. */
const silentMsMax = 2_000;
const aliveEveryMs = 500;
/** A repeat waits so long for its first request, if that is at work. */
const waitMsMax = 8_000;
const readEveryMs = 50;

interface KeyRecord<Answer> {
  readonly asked: string;
  readonly atMs: number;
  /** When the process at work showed last that it lives. */
  readonly aliveMs?: number;
  /** Undefined: the first request has not ended. */
  readonly answer?: Answer;
}

/** What requests under a key did before they died. `isRepeat`: there was one. */
interface Progress {
  readonly isRepeat: boolean;
  /** By entry, what it became. */
  readonly done: ReadonlyMap<string, string>;
  /** Notes an entry that is done, for a repeat. */
  readonly note: (entry: string, into: string) => Promise<void>;
}

/**
 * Answers what `act` does, or what it answered under this key before. `act` gets the instant that
 * names tasks, and what was done of it before. @throws KeyTaken when the key stands for something
 * else, StillAtWork while its first request takes too long to be waited for.
 */
export async function once<Answer>(
  store: Store,
  { caller, key, asked }: KeyedRequest,
  act: (atMs: number, progress: Progress) => Promise<Answer>,
): Promise<Answer> {
  const { redis } = store;
  const digest = hashText(canonicalJson([caller, key]), 64);
  const name = store.key("request-key", digest);
  const mine: KeyRecord<Answer> = { asked: hashText(canonicalJson(asked), 64), atMs: await redisTimeMs(store) };
  const isFirst = (await redis.set(name, JSON.stringify(mine), "PX", keptMs, "NX")) === "OK";
  const kept = isFirst ? mine : await readAnswered(store, name, mine);
  if (kept.asked !== mine.asked)
    throw new KeyTaken("this Idempotency-Key stands for another request: send each request with a key of its own");
  if (kept.answer !== undefined) return kept.answer;
  const progress = await readProgress(store, store.key("request-done", digest), !isFirst);
  const answer = await showingLife(store, name, kept, () => act(kept.atMs, progress));
  await redis.set(name, JSON.stringify({ ...kept, answer } satisfies KeyRecord<Answer>), "PX", keptMs);
  return answer;
}

async function readProgress({ redis }: Store, name: string, isRepeat: boolean): Promise<Progress> {
  const done = new Map<string, string>(isRepeat ? Object.entries(await redis.hgetall(name)) : []);
  const note = async (entry: string, into: string) => {
    await Promise.all([redis.hset(name, entry, into), redis.pexpire(name, keptMs)]);
  };
  return { isRepeat, done, note };
}

/** Acts, and notes every half a second that this process is at work. */
async function showingLife<Answer>(
  store: Store,
  name: string,
  kept: KeyRecord<Answer>,
  act: () => Promise<Answer>,
): Promise<Answer> {
  let showing: Promise<void> | undefined;
  const show = async () => {
    const aliveMs = await redisTimeMs(store);
    await store.redis.set(name, JSON.stringify({ ...kept, aliveMs } satisfies KeyRecord<Answer>), "PX", keptMs);
  };
  const stop = systemClock.every(aliveEveryMs, () => {
    // Where Redis cannot be reached, what is done will tell.
    showing ??= show()
      .catch(() => {})
      .finally(() => (showing = undefined));
  });
  try {
    return await act();
  } finally {
    stop();
    // It must not come after the answer.
    await showing;
  }
}

/** What stands under a key, once its request has been answered, or its process has died. */
async function readAnswered<Answer>(store: Store, name: string, mine: KeyRecord<Answer>): Promise<KeyRecord<Answer>> {
  const isTooLong = createDeadline(waitMsMax);
  for (;;) {
    const text = await store.redis.get(name);
    // A key that ended in between is a new one.
    if (text === null) return mine;
    const kept = JSON.parse(text) as KeyRecord<Answer>;
    const ageMs = (await redisTimeMs(store)) - (kept.aliveMs ?? kept.atMs);
    if (kept.answer !== undefined || kept.asked !== mine.asked || ageMs >= silentMsMax) return kept;
    if (isTooLong()) throw new StillAtWork("the first request with this Idempotency-Key is still at work: ask again");
    await systemClock.sleep(readEveryMs);
  }
}
