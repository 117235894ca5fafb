// The pauses in Redis, also ended ones: the scheduler may plan a slot inside one later. And the
// quarantines, which it reads as pauses: how many slots of a policy failed in a row. Workers count
// at the end of each task (tasks/recorder.ts).
//
//   well ──a slot fails──▶ counting ──N in a row──▶ quarantined ──time is up──▶ on trial
//    ▲───── a success ───────────────────┴──────────────────┴───────────────────────┘
//
// A person may end a quarantine, too, and the scheduler, when the file has no rule for it any more.
// On trial, one more failure quarantines the policy again.
import * as z from "zod";
import { type Pause, type PauseSubject, parsePause, subjectKey } from "../model/pause.ts";
import { policyStateKey } from "./policy-states.ts";
import type { Store } from "./redis.ts";
import {
  asNothing,
  asOptional,
  asText,
  asTexts,
  asWord,
  batchesOf,
  createScript,
  type ScriptArgument,
} from "./script.ts";

/** The most pauses in force at once. */
export const pausesMax = 1_000;
/** Ended pauses kept, about 250 bytes each. */
const endedMax = 200;
/** How long they, and quarantines of removed policies, are kept: the longest catch-up window. */
const endedRetentionMs = 31 * 86_400_000;

const changeScript = createScript("change-pause", (answer) => {
  const [word, ...texts] = asTexts(answer);
  return { word: asWord("set", "ended", "full")(word), pauses: texts.map((text) => parsePause(JSON.parse(text))) };
});

/** The pauses in Redis. */
export class Pauses {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * Returns the pauses in force, and ended ones: each change of a pause drops those beyond the
   * newest 200 or older than 31 days.
   */
  async all(): Promise<Pause[]> {
    const texts = await this.#store.redis.hvals(this.#store.key("pauses"));
    return texts.map((text) => parsePause(JSON.parse(text)));
  }

  /** Sets a pause from now on, in the place of one in force; undefined: there are `pausesMax`. */
  async set(pause: Pick<Pause, "scope" | "name" | "note" | "actor" | "untilMs">): Promise<Pause | undefined> {
    const { untilMs, ...rest } = pause;
    const text = JSON.stringify({ v: 1, ...rest, endedBy: null });
    const { pauses } = await this.#change("set", pause, [text, untilMs ?? "", pause.actor]);
    return pauses[0];
  }

  /** Ends the pause in force now. Answers the ended ones: none when there was no pause. */
  async end(subject: PauseSubject, actor: string): Promise<Pause[]> {
    return (await this.#change("end", subject, ["", "", actor])).pauses;
  }

  #change(what: "set" | "end", subject: PauseSubject, how: readonly ScriptArgument[]) {
    const args = [subjectKey(subject), what, ...how, pausesMax, endedMax, endedRetentionMs];
    return changeScript(this.#store, [this.#store.key("pauses")], args);
  }
}

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
  readonly isSuccess: boolean;
  /** The reason, for the record of each skipped slot; cut to 150 characters. */
  readonly note: string;
}

/** What is read here of an entry; lua/quarantine/count.lua writes more. */
const entrySchema = z.object({
  v: z.literal(1),
  /** The newest slot that failed. */
  badMs: z.int().default(0),
  sinceMs: z.int().nullable(),
  untilMs: z.int().nullable(),
  note: z.string(),
  endedBy: z.string().nullable(),
});

const countScript = createScript("quarantine/count", asWord("quarantined", "released", "nothing"));
const releaseScript = createScript("quarantine/release", asOptional(asText));
const tidyScript = createScript("quarantine/tidy", asNothing);

/** The quarantines in Redis. */
export class Quarantines {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Counts an ending. Idempotent: only one caller gets the change that it caused. */
  async count(ending: CountedEnding, rule: QuarantineRule): Promise<"quarantined" | "released" | "nothing"> {
    const { policy, slotMs, isSuccess, note } = ending;
    const args = [policy, slotMs, isSuccess ? 1 : 0, rule.after, rule.forMs, note.slice(0, 150)];
    return countScript(this.#store, [this.#key(), policyStateKey(this.#store, policy)], args);
  }

  /** Returns the last quarantine of each policy, in force or over, as a pause. */
  async all(): Promise<Pause[]> {
    const entries = Object.entries(await this.#store.redis.hgetall(this.#key()));
    return entries.flatMap(([policy, text]) => toPause(policy, text) ?? []);
  }

  /** Ends a policy's quarantine before its time; undefined: none was in force. */
  async release(policy: string, actor: string): Promise<Pause | undefined> {
    const text = await releaseScript(this.#store, [this.#key()], [policy, actor]);
    return text === undefined ? undefined : toPause(policy, text);
  }

  /** Forgets policies that are unknown, and were not bad for the longest catch-up window. */
  async tidy(known: ReadonlySet<string>, nowMs: number): Promise<void> {
    const entries = Object.entries(await this.#store.redis.hgetall(this.#key()));
    const old = entries.filter(([policy, text]) => {
      if (known.has(policy)) return false;
      const { badMs, untilMs } = entrySchema.parse(JSON.parse(text));
      return nowMs - Math.max(badMs, untilMs ?? 0) > endedRetentionMs;
    });
    for (const batch of batchesOf(old)) await tidyScript(this.#store, [this.#key()], batch.flat());
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
