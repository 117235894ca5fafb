// What the looks of `syncline doctor` at one service share. Made by doctor.ts.
import type { Policy, ServiceSettings } from "../../config/policy-set.ts";
import type { SyncService } from "../../service/client.ts";

/** What one look at a service needs. */
export interface ServiceLook {
  readonly settings: ServiceSettings;
  /** The policies of this service. */
  readonly policies: readonly Policy[];
  readonly client: SyncService;
  readonly signal: AbortSignal;
  /** Told what is being looked at. */
  readonly progress: (text: string) => void;
}
