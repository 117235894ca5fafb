// What the exchanges of one sandbox share: state, ledger, faults. Made by sandbox.ts.
import type { World } from "./call.ts";
import type { FaultPlan } from "./fault-plan.ts";
import type { Ledger } from "./ledger.ts";

/** What exchanges work with; one for each sandbox. */
export interface Desk {
  readonly world: World;
  readonly ledger: Ledger;
  /** Replaced when faults are set anew. */
  faults: FaultPlan;
  /** Aborts when the sandbox stops: ends waits. */
  readonly signal: AbortSignal;
  /** Origin of this sandbox, for a request without a usable Host header. */
  origin: string;
}
