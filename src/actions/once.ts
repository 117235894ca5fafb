// Does once what a caller asks for under a key, however often and wherever it is asked again. The
// first request fixes the instant that names the new tasks: a repeat makes the same ones, and
// queue and start journal drop them. Called by web/ for what starts something.
import { systemClock } from "../core/clock.ts";
import { UsageError } from "../core/errors.ts";
import { canonicalJson, hashText } from "../core/stable-hash.ts";
import { redisTimeMs, type Store } from "../store/redis.ts";

/** A key, whose it is, and what is asked under it: anything that JSON can hold. */
export interface KeyedRequest {
  readonly caller: string;
  readonly key: string;
  readonly asked: unknown;
}

/** How long a key is known. */
const keptMs = 86_400_000;
/** A request without an answer after this time has died with its process: a repeat goes on. */
const answersWithinMs = 2_000;
const readEveryMs = 50;

interface KeyRecord<Answer> {
  readonly asked: string;
  readonly atMs: number;
  /** Undefined: the first request has not ended. */
  readonly answer?: Answer;
}

/**
 * Answers what `act` does, or what it answered under this key before. `act` gets the instant that
 * names tasks. @throws UsageError when the key stands for something else.
 */
export async function once<Answer>(
  store: Store,
  { caller, key, asked }: KeyedRequest,
  act: (atMs: number) => Promise<Answer>,
): Promise<Answer> {
  const { redis } = store;
  const name = store.key("request-key", hashText(canonicalJson([caller, key]), 64));
  const mine: KeyRecord<Answer> = { asked: hashText(canonicalJson(asked), 64), atMs: await redisTimeMs(store) };
  const isFirst = (await redis.set(name, JSON.stringify(mine), "PX", keptMs, "NX")) === "OK";
  const kept = isFirst ? mine : await readAnswered(store, name, mine);
  if (kept.asked !== mine.asked)
    throw new UsageError("this Idempotency-Key stands for another request: send each request with a key of its own");
  if (kept.answer !== undefined) return kept.answer;
  const answer = await act(kept.atMs);
  await redis.set(name, JSON.stringify({ ...kept, answer } satisfies KeyRecord<Answer>), "PX", keptMs);
  return answer;
}

/** What stands under a key, once its request has been answered, or had the time to be. */
async function readAnswered<Answer>(store: Store, name: string, mine: KeyRecord<Answer>): Promise<KeyRecord<Answer>> {
  for (;;) {
    const text = await store.redis.get(name);
    // A key that ended in between is a new one.
    if (text === null) return mine;
    const kept = JSON.parse(text) as KeyRecord<Answer>;
    const ageMs = (await redisTimeMs(store)) - kept.atMs;
    if (kept.answer !== undefined || kept.asked !== mine.asked || ageMs >= answersWithinMs) return kept;
    await systemClock.sleep(readEveryMs);
  }
}
