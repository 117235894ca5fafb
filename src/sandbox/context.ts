// What the exchanges of one sandbox share: state, ledger, faults. Made by sandbox.ts.
import type { World } from "./call.ts";
import type { FaultPlan } from "./fault-plan.ts";
import type { Ledger } from "./ledger.ts";

/** The state that all exchanges of one sandbox share. */
export interface SandboxContext {
  readonly world: World;
  readonly ledger: Ledger;
  /** Replaced when faults are set anew. */
  faults: FaultPlan;
  /** Aborts when the sandbox stops, and ends all waits. */
  readonly signal: AbortSignal;
  /** Origin of this sandbox, for a request without a usable Host header. */
  origin: string;
}
