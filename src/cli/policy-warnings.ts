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
export function findWarnings({ policies }: PolicySet, nowMs: number): PolicyWarning[] {
  return policies.flatMap((policy) =>
    [catchUpWarning(policy), onceWarning(policy, nowMs)]
      .filter((found) => found !== undefined)
      .map((found) => ({ ...policy.where, policy: policy.name, ...found })),
  );
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
