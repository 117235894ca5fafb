// Digests that are due: each day's is planned once over all replicas, since the notifier saves it
// in one step with the slot that it stands for. Called by notify/notifier.ts in its status rounds.
import * as z from "zod";
import type { DigestSettings, PolicySet } from "../config/policy-set.ts";
import { parseVersioned } from "../core/newer-version.ts";
import type { DigestPort } from "../notify/notifier.ts";
import { digestNotice, readDigest } from "../queries/digest.ts";
import { createSlotSource } from "../schedule/slots.ts";
import type { RedisTarget, Store } from "../store/redis.ts";

const stateSchema = z.object({ v: z.literal(1), slotMs: z.int(), sentMs: z.int().nullable() });

/** A state of a digest that is no longer configured is kept so long. */
const forgetAfterMs = 31 * 86_400_000;

/** Where digests look. */
interface DigestPlaces {
  readonly store: Store;
  readonly target: RedisTarget;
  readonly set: () => PolicySet;
}

/** The digests of a process. */
export function createDigests({ store, target, set }: DigestPlaces): DigestPort {
  return {
    due: (states, nowMs) => {
      const { digests = [] } = set().notifications;
      const names = new Set(digests.map(({ name }) => name));
      const old = [...states].filter(([name, text]) => !names.has(name) && nowMs - parse(text).slotMs > forgetAfterMs);
      const changes = new Map<string, string | undefined>(old.map(([name]) => [name, undefined]));
      const due: ReturnType<DigestPort["due"]>["due"][number][] = [];
      for (const digest of digests) {
        const text = states.get(digest.name);
        const state = text === undefined ? undefined : parse(text);
        // A new digest begins now: what was due before is no one's wish.
        const slotMs = state === undefined ? undefined : newestSlot(digest, state.slotMs, nowMs);
        if (state === undefined) changes.set(digest.name, textOf(nowMs, null));
        if (state === undefined || slotMs === undefined) continue;
        changes.set(digest.name, textOf(slotMs, nowMs));
        due.push({ to: digest.to, make: () => make(digest, { sinceMs: state.slotMs, slotMs, nowMs }) });
      }
      return { due, changes };
    },
  };
  async function make(
    digest: DigestSettings,
    { sinceMs, slotMs, nowMs }: Record<"sinceMs" | "slotMs" | "nowMs", number>,
  ) {
    const found = await readDigest({ set: set(), store, target }, { ...digest, sinceMs, nowMs });
    return digestNotice(found, { ...digest, key: String(slotMs), nowMs, dueMs: slotMs });
  }
}

/** After a stop only the newest slot counts: one late digest, about all days since the last one. */
function newestSlot(digest: DigestSettings, afterMs: number, nowMs: number): number | undefined {
  return createSlotSource(digest)?.due(afterMs, nowMs).at(-1);
}

function parse(text: string) {
  return parseVersioned("digest state", stateSchema, JSON.parse(text));
}

function textOf(slotMs: number, sentMs: number | null): string {
  return JSON.stringify({ v: 1, slotMs, sentMs });
}

/** When each digest was last sent. */
export function lastSent(states: ReadonlyMap<string, string>): ReadonlyMap<string, number> {
  return new Map(
    [...states].flatMap(([name, text]) => {
      const { sentMs } = parse(text);
      return sentMs === null ? [] : [[name, sentMs] as const];
    }),
  );
}
