// What the rest of Syncline knows of the policy files: checked, complete, defaults filled in. Made by load-policies.ts.

/** The lists a policy can poll and a mapping can explain. Source: service-interface §4.1 */
export type ListName = "activities" | "conflictDetails" | "approvals" | "triggers" | "authActivities" | "masks";

/** The meaning of an unknown item of a list: CEL texts over `item`. */
export interface ItemMapping {
  readonly id?: string | undefined;
  readonly syncJobId?: string | undefined;
  readonly startedAt?: string | undefined;
  readonly finished?: string | undefined;
  readonly succeeded?: string | undefined;
  readonly label?: string | undefined;
}

/** One deployment of the Synchronization Management Service. */
export interface ServiceSettings {
  readonly name: string;
  readonly baseUrl: string;
  readonly token:
    | { readonly kind: "file"; readonly path: string }
    | { readonly kind: "env"; readonly variable: string };
  readonly pathForm: "parentheses" | "segment";
  readonly concurrency: number;
  readonly requestTimeoutMs: number;
  readonly mapping: ReadonlyMap<ListName, ItemMapping>;
}

/** What a policy does. */
export type Action =
  | { readonly kind: "run"; readonly syncJobs: readonly number[] }
  | {
      readonly kind: "run";
      readonly fromMasks: { readonly type?: string | undefined; readonly name?: string | undefined };
    }
  | { readonly kind: "activate"; readonly syncJobs: readonly number[] }
  | { readonly kind: "poll"; readonly list: ListName; readonly expect: string | undefined };

/** When a policy is due. */
export type Schedule =
  | {
      readonly kind: "cron";
      readonly expressions: readonly string[];
      readonly timezone: string;
      readonly dst: { readonly gap: "next" | "skip"; readonly overlap: "first" | "second" | "both" };
      readonly spreadMs: number;
    }
  | { readonly kind: "every"; readonly everyMs: number; readonly spreadMs: number };

/** One policy: what to do, when, and how to judge it. */
export interface Policy {
  readonly name: string;
  readonly service: string;
  readonly repository: string | undefined;
  readonly action: Action;
  readonly schedule: Schedule | undefined;
  readonly catchUp: "latest" | "none" | "all";
  readonly catchUpWindowMs: number;
  readonly overlap: "skip" | "queue" | "allow";
  readonly follow: {
    readonly until: "accepted" | "settled" | "quiet";
    readonly deadlineMs: number;
    readonly conflictsMax: number | undefined;
  };
  readonly onUnknown: "verify" | "retry" | "give-up";
  readonly where: { readonly file: string; readonly line: number };
}

/** All services and policies of a configuration. */
export interface PolicySet {
  readonly services: ReadonlyMap<string, ServiceSettings>;
  readonly policies: readonly Policy[];
  readonly contentHash: string;
  readonly files: readonly string[];
}
