// A run over the sync jobs that certain masks belong to: looks the masks up when the slot is due, and puts one task for each
// sync job into the queue. Masks are the only list that names sync jobs (service-interface §2, MaskEntity).
// Which ones they are is written into the journal first: from then on nobody may say that nothing was started, and nobody looks again.
import { matchesMask } from "../config/match-mask.ts";
import { inRepository } from "../service/request-url.ts";
import { ServiceError } from "../service/service-error.ts";
import type { Attempt } from "../tasks/seams.ts";
import type { Task } from "../tasks/task.ts";
import { taskId } from "../tasks/task-id.ts";
import { waitAfter } from "./held.ts";
import { judge, reasonOf } from "./judge.ts";
import type { WorkParts } from "./parts.ts";
import { askAgain } from "./send-start.ts";
import { type Claim, end, endUnsent, type Step } from "./step.ts";

/** The most sync jobs that one policy starts at once. */
const syncJobsMax = 1_000;
const masksMax = 20_000;

/** Looks the masks up, unless somebody has done so, and enqueues a task for each sync job. Doing so twice changes nothing: the ids are the same. */
export async function expandMasks(
  task: Task,
  parts: WorkParts,
  { owner, entry, attempt }: Claim & { readonly attempt: Attempt },
): Promise<Step> {
  if (entry.targets !== undefined) return enqueueAll(task, parts, entry.targets);
  const action = parts.policy(task.policy)?.action;
  const service = parts.service(task.service);
  if (action?.kind !== "run" || !("fromMasks" in action) || service === undefined) {
    const detail = `policy ${task.policy} does not look at masks any more`;
    return endUnsent(owner, "skipped", { reason: "policy-removed", detail });
  }
  const found = new Set<string>();
  try {
    const query = inRepository(task);
    for await (const page of service.pages("GetJobMasks", query, { signal: attempt.signal, itemsMax: masksMax })) {
      for (const mask of page.items) {
        if (mask.syncJobId === undefined || mask.syncJobId === null) continue;
        if (matchesMask(action.fromMasks, mask)) found.add(String(mask.syncJobId));
      }
    }
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const ending = {
      status: "not-started",
      evidence: "direct",
      reason: reasonOf[error.kind],
      detail: `the masks cannot be read: ${error.message}`,
    } as const;
    const from = { state: "claimed", owner } as const;
    switch (judge(error, "poll")) {
      case "give-up":
        return end(ending, from);
      case "wait":
        return waitAfter(task, error, { nowMs: await parts.nowMs(), owner });
      case "again":
        return { step: "snooze", untilMs: await parts.nowMs() };
      case "retry":
      case "verify":
        return { step: "retry", from, afterMs: error.retryAfterMs ?? 0, ending };
    }
  }
  if (found.size === 0) return noTarget(owner, "no mask matches, so there is no sync job to start");
  if (found.size > syncJobsMax)
    return noTarget(owner, `${found.size} sync jobs match; at most ${syncJobsMax} are started`);
  const targets = [...found];
  if (await parts.journal.willExpand(task.id, owner, targets)) return enqueueAll(task, parts, targets);
  return askAgain(await parts.nowMs());
}

async function enqueueAll(task: Task, parts: WorkParts, targets: readonly string[]): Promise<Step> {
  const tasks = targets.map((syncJobId) => withTarget(task, syncJobId));
  await parts.enqueue(tasks);
  await parts.chains.expanded(task, targets);
  await parts.journal.expanded(
    task.id,
    tasks.map(({ id }) => id),
  );
  return { step: "expanded" };
}

function noTarget(owner: string, detail: string): Step {
  return endUnsent(owner, "not-started", { reason: "no-target", detail });
}

function withTarget(task: Task, target: string): Task {
  return { ...task, target, id: taskId({ ...task, target }) };
}
