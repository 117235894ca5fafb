// What Redis keeps of many policies over a long time, written quickly: days as the recorder leaves
// them, one end a policy, and slots. For benchmarks and for tests at size.
import type { Outcome } from "../../src/model/outcome.ts";
import { taskId } from "../../src/model/task.ts";
import { outcomeDay } from "../../src/store/day-summaries.ts";
import { History } from "../../src/store/history.ts";
import type { Store } from "../../src/store/redis.ts";
import { batchesOf } from "../../src/store/script.ts";
import { SlotLedger } from "../../src/store/slot-ledger.ts";
import { testOutcome } from "../support/outcomes.ts";

const dayMs = 86_400_000;
const hourMs = 3_600_000;

/** How many days of how many outcomes are kept, up to when. */
export interface LongMemory {
  readonly days: number;
  readonly runs: number;
  readonly nowMs: number;
}

/** One outcome a policy, so that each has a state. */
export async function writeEnds(
  store: Store,
  policies: readonly { readonly name: string; readonly target?: string | undefined }[],
  atMs: number,
): Promise<void> {
  const history = new History(store);
  for (const batch of batchesOf([...policies.entries()], 100))
    await Promise.all(
      batch.map(([index, { name, target }]) =>
        history.record(outcomeOf({ policy: name, target, slotMs: atMs, seed: index })),
      ),
    );
}

/** Days as lua/include/day-summary.lua writes them: 100 different ones, a policy at a time. */
export async function writeDays(store: Store, policies: readonly string[], memory: LongMemory) {
  const { days, nowMs } = memory;
  const texts = Array.from({ length: 100 }, (_, seed) => dayText(store, seed, memory));
  const dates = Array.from({ length: days }, (_, day) => new Date(nowMs - day * dayMs).toISOString().slice(0, 10));
  const months = [...Map.groupBy(dates.entries(), ([, date]) => date.slice(0, 7))];
  for (const [index, policy] of policies.entries()) {
    const pipeline = store.redis.pipeline();
    for (const [month, some] of months) {
      const fields = some.flatMap(([day, date]) => [date.slice(8), texts[(index + day * 7) % texts.length] ?? ""]);
      pipeline.hset(store.key("days", policy, month), ...fields);
    }
    await pipeline.exec();
  }
}

/** The newest hourly slots of policies, each with its outcome; `target`: their sync job. */
export async function writeSlots(
  store: Store,
  policies: readonly { readonly name: string; readonly target: string }[],
  { slots, newestMs }: { readonly slots: number; readonly newestMs: number },
): Promise<void> {
  const [ledger, history] = [new SlotLedger(store), new History(store)];
  const fromMs = newestMs - slots * hourMs;
  const instants = Array.from({ length: slots }, (_, index) => fromMs + (index + 1) * hourMs);
  await ledger.openWatermarks(
    policies.map(({ name }) => ({ policy: name, schedule: "every hour" })),
    fromMs,
  );
  for (const batch of batchesOf([...policies.entries()], 50)) {
    const step = { expectedWatermarkMs: fromMs, newWatermarkMs: newestMs, tasks: [] };
    await ledger.record(
      batch.map(([, { name, target }]) => {
        const records = instants.map((slotMs) => {
          return { slotMs, state: "started" as const, detail: "", kind: "run" as const, targets: [target] };
        });
        return { policy: name, ...step, records };
      }),
    );
    for (const [index, { name, target }] of batch)
      await Promise.all(
        instants.map((slotMs, at) => {
          const seed = at === slots - 1 ? index : index + 2 + at * 13;
          return history.record(outcomeOf({ policy: name, target, slotMs, seed }));
        }),
      );
  }
}

/** Of so many ends one is a failure, and another one finds conflicts. */
export const failingEvery = 33;

/** One of 33 fails and one finds conflicts; durations vary by a third around a minute. */
function outcomeOf({
  policy,
  target = "42",
  slotMs,
  seed,
}: Pick<Outcome, "policy"> & {
  readonly target?: string | undefined;
  readonly slotMs: number;
  readonly seed: number;
}): Outcome {
  const status = seed % failingEvery === 0 ? "failed" : seed % failingEvery === 1 ? "conflicts" : "succeeded";
  const at = new Date(slotMs).toISOString();
  const durationMs = 45_000 + ((seed * 7_919) % 30_000);
  const id = taskId({ policy, kind: "run", target, slotMs, origin: "schedule" });
  const finishedAt = new Date(slotMs + durationMs).toISOString();
  return testOutcome({ taskId: id, policy, target, slot: at, finishedAt, status, durationMs });
}

function dayText(store: Store, seed: number, { runs, nowMs }: LongMemory): string {
  const counts = new Map<string, number>();
  for (let run = 0; run < runs; run += 1) {
    const outcome = outcomeOf({ policy: "seeded", slotMs: nowMs, seed: seed + run * 13 });
    for (const [, name = "", text] of outcomeDay(store, outcome, "UTC")
      .change.slice(2)
      .matchAll(/([A-Za-z]+)(\d+)/g)) {
      const [known = 0, count] = [counts.get(name), Number(text)];
      counts.set(name, name === "L" ? Math.max(known, count) : known + count);
    }
  }
  return [...counts].map(([name, count]) => `${name}${count}`).join("");
}
