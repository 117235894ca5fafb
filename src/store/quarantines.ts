// Quarantines in Redis: how many slots of a policy failed in a row, and until when its slots are
// skipped for it. Workers count at the end of each task (tasks/watches.ts); the scheduler
// reads quarantines as pauses. Only policies that have failed have an entry.
//
//   well ──a slot fails──▶ counting ──N in a row──▶ quarantined ──time is up──▶ on trial
//    ▲───── a success, or by hand ───────┴──────────────────┴───────────────────────┘
//
// On trial, one more failure quarantines the policy again.
import * as z from "zod";
import type { Pause } from "../model/pause.ts";
import { Pauses } from "./pauses.ts";
import type { Store } from "./redis.ts";
import { asOptional, asText, asWord, createScript } from "./script.ts";

/** When a policy is quarantined, and for how long. */
export interface QuarantineRule {
  /** Slots in a row that must fail. */
  readonly after: number;
  readonly forMs: number;
}

/** The ending of one task, for the count of its policy. */
export interface CountedEnding {
  readonly policy: string;
  readonly slotMs: number;
  readonly isGood: boolean;
  /** The reason, for the record of each skipped slot; cut to 150 characters. */
  readonly note: string;
}

const entrySchema = z.object({
  v: z.literal(1),
  failures: z.int(),
  sinceMs: z.int().nullable(),
  untilMs: z.int().nullable(),
  note: z.string(),
  endedBy: z.string().nullable(),
});

const countScript = createScript("quarantine/count", asWord("quarantined", "released", "nothing"));
const releaseScript = createScript("quarantine/release", asOptional(asText));

/** The quarantines in Redis. */
export class Quarantines {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Counts an ending. Idempotent: only one caller gets the change that it caused. */
  async count(ending: CountedEnding, rule: QuarantineRule): Promise<"quarantined" | "released" | "nothing"> {
    const { policy, slotMs, isGood, note } = ending;
    const args = [policy, slotMs, isGood ? 1 : 0, rule.after, rule.forMs, note.slice(0, 150)];
    return countScript(this.#store, [this.#key()], args);
  }

  /** Returns the last quarantine of each policy, in force or over, as a pause. */
  async all(): Promise<Pause[]> {
    const entries = Object.entries(await this.#store.redis.hgetall(this.#key()));
    return entries.flatMap(([policy, text]) => toPause(policy, text) ?? []);
  }

  /** Ends a policy's quarantine by hand; undefined: none was in force. */
  async release(policy: string, actor: string): Promise<Pause | undefined> {
    const text = await releaseScript(this.#store, [this.#key()], [policy, actor]);
    return text === undefined ? undefined : toPause(policy, text);
  }

  #key(): string {
    return this.#store.key("quarantines");
  }
}

/** Returns all pauses and quarantines: what keeps slots from running. */
export async function readPauses(store: Store): Promise<Pause[]> {
  return (await Promise.all([new Pauses(store).all(), new Quarantines(store).all()])).flat();
}

function toPause(policy: string, text: string): Pause | undefined {
  const { sinceMs, untilMs, note, endedBy } = entrySchema.parse(JSON.parse(text));
  if (sinceMs === null) return undefined;
  return {
    v: 1,
    scope: "policy",
    name: policy,
    cause: "quarantine",
    note,
    actor: "syncline",
    sinceMs,
    untilMs,
    endedBy,
  };
}
