// Digests that are due: each day's is planned once over all replicas, since the notifier saves it
// in one step with the slot that it stands for. Called by notify/notifier.ts in its status rounds.
import type { DigestSettings, PolicySet } from "../config/policy-set.ts";
import type { DigestPort } from "../notify/notifier.ts";
import { digestId, digestNotice, readDigest } from "../queries/digest.ts";
import { type DigestState, parseDigestState as parse } from "../queries/sinks.ts";
import { createSlotSource } from "../schedule/slots.ts";
import type { RedisTarget, Store } from "../store/redis.ts";

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
        changes.set(
          digest.name,
          textOf(slotMs, { atMs: nowMs, id: digestId(digest.name, String(slotMs)), to: [...digest.to] }),
        );
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

function textOf(slotMs: number, sent: DigestState["sent"]): string {
  return JSON.stringify({ v: 1, slotMs, sent } satisfies DigestState);
}
