// The record of one start in the start journal, and how it is read from Redis.
import { isJsonObject } from "../core/json.ts";
import { refuseNewer } from "../core/newer-version.ts";
import type { Feed } from "../model/feed.ts";
import { isFromMasks, type Task, targetOf } from "../model/task.ts";
import type { Store } from "./redis.ts";
import { batchesOf, pairsOf, readFields, readHashes } from "./script.ts";

const startStates = ["claimed", "sending", "confirmed", "settled"] as const;

/** Stored words: `evidence` is an activity that shows the start. */
const confirmers = ["answer", "evidence"] as const;

const doubtKinds = ["server", "throttled", "contract", "answer-lost", "crash"] as const;

/** The states of a start, in order. */
export type StartState = (typeof startStates)[number];

/**
 * Whether the request may go out. `lost-claim`: another step has the task, or a person cancelled
 * it. `too-late`: after its start-by time. `undecided`: not now, Redis is unsafe. `loss`: never,
 * Redis lost the time in which this task may have been started.
 */
export type Permission = "permitted" | "lost-claim" | "too-late" | "undecided" | "loss";

/** The parts of a task that name its entry and the starts in flight of its sync job. */
export type JournalTask = Pick<Task, "id" | "kind" | "service" | "repository" | "target">;

/** The journal entry of one start. Instants are milliseconds UTC by Redis. */
export interface StartEntry {
  readonly state: StartState;
  /** The id of the step that claimed it last; empty: none may take its permission back. */
  readonly claimant: string;
  /** The first claim. */
  readonly claimedAtMs: number;
  /** The first permission of a request; undefined before. */
  readonly sentAtMs: number | undefined;
  /** The newest permission, also one that was taken back. */
  readonly lastSentAtMs: number | undefined;
  /** Requests that may have gone out. */
  readonly sends: number;
  /** When the start was confirmed; undefined before. */
  readonly confirmedAtMs: number | undefined;
  /**
   * What confirmed it: the service's answer, else an activity. Undefined before, and where an
   * outcome brought the answer.
   */
  readonly confirmedBy: (typeof confirmers)[number] | undefined;
  /** The baseline before the request, as JSON of tasks/; undefined without one. */
  readonly baseline: string | undefined;
  /** How far the feed had been read before a request that waited for no walk. */
  readonly knownSeq: number | undefined;
  /**
   * The doubt that a worker noted (lua/start/note-doubt.lua). undefined: none noted; if the state
   * is `sending`, the sender is silent: it got the permission and has reported nothing. It stays
   * after an activity has confirmed the start.
   */
  readonly doubt: StartDoubt | undefined;
  /** Since when nothing but the baseline stands before the request. */
  readonly readyAtMs: number | undefined;
  /** When the run was first seen finished in its feed. */
  readonly finishSeenAtMs: number | undefined;
  /** From when on the run is unusually long; Infinity: that cannot be said. */
  readonly longAtMs: number | undefined;
  /** When a worker noted, while the run went on, that it takes unusually long. */
  readonly longNotedAtMs: number | undefined;
  /** Until when a throttle or our own limits deny the verification of the start. */
  readonly deniedUntilMs: number | undefined;
  /** The sync jobs of a run over masks, from the plan until their tasks replace this one. */
  readonly targets: readonly string[] | undefined;
  /** `cancelled by user@host: why`: no request is permitted any more. */
  readonly cancelled: string | undefined;
}

/**
 * Why it is not known what became of a request: the service failed (`server`), asked for patience
 * (`throttled`), said something invalid (`contract`), said nothing (`answer-lost`), or no worker
 * noted anything (`crash`).
 */
export interface StartDoubt {
  readonly kind: (typeof doubtKinds)[number];
  readonly detail: string;
  /** When a worker noticed it, by Redis. The service took the request by then, or never. */
  readonly atMs?: number | undefined;
}

/** When the first request was permitted; without one, when the start was first claimed. */
export function sentAtMsOf({ sentAtMs, claimedAtMs }: StartEntry): number {
  return sentAtMs ?? claimedAtMs;
}

/** The noted doubt, if it is of the only request: of several it may be of an earlier one. */
export function doubtOfOnlyRequest({ doubt, sends }: Pick<StartEntry, "doubt" | "sends">): StartDoubt | undefined {
  return sends === 1 ? doubt : undefined;
}

/** Key of a task's entry. */
export function entryKey({ key }: Pick<Store, "key">, taskId: string): string {
  return key("start", taskId);
}

