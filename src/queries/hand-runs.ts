// What was started by hand, of a policy or of sync jobs without one: who asked for it, why, and
// how it ended. Called by the pages and the API.
import type { Outcome } from "../model/outcome.ts";
import { deletionByHand, runByHand } from "../model/task.ts";
import { parseTaskId } from "../model/task-id.ts";
import { readTasksInFlight } from "../queue/tasks-in-flight.ts";
import { Changes } from "../store/changes.ts";
import { History } from "../store/history.ts";
import { findOutcomes } from "./outcomes.ts";
import type { QueryContext } from "./query-context.ts";
import { taskIdsIn } from "./slot-story.ts";

/** A task that was started by hand. `outcome` undefined: it goes on. */
export interface HandRun {
  readonly id: string;
  readonly policy: string;
  readonly target: string;
  readonly kind: Outcome["kind"];
  readonly givenMs: number;
  readonly outcome: Outcome | undefined;
  /** Who asked for it, and why; undefined: that is no longer kept. */
  readonly by: { readonly actor: string; readonly reason: string | null } | undefined;
}

const changesReadMax = 1_000;
const always = { fromMs: Number.NEGATIVE_INFINITY, toMs: Number.POSITIVE_INFINITY };

/** Reads the newest runs by hand of a policy; undefined: those of sync jobs without one. */
export async function readHandRuns(
  { store, set, isNarrowed }: QueryContext,
  policy: string | undefined,
  limit: number,
): Promise<readonly HandRun[]> {
  const policies = policy === undefined ? [runByHand, deletionByHand] : [policy];
  const services = [...set.services.keys()];
  const open = await Promise.all(policies.map((name) => readTasksInFlight(store, services, (one) => one === name)));
  const question = { policies, span: always, filter: { origin: "manual" as const }, limit };
  const { outcomes } = await findOutcomes(new History(store), question);
  const ended = new Map(outcomes.map((outcome) => [outcome.taskId, outcome]));
  const changes = isNarrowed ? [] : await new Changes(store).newest(changesReadMax);
  const by = new Map(changes.flatMap((change) => taskIdsIn(change).map((id) => [id, change])));
  const ids = [
    ...open.flatMap(({ tasks }) => tasks.map(({ task }) => task.id)),
    ...outcomes.filter(({ service }) => set.services.has(service)).map(({ taskId }) => taskId),
  ];
  const runs = [...new Set(ids)].flatMap((id): HandRun[] => {
    const name = parseTaskId(id);
    if (name?.origin !== "manual") return [];
    const { policy: of, target, kind, slotMs: givenMs } = name;
    return [{ id, policy: of, target, kind, givenMs, outcome: ended.get(id), by: by.get(id) }];
  });
  return runs.toSorted((a, b) => b.givenMs - a.givenMs).slice(0, limit);
}
