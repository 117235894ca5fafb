// Which policies the processes run, and which newer files they reject: is a new file in force on
// all of them? Called by status.ts for `syncline status` and `doctor`.
import { showInstant } from "../core/instant.ts";
import { counted } from "../core/plain-text.ts";
import { type KeptNote, type Replica, readKeptNote, readReplicas } from "../store/kept-policies.ts";
import type { Store } from "../store/redis.ts";

/** Which policies the processes run: is a new file in force on all of them? */
export interface RunningConfig {
  readonly kept: KeptNote | undefined;
  readonly replicas: readonly Replica[];
  /** True when processes have run different policies for longer than a change takes. */
  readonly differs: boolean;
  /** The newer files that are not in force, each with the processes that rejected it. */
  readonly rejected: readonly RejectedFile[];
}

/** A problem of a newer file. `by`: how many processes rejected it. */
export interface RejectedFile extends NonNullable<Replica["rejected"]> {
  readonly by: number;
}

/** A ConfigMap reaches a pod within about two minutes. */
const changeTakesMs = 300_000;

/** Reads what the processes run. */
export async function readRunningConfig(store: Store, nowMs: number): Promise<RunningConfig> {
  const [kept, replicas] = await Promise.all([readKeptNote(store), readReplicas(store)]);
  const newestMs = Math.max(0, ...replicas.map(({ sinceMs }) => sinceMs));
  const isSplit = new Set(replicas.map(({ hash }) => hash)).size > 1;
  const problems = replicas.flatMap(({ rejected }) => rejected ?? []);
  const groups = [...Map.groupBy(problems, ({ where, message }) => JSON.stringify([where, message])).values()];
  const rejected = groups.flatMap((group) => {
    const [first] = group.toSorted((a, b) => a.sinceMs - b.sinceMs);
    return first === undefined ? [] : [{ ...first, by: group.length }];
  });
  return { kept, replicas, differs: isSplit && nowMs - newestMs > changeTakesMs, rejected };
}

/** The newer files that are not in force, and why. */
export function describeRejected(
  { where, message, problems, sinceMs, by }: RejectedFile,
  { replicas }: Pick<RunningConfig, "replicas">,
): string {
  const more = problems > 1 ? ` (and ${counted(problems - 1, "more problem")})` : "";
  return `newer files are rejected since ${showInstant(sinceMs)} by ${by} of ${counted(replicas.length, "process", "processes")}: ${where}: ${message}${more}; the policies before stay in force`;
}
