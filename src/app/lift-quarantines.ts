// Lifts quarantines that the policy files no longer ask for. app.ts gives it to the scheduler.
import type { Policy } from "../config/policy-set.ts";
import { systemClock } from "../core/clock.ts";
import type { Pause } from "../model/pause.ts";
import { Pauses } from "../store/pauses.ts";
import { Quarantines } from "../store/quarantines.ts";
import type { Store } from "../store/redis.ts";

/** Who lifts a quarantine that the policy file no longer asks for. */
const byFile = "its file, which has no quarantine any more";

/** Lifts quarantines of policies whose rule is gone; returns all pauses after that. */
export async function liftDroppedQuarantines(
  store: Store,
  policy: (name: string) => Policy | undefined,
): Promise<Pause[]> {
  const quarantines = new Quarantines(store);
  const [wanted, counted] = await Promise.all([new Pauses(store).all(), quarantines.all()]);
  const nowMs = systemClock.nowMs();
  const kept = counted.map(async (pause) => {
    const known = policy(pause.name);
    // An expired quarantine needs no lifting. A removed policy may come back with its rule.
    if (known === undefined || known.quarantine !== undefined || (pause.untilMs ?? 0) <= nowMs) return pause;
    return (await quarantines.release(pause.name, byFile)) ?? pause;
  });
  return [...wanted, ...(await Promise.all(kept))];
}
