// What the checks of one service share. Made by doctor-command.ts.
import type { Policy, ServiceSettings } from "../../config/policy-set.ts";
import type { SyncService } from "../../service/client.ts";

/** What one check of a service needs. */
export interface ServiceLook {
  readonly settings: ServiceSettings;
  /** The policies of this service. */
  readonly policies: readonly Policy[];
  readonly client: SyncService;
  readonly signal: AbortSignal;
  /** Called with what is being checked. */
  readonly progress: (text: string) => void;
}
