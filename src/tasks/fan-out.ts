// The fan-out of a run over masks: reads the masks, and enqueues a task for each sync job that they
// name. Called by process-task.ts. A repeat enqueues the same ids.
import { matchesMask } from "../config/policy-set.ts";
import { isNotified } from "../model/notify-event.ts";
import type { Task } from "../model/task.ts";
import { taskId } from "../model/task-id.ts";
import type { SyncService } from "../service/client.ts";
import { inRepository } from "../service/request-url.ts";
import type { FanOutDependencies } from "./contracts.ts";
import { stepAfterFailure } from "./defer.ts";
import { reasonOf } from "./judge.ts";
import { askAgain } from "./send-start.ts";
import { type Claim, endRemoved, endUnsent, type StepResult, settled } from "./step.ts";

/** The most sync jobs that a policy with `fromMasks` starts at once. */
const syncJobsMax = 1_000;
/** The most masks that a fan-out reads. */
const masksMax = 20_000;

/** Fans a task out, into the sync jobs of the journal if an earlier step has found them. */
export async function fanOut(
  task: Task,
  deps: FanOutDependencies,
  { claimant, entry, signal }: Claim & { readonly signal: AbortSignal },
): Promise<StepResult> {
  if (entry.targets !== undefined) return enqueueAll(task, deps, entry.targets);
  const policy = deps.policy(task.policy);
  const service = deps.service(task.service);
  if (policy?.action.kind !== "run" || !("fromMasks" in policy.action) || service === undefined)
    return endRemoved(claimant, `policy ${task.policy} does not start what masks name`);
  let targets: readonly string[];
  try {
    targets = await readTargets(task, service, { masks: policy.action.fromMasks, signal });
  } catch (error) {
    const nowMs = await deps.nowMs();
    return stepAfterFailure(task, error, {
      nowMs,
      claimant,
      ending: ({ kind, message }) => ({
        ...{ status: "not-started", evidence: "direct", reason: reasonOf(kind) },
        ...{ detail: `the masks cannot be read: ${message}`, from: { state: "claimed", claimant } },
      }),
    });
  }
  if (targets.length === 0) return noTarget(claimant, "no mask matches, so there is no sync job to start");
  if (targets.length > syncJobsMax)
    return noTarget(claimant, `${targets.length} sync jobs match; at most ${syncJobsMax} are started`);
  const isPlanned = await deps.journal.planFanOut(task, { claimant, isNotified: isNotified(policy) }, targets);
  return isPlanned ? enqueueAll(task, deps, targets) : askAgain(await deps.nowMs());
}

interface MaskQuery {
  readonly masks: Parameters<typeof matchesMask>[0];
  readonly signal: AbortSignal;
}

/** The sync jobs of the masks that match. @throws ServiceError */
async function readTargets(task: Task, service: SyncService, { masks, signal }: MaskQuery): Promise<string[]> {
  const found = new Set<string>();
  for await (const page of service.pages("GetJobMasks", inRepository(task), { signal, itemsMax: masksMax })) {
    for (const mask of page.items) {
      if (mask.syncJobId === undefined || mask.syncJobId === null) continue;
      if (matchesMask(masks, mask)) found.add(String(mask.syncJobId));
    }
  }
  return [...found];
}

async function enqueueAll(task: Task, deps: FanOutDependencies, targets: readonly string[]): Promise<StepResult> {
  const tasks = targets.map((target) => ({ ...task, target, id: taskId({ ...task, target }) }));
  await deps.enqueue(tasks);
  await deps.chains.fannedOut(task, targets);
  await deps.journal.fannedOut(
    task.id,
    tasks.map(({ id }) => id),
  );
  return settled;
}

function noTarget(claimant: string, detail: string): StepResult {
  return endUnsent(claimant, "not-started", { reason: "no-target", detail });
}
