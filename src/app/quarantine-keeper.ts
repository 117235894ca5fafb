// The pauses and quarantines as a scheduler reads them. A policy whose file has no quarantine any more is let go of first: whoever took
// the rule out wants it to run. Built by app.ts; what a pause means is decided by schedule/.
import type { Policy } from "../config/policy-set.ts";
import { systemClock } from "../core/clock.ts";
import type { Pauses } from "../store/pauses.ts";
import type { Quarantines } from "../store/quarantines.ts";
import type { Pause } from "../tasks/pause.ts";

/** What the reading needs. `policy`: as it is now, undefined where there is none of this name. */
export interface QuarantineKeeperParts {
  readonly pauses: Pick<Pauses, "all">;
  readonly quarantines: Pick<Quarantines, "all" | "release">;
  readonly policy: (name: string) => Policy | undefined;
}

/** Who ends a quarantine that the file no longer has. */
const byFile = "its file, which has no quarantine any more";

/** Reads every pause and quarantine, after it has ended those that their policy's file has no rule for. */
export async function readKeptPauses({ pauses, quarantines, policy }: QuarantineKeeperParts): Promise<Pause[]> {
  const [wanted, counted] = await Promise.all([pauses.all(), quarantines.all()]);
  const nowMs = systemClock.nowMs();
  const kept = counted.map(async (pause) => {
    const known = policy(pause.name);
    // One that is over needs no end; a policy that is gone may come back with its rule.
    if (known === undefined || known.quarantine !== undefined || (pause.untilMs ?? 0) <= nowMs) return pause;
    return (await quarantines.release(pause.name, byFile)) ?? pause;
  });
  return [...wanted, ...(await Promise.all(kept))];
}
