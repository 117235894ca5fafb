// The record of one start in the start journal, and how it is read from Redis. Used by
// start-journal.ts and tasks/; other scripts use its key.
import { isJsonObject } from "../core/json.ts";
import { refuseNewer } from "../core/newer-version.ts";
import type { Feed } from "../model/feed.ts";
import type { Task } from "../model/task.ts";
import { batchesOf, pairsOf } from "./batches.ts";
import type { Store } from "./redis.ts";

/** The states of a start, in order. */
export type StartState = "claimed" | "sending" | "answered" | "settled";

/**
 * Whether the request may go out now. `hold`: not now; Redis is unsafe, was replaced a moment ago,
 * or its replicas lag. `loss`: never; Redis lost the time in which this task may have been started.
 */
export type Permission = "permitted" | "lost-claim" | "too-late" | "hold" | "loss";

/** The parts of a task that name its entry and the starts in flight of its sync job. */
export type JournalTask = Pick<Task, "id" | "kind" | "service" | "repository" | "target">;

/** The journal entry of one start. Instants are milliseconds UTC by Redis. */
export interface StartEntry {
  readonly state: StartState;
  /** The worker with the newest claim. */
  readonly owner: string;
  /** The first claim. */
  readonly claimedAtMs: number;
  /** The first permission of a request; undefined before. */
  readonly sentAtMs: number | undefined;
  /** The newest permission. */
  readonly lastSentAtMs: number | undefined;
  /**
   * Requests that may have gone out: 0 before the permission, then 1; more when it was sent again
   * (tasks/verify.ts).
   */
  readonly sends: number;
  /** When the start was confirmed; undefined before. */
  readonly answeredAtMs: number | undefined;
  /** What confirmed it: the service's answer, or an activity. */
  readonly shownBy: "answer" | "evidence";
  /** The baseline before the request, as JSON of tasks/; undefined without one. */
  readonly baseline: string | undefined;
  /**
   * How far the feed of activities had been read at some time before the request; only for requests
   * that did not wait for a walk.
   */
  readonly knownSeq: number | undefined;
  /** Why the answer is missing, as the first worker noted it; undefined when it is not missing. */
  readonly lost: AnswerLoss | undefined;
  /** When the run was first seen finished in its feed. */
  readonly finishSeenAtMs: number | undefined;
  /**
   * Until when the throttle or our own limits block the verification of the start; undefined:
   * nothing blocks it.
   */
  readonly heldUntilMs: number | undefined;
  /**
   * The sync jobs of a run over masks, at most 1,000: from the plan until their tasks replace this
   * one.
   */
  readonly targets: readonly string[] | undefined;
}

/**
 * Why a good answer is missing: the service reported a failure (`server`) or something invalid
 * (`contract`), no answer came (`unknown`), or the worker died (`crash`).
 */
export interface AnswerLoss {
  readonly kind: "server" | "contract" | "unknown" | "crash";
  readonly detail: string;
  /** When a worker noticed it, milliseconds UTC by Redis. A run of that request began earlier. */
  readonly atMs?: number | undefined;
}

/** Key of a task's entry. */
export function entryKey({ key }: Pick<Store, "key">, taskId: string): string {
  return key("start", taskId);
}

/** Key of the starts in flight of a task's sync job. */
export function inFlightKey({ key }: Pick<Store, "key">, task: Omit<JournalTask, "id">): string {
  return key("in-flight", task.kind, task.service, task.repository ?? "", task.target);
}

/**
 * Reads the fields of an entry: names and values in turn.
 * @throws NewerVersionError when a newer version of Syncline wrote it.
 */
export function toEntry(fields: readonly string[]): StartEntry {
  const entry = new Map(pairsOf(fields));
  refuseNewer("start journal entry", Number(entry.get("v") ?? 1));
  const instant = (name: string) => (entry.has(name) ? Number(entry.get(name)) : undefined);
  return {
    state: toState(entry.get("state")),
    owner: entry.get("owner") ?? "",
    claimedAtMs: instant("claimedAtMs") ?? 0,
    sentAtMs: instant("sentAtMs"),
    lastSentAtMs: instant("lastSentAtMs") ?? instant("sentAtMs"),
    sends: instant("sends") ?? (entry.has("sentAtMs") ? 1 : 0),
    answeredAtMs: instant("answeredAtMs"),
    shownBy: entry.get("shownBy") === "evidence" ? "evidence" : "answer",
    baseline: entry.get("baseline"),
    knownSeq: instant("knownSeq"),
    lost: entry.has("lost") ? toLoss(entry.get("lost")) : undefined,
    finishSeenAtMs: instant("finishSeenAtMs"),
    heldUntilMs: instant("heldUntilMs"),
    targets: toTexts(entry.get("targets")),
  };
}

/** Reads a list of texts; undefined when there is none. */
export function toTexts(text: string | null | undefined): readonly string[] | undefined {
  const texts: unknown = JSON.parse(text ?? "null");
  return Array.isArray(texts) ? texts.map(String) : undefined;
}

/** Reads why an answer is missing. */
export function toLoss(text: unknown): AnswerLoss {
  const loss: unknown = JSON.parse(String(text));
  if (!isJsonObject(loss)) return { kind: "unknown", detail: "" };
  const { kind, detail, atMs } = loss;
  return {
    kind: kind === "server" || kind === "contract" || kind === "crash" ? kind : "unknown",
    detail: String(detail),
    atMs: typeof atMs === "number" ? atMs : undefined,
  };
}

function toState(text: string | undefined): StartState {
  switch (text) {
    case "claimed":
    case "answered":
    case "settled":
      return text;
    default:
      // A newer version's state: treat it as the one that never permits a request.
      return "sending";
  }
}

/**
 * Returns the run tasks whose starts are in flight: of these sync jobs, in the feed's repository.
 */
export async function tasksInFlight(store: Store, feed: Feed, syncJobIds: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  const { service, repository } = feed;
  for (const batch of batchesOf(syncJobIds)) {
    const keys = batch.map((target) => inFlightKey(store, { kind: "run", service, repository, target }));
    const starts = await Promise.all(keys.map((key) => store.redis.hgetall(key)));
    // "e" marks an ended start, kept for its late activities (history.ts).
    for (const one of starts) for (const [id, sent] of Object.entries(one)) if (!sent.startsWith("e")) found.push(id);
  }
  return found;
}
