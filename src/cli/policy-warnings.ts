// What policy files may say and surely do not mean: warnings of `syncline validate`. Pure; stops nothing and changes no exit code.
import type { Policy, PolicySet } from "../config/policy-set.ts";
import { formatDuration } from "../core/duration.ts";
import { createSlotSource } from "../schedule/slots.ts";

/** A warning about one policy. `line`: where that begins, 1-based. */
export interface PolicyWarning {
  readonly file: string;
  readonly line: number;
  readonly policy: string;
  readonly message: string;
  readonly hint: string;
}

type Said = Pick<PolicyWarning, "message" | "hint">;

/** A fixed "now", so that the same file is warned of on every day, and how many slots from then on are looked at. */
const judgedFromMs = Date.UTC(2026, 0, 1);
const slotsLookedAtMax = 400;

/** Every warning, in the order of the policies. `nowMs` (UTC): to tell which times of `once` are over. */
export function findWarnings({ policies, services }: PolicySet, nowMs: number): PolicyWarning[] {
  const quiet = Map.groupBy(
    policies.filter((policy) => needsQuiet(policy, services)),
    ({ service, follow }) => `${service} ${follow.quietForMs}`,
  );
  const quietWarnings = new Map([...quiet.values()].map((alike) => [alike[0], quietWarning(alike)]));
  return policies.flatMap((policy) =>
    [catchUpWarning(policy), onceWarning(policy, nowMs), quietWarnings.get(policy)].flatMap((found) =>
      found === undefined ? [] : [{ ...policy.where, policy: policy.name, ...found }],
    ),
  );
}

/** Whether only a list that grows quiet settles the runs of a policy that wants more. */
function needsQuiet({ action, follow, service }: Policy, services: PolicySet["services"]): boolean {
  if (action.kind !== "run" || follow.until !== "settled") return false;
  const activity = services.get(service)?.mapping.get("activities");
  return activity?.syncJobId === undefined || activity.finished === undefined;
}

/** Said once for all policies of a service with this quiet time. */
function quietWarning([policy, ...more]: readonly Policy[]): Pick<PolicyWarning, "message" | "hint"> | undefined {
  if (policy === undefined) return undefined;
  const whose = more.length === 0 ? "" : ` (and those of ${more.length} more)`;
  const quietFor = formatDuration(policy.follow.quietForMs);
  return {
    message: `its runs${whose} settle only when the activities grew and then stayed quiet for ${quietFor}, since services.${policy.service}.mapping.activity does not say syncJobId and finished`,
    hint: "let `syncline discover` propose a mapping, or set follow.quietFor to more than the pauses of a run at work",
  };
}

/** What began before a policy was there is not made up for: its mark begins at its first sight. */
function onceWarning(policy: Policy, nowMs: number): Said | undefined {
  const { schedule } = policy;
  if (schedule?.kind !== "once") return undefined;
  const slotMs = createSlotSource(policy)?.next(Number.MIN_SAFE_INTEGER);
  const { at, timezone } = schedule;
  if (slotMs === undefined)
    return {
      message: `schedule.once is never due: clocks in ${timezone} leave ${at} out, and dst.gap is skip`,
      hint: "name a time that the clocks show, or set dst.gap: next",
    };
  if (slotMs > nowMs) return undefined;
  return {
    message: `schedule.once is over: ${at} in ${timezone} was ${new Date(slotMs).toISOString()}; a policy that is new now never starts by it`,
    hint: "name a later time, or start it by hand with `syncline run`; a policy that has done its work can be removed",
  };
}

function catchUpWarning(policy: Policy): Said | undefined {
  const { catchUp, catchUpWindowMs, overlap, action, schedule } = policy;
  if (catchUp !== "all" || schedule === undefined || schedule.kind === "once") return undefined;
  if (!hasRoomForTwo(policy))
    return {
      message: `catchUp: all starts the newest late slot only, since no two lie inside its catchUpWindow of ${formatDuration(catchUpWindowMs)}`,
      hint: "set catchUpWindow to the longest outage that is to be made up for, or leave catchUp out",
    };
  if (overlap !== "skip" || action.kind !== "run") return undefined;
  return {
    message: "catchUp: all starts late slots at the same time, and overlap: skip then skips all but one of them",
    hint: "set overlap: queue to run them one after another, or leave catchUp out to run one for all",
  };
}

/** Whether two slots can be late and inside the catch-up window at the same time. */
function hasRoomForTwo(policy: Policy): boolean {
  const source = createSlotSource(policy);
  let slotMs = source?.next(judgedFromMs);
  for (let looked = 0; looked < slotsLookedAtMax && slotMs !== undefined; looked += 1) {
    const nextMs = source?.next(slotMs);
    // Right when the newer one comes due both are inside if the window is longer than their distance; at equal it is luck.
    if (nextMs !== undefined && nextMs - slotMs < policy.catchUpWindowMs) return true;
    slotMs = nextMs;
  }
  return false;
}
