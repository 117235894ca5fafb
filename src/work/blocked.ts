// Does a run wait for an approval? Pure; called by settle.ts where nothing else settles the run.
// An approval alone proves nothing: it must have appeared since the start, still wait, and nothing may have happened for a while.
import type { Follow } from "../config/policy-set.ts";
import type { SeenItem } from "../store/seen-item.ts";
import type { WaitingApprovals } from "./approvals.ts";
import type { Appeared } from "./evidence.ts";
import type { Ending } from "./step.ts";

/** What is looked at. `approvals` undefined: nobody reads them for this run, or not yet. */
export interface BlockingEvidence extends Pick<Appeared, "activities" | "ours" | "attributable" | "newConflicts"> {
  readonly sentAtMs: number;
  readonly approvals: WaitingApprovals | undefined;
}

/**
 * The ending `blocked`, or undefined. Direct when approvals and activities both say which sync job they are of; then only its own
 * activities are signs of life. Otherwise any change in the activities of the repository is one, and the approval may be another's.
 */
export function judgeBlocked({ blockedAfterMs }: Follow, evidence: BlockingEvidence): Ending | undefined {
  const { approvals, activities, ours, sentAtMs, newConflicts } = evidence;
  const [first] = approvals?.waiting ?? [];
  if (blockedAfterMs === undefined || approvals === undefined || first === undefined) return undefined;
  if (ours.some(({ finished }) => finished === true) || activities.failingSinceMs !== undefined) return undefined;
  const isSure = approvals.ofSyncJob && evidence.attributable;
  const signs = isSure ? ours.map(({ seenAtMs = 0 }) => seenAtMs) : [activities.grewAtMs ?? 0];
  const sinceMs = Math.max(sentAtMs, first.seenAtMs ?? 0, ...signs);
  const seenUntilMs = Math.min(approvals.readAtMs, activities.walkStartedAtMs ?? 0);
  if (seenUntilMs - sinceMs < blockedAfterMs) return undefined;
  const whose = isSure ? "" : "; it may be of another sync job";
  return {
    status: "blocked",
    evidence: isSure ? "direct" : "inferred",
    reason: "approval-waiting",
    detail: `${tellWaiting(approvals)}, and nothing has finished since${whose}`,
    newConflicts,
  };
}

/** Which approvals wait, in words; empty when none does. */
export function tellWaiting(approvals: WaitingApprovals | undefined): string {
  const [first, ...more] = approvals?.waiting ?? [];
  if (first === undefined) return "";
  return `approval ${nameOf(first)} waits${more.length === 0 ? "" : `, and ${more.length} more`}`;
}

function nameOf({ id, label }: SeenItem): string {
  return label === undefined ? id : `${label} (${id})`;
}
