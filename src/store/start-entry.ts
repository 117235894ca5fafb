// What the start journal holds of one start, and how it is read from Redis. Called by start-journal.ts; its types are work/'s, its key the other scripts' that ask for its state.
import { isJsonObject } from "../core/json.ts";
import { refuseNewer } from "../core/newer-version.ts";
import type { Task } from "../tasks/task.ts";
import type { Store } from "./redis.ts";

/** The states of a start, in order. */
export type StartState = "claimed" | "sending" | "answered" | "settled";

/**
 * Whether the request may go out now, and if not, why. `hold`: not now, Redis is unsafe, a moment ago another one, or its replicas lag.
 * `loss`: never, since Redis lost its memory of the time in which this task may have been started.
 */
export type Permission = "permitted" | "lost-claim" | "too-late" | "hold" | "loss";

/** What of a task names its entry, and the starts that its activities could be mistaken for. */
export type JournalTask = Pick<Task, "id" | "kind" | "service" | "repository" | "target">;

/** What the journal holds of one start. Instants are milliseconds UTC by Redis. */
export interface StartEntry {
  readonly state: StartState;
  /** Who claimed last. */
  readonly owner: string;
  /** When it was claimed for the first time. */
  readonly claimedAtMs: number;
  /** When the request was permitted for the first time; undefined before. */
  readonly sentAtMs: number | undefined;
  /** When the newest one was. */
  readonly lastSentAtMs: number | undefined;
  /** How many requests may have gone out: 0 before the permission, 1, or more where it was sent again (work/verify.ts). */
  readonly sends: number;
  /** When the service answered that it accepted; undefined when no answer came. */
  readonly answeredAtMs: number | undefined;
  /** What was known before the request, as JSON of the claimant; undefined when nothing was. */
  readonly baseline: string | undefined;
  /** How far the feed of activities had been read, at some time before a request that waited for no walk; undefined for all others. */
  readonly knownSeq: number | undefined;
  /** Why the answer is missing, as the first one to notice wrote it; undefined when it is not. */
  readonly lost: AnswerLoss | undefined;
  /** When the run was first seen finished in its feed. */
  readonly finishSeenAtMs: number | undefined;
  /** Until when nobody may look whether it happened, since the service asked for patience or our limits let no read out; undefined: neither. */
  readonly heldUntilMs: number | undefined;
  /** Of a run over masks: the sync jobs that they name, once a worker has said so and until their tasks stand for this one; at most 1,000. */
  readonly targets: readonly string[] | undefined;
}

/** Why a good answer is missing: the service said that it failed (`server`) or nothing that makes sense (`contract`), it never came (`unknown`), or the worker died (`crash`). */
export interface AnswerLoss {
  readonly kind: "server" | "contract" | "unknown" | "crash";
  readonly detail: string;
  /** When that was noticed, milliseconds UTC by Redis: a run that the request started began before. */
  readonly atMs?: number | undefined;
}

/** Where the entry of a task stands. */
export function entryKey({ key }: Pick<Store, "key">, taskId: string): string {
  return key("start", taskId);
}

/** Where the starts in flight of a task's sync job stand. */
export function inFlightKey({ key }: Pick<Store, "key">, task: Omit<JournalTask, "id">): string {
  return key("in-flight", task.kind, task.service, task.repository ?? "", task.target);
}

/**
 * Reads the fields of an entry, names and values in turn.
 * @throws NewerVersionError when a newer version of Syncline wrote it.
 */
export function toEntry(fields: unknown): StartEntry {
  const entry = new Map<string, string>();
  const flat = Array.isArray(fields) ? fields.map(String) : [];
  for (let index = 0; index + 1 < flat.length; index += 2) entry.set(flat[index] ?? "", flat[index + 1] ?? "");
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
      // An unknown state (a newer version's) is treated as the one that never permits a request.
      return "sending";
  }
}

/** Reads the word of a script that was asked for a permission; anything else means that another one has claimed the start. */
export function toPermission(text: string | undefined): Permission {
  return text === "permitted" || text === "too-late" || text === "hold" || text === "loss" ? text : "lost-claim";
}
