// The fan-out of a task over masks: it ends with the tasks of the sync jobs that they name in its
// place. The journal keeps these, so that a step after a crash queues the same ones.

import { matchesMask } from "../config/mask-filter.ts";
import { isNotified } from "../model/notify-event.ts";
import { type Task, taskId } from "../model/task.ts";
import type { SyncService } from "../service/client.ts";
import { inRepository } from "../service/request-url.ts";
import { stepAfterFailure } from "./defer.ts";
import { reasonOf } from "./judge.ts";
import { type Claim, endRemoved, endUnsent, type StepResult, stepAgainSoon, withoutOutcome } from "./step.ts";
import type { FanOutDependencies } from "./step-dependencies.ts";

/** The most sync jobs that a policy with `fromMasks` starts at once. */
const syncJobsMax = 1_000;
/** The most masks that a fan-out reads. */
const masksMax = 20_000;
/** The most readings of masks that shift between their pages. */
const readingsMax = 4;

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
    targets = await readTargets(task, deps, { service, masks: policy.action.fromMasks, signal });
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
  if (targets.length === 0)
    return noTarget(claimant, "no mask that matches names a sync job, so there is none to start");
  if (targets.length > syncJobsMax)
    return noTarget(claimant, `${targets.length} sync jobs match; at most ${syncJobsMax} are started`);
  const isPlanned = await deps.journal.planFanOut(task, { claimant, isNotified: isNotified(policy) }, targets);
  return isPlanned ? enqueueAll(task, deps, targets) : stepAgainSoon(await deps.nowMs());
}

interface MaskQuery {
  readonly service: SyncService;
  readonly masks: Parameters<typeof matchesMask>[0];
  readonly signal: AbortSignal;
}

/**
 * The sync jobs of the masks that match. Where the list has several pages, two readings in a row
 * must agree: while a mask is deleted, another one slips over a page boundary. @throws ServiceError
 */
async function readTargets(
  { id: taskId, policy, repository }: Task,
  { log }: Pick<FanOutDependencies, "log">,
  query: MaskQuery,
): Promise<string[]> {
  let before: ReadonlySet<string> | undefined;
  for (let readings = 1; ; readings += 1) {
    const { found, pages } = await readMasks(repository, query, readings > 1);
    const isSure = pages <= 1 || before?.symmetricDifference(found).size === 0;
    if (!isSure && readings === readingsMax) log.warn("run.masks-unsure", { policy, taskId, readings });
    if (isSure || readings === readingsMax) return [...found];
    before = found;
  }
}

async function readMasks(repository: string | null, { service, masks, signal }: MaskQuery, isFollowUp: boolean) {
  const found = new Set<string>();
  let pages = 0;
  const options = { signal, itemsMax: masksMax, isFollowUp };
  for await (const page of service.pages("GetJobMasks", inRepository({ repository }), options)) {
    pages += 1;
    for (const mask of page.items) {
      if (mask.syncJobId === undefined || mask.syncJobId === null) continue;
      if (matchesMask(masks, mask)) found.add(String(mask.syncJobId));
    }
  }
  return { found, pages };
}

async function enqueueAll(task: Task, deps: FanOutDependencies, targets: readonly string[]): Promise<StepResult> {
  const tasks = targets.map((target) => ({ ...task, target, id: taskId({ ...task, target }) }));
  await deps.enqueue(tasks);
  await deps.chains.noteFannedOut(task, targets);
  await deps.journal.noteFannedOut(
    task.id,
    tasks.map(({ id }) => id),
  );
  return withoutOutcome;
}

function noTarget(claimant: string, detail: string): StepResult {
  return endUnsent(claimant, "not-started", { reason: "no-target", detail });
}
