// Names tasks as people say them: `sync job 4, slot 02:30 CET`. Pure; called by `history`,
// `explain`, `running` and others, in place of ids.
import { type Action, type Policy, targetsOf } from "../config/policy-set.ts";
import { declaredKinds, parseObjectName, showObject } from "../core/declared-object.ts";
import { coarseUnitMs, formatRoughly } from "../core/duration.ts";
import { showClock } from "../core/instant.ts";
import { isFromMasks, parseTaskId, type Task, targetFromMasks } from "../model/task.ts";

/** The parts of a task that name it. */
export type NamedTask = Pick<Task, "kind" | "target" | "slotMs" | "origin">;

/**
 * What a task does, and for which slot or since when by hand. `timezone`: of the policy; undefined:
 * UTC. The date is left out where it is that of `besideMs`, an instant that is shown beside.
 */
export function taskWords(task: NamedTask, timezone: string | undefined, besideMs: number): string {
  const when = showClock(task.slotMs, timezone, besideMs);
  return `${targetWords(task)}, ${task.origin === "manual" ? "by hand" : "slot"} ${when}`;
}

/** The subject of a change, a task as people say it, by the clocks of its policy. */
export function subjectWords(
  subject: string,
  besideMs: number,
  policies: readonly Pick<Policy, "name" | "timezone">[] = [],
): string {
  const task = parseTaskId(subject.replace(/^task /, ""));
  const timezone = policies.find(({ name }) => name === task?.policy)?.timezone;
  return task === undefined ? subject : `${task.policy}: ${taskWords(task, timezone, besideMs)}`;
}

/** What a task does: `sync job 4`, `activate sync job 4`, `poll approvals`. */
export function targetWords(task: Pick<Task, "kind" | "target">): string {
  const { kind, target } = task;
  if (isFromMasks(task)) return "sync jobs of masks";
  if (kind === "run") return `sync job ${target}`;
  if (kind === "poll") return `poll ${target}`;
  if (kind !== "apply") return `${kind} sync job ${target}`;
  const object = parseObjectName(target);
  return `apply ${Object.hasOwn(declaredKinds, object.kind) ? showObject(object) : target}`;
}

/**
 * When a run will probably end: `usually 12m, so about 02:14 CET`. To minutes where it takes ten or
 * more.
 */
export function endWords(
  { usualMs, endsMs }: { readonly usualMs: number; readonly endsMs: number },
  timezone: string | undefined,
  nowMs: number,
): string {
  const usually = `usually ${formatRoughly(usualMs, Math.round)}`;
  if (endsMs < nowMs) return `${usually}, so it takes longer`;
  const unitMs = coarseUnitMs(usualMs);
  return `${usually}, so about ${showClock(Math.round(endsMs / unitMs) * unitMs, timezone, nowMs)}`;
}

/** Whether a task starts only once it holds its sync job. `overlap`: of its policy. */
export function takesLease({ kind }: Pick<Task, "kind">, overlap: Policy["overlap"] | undefined): boolean {
  return kind === "delete" || (kind === "run" && overlap !== "allow");
}

/** Whether a task of the policy ends as skipped while another one holds its sync job. */
export function isSkippedBeside({ action, overlap }: Pick<Policy, "action" | "overlap">): boolean {
  // A deletion never runs beside another task; an activation holds nothing, and waits for nothing.
  return action.kind === "delete" ? overlap !== "queue" : action.kind === "run" && overlap === "skip";
}

const besideWords: Readonly<Record<Policy["overlap"], string>> = {
  skip: "While it goes on, a new run of the same sync job is skipped (overlap: skip).",
  queue: "A new run of the same sync job waits for its end (overlap: queue).",
  allow: "A new run of the same sync job starts beside it (overlap: allow).",
};

/** What a new run does while another one goes on; empty for a policy that runs nothing. */
export function runBesideWords({ action, overlap }: Pick<Policy, "action" | "overlap">): string {
  return action.kind === "run" ? besideWords[overlap] : "";
}

/** What a policy starts: `sync jobs 42, 43`, `12 sync jobs`, `poll approvals`. */
export function actionWords(action: Action): string {
  const { kind } = action;
  const targets = targetsOf(action) ?? [targetFromMasks];
  if (targets.length === 1) return targetWords({ kind, target: targets[0] ?? "" });
  if (kind === "apply") return `apply ${targets.length} objects`;
  const jobs = targets.length <= 3 ? `sync jobs ${targets.join(", ")}` : `${targets.length} sync jobs`;
  return kind === "run" ? jobs : `${kind} ${jobs}`;
}