/** Key of the starts in flight of a task's sync job. */
export function inFlightKey({ key }: Pick<Store, "key">, task: Omit<JournalTask, "id">): string {
  return key("in-flight", task.kind, task.service, task.repository ?? "", task.target);
}

/** Reads the fields of an entry; throws NewerVersionError. */
export function toEntry(fields: readonly string[]): StartEntry {
  const entry = new Map(pairsOf(fields));
  refuseNewer("start journal entry", Number(entry.get("v") ?? 1));
  const instant = (name: string) => (entry.has(name) ? Number(entry.get(name)) : undefined);
  return {
    // A state that only a newer version knows: it permits no request.
    state: startStates.find((state) => state === entry.get("state")) ?? "sending",
    claimant: entry.get("claimant") ?? "",
    claimedAtMs: instant("claimedAtMs") ?? 0,
    sentAtMs: instant("sentAtMs"),
    lastSentAtMs: instant("lastSentAtMs"),
    sends: instant("sends") ?? 0,
    confirmedAtMs: instant("confirmedAtMs"),
    confirmedBy: confirmers.find((one) => one === entry.get("confirmedBy")),
    baseline: entry.get("baseline"),
    knownSeq: instant("knownSeq"),
    doubt: entry.has("doubt") ? toDoubt(entry.get("doubt")) : undefined,
    readyAtMs: instant("readyAtMs"),
    finishSeenAtMs: instant("finishSeenAtMs"),
    longAtMs: instant("longAtMs"),
    longNotedAtMs: instant("longNotedAtMs"),
    deniedUntilMs: instant("deniedUntilMs"),
    targets: toTexts(entry.get("targets")),
    cancelled: entry.get("cancelled"),
  };
}

/** The tasks; in place of one over masks that has fanned out, those that replace it. */
export async function withFanOuts<T extends Pick<Task, "id" | "kind" | "target">>(
  store: Store,
  tasks: readonly T[],
): Promise<readonly T[]> {
  const overMasks = tasks.filter(isFromMasks);
  const keys = overMasks.map(({ id }) => entryKey(store, id));
  const read = await readFields(store, keys, ["fannedOutInto"]);
  const fanOuts = new Map(overMasks.map(({ id }, index) => [id, toTexts(read[index]?.[0])]));
  return tasks.flatMap((task): readonly T[] => {
    const into = fanOuts.get(task.id);
    return into === undefined ? [task] : into.map((id) => ({ ...task, id, target: targetOf(id) }));
  });
}

/** Reads a list of texts; undefined when there is none. */
export function toTexts(text: string | null | undefined): readonly string[] | undefined {
  const texts: unknown = JSON.parse(text ?? "null");
  return Array.isArray(texts) ? texts.map(String) : undefined;
}

/** Reads a noted doubt. */
export function toDoubt(text: unknown): StartDoubt {
  const doubt: unknown = JSON.parse(String(text));
  if (!isJsonObject(doubt)) return { kind: "answer-lost", detail: "" };
  const { kind, detail, atMs } = doubt;
  return {
    kind: doubtKinds.find((known) => known === kind) ?? "answer-lost",
    detail: String(detail),
    atMs: typeof atMs === "number" ? atMs : undefined,
  };
}

/** The task ids of the runs in flight of these sync jobs, in the feed's repository. */
export async function taskIdsInFlight(store: Store, feed: Feed, syncJobIds: readonly string[]): Promise<string[]> {
  const { service, repository } = feed;
  const syncJobs = syncJobIds.map((target) => ({ service, repository, target }));
  return (await runsInFlight(store, syncJobs)).map(({ id }) => id);
}

/** A run in flight: its task, and when its first request was permitted. */
export interface RunInFlight extends Omit<JournalTask, "kind"> {
  readonly sentAtMs: number;
}

/** Returns the runs in flight of these sync jobs that have not ended. */
export async function runsInFlight(
  store: Store,
  syncJobs: readonly Omit<JournalTask, "id" | "kind">[],
): Promise<readonly RunInFlight[]> {
  const found: RunInFlight[] = [];
  for (const batch of batchesOf(syncJobs, 100)) {
    const keys = batch.map((one) => inFlightKey(store, { ...one, kind: "run" }));
    const starts = await readHashes(store, keys);
    // "e" marks an ended start, kept for its late activities (lua/outcome/record.lua).
    for (const [index, syncJob] of batch.entries())
      for (const [id, sent] of pairsOf(starts[index] ?? []))
        if (!sent.startsWith("e")) found.push({ ...syncJob, id, sentAtMs: Number.parseInt(sent, 10) });
  }
  return found;
}
