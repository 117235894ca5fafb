// What config asks of other parts without importing them: whether cron and CEL texts are right.
// Passed to loadPolicies by the command line and app.ts.

import type { ItemMapping } from "./policy-set.ts";

/** Each says what is wrong with a text, in one sentence, or undefined when it is right. */
export interface PolicyChecks {
  /** A cron expression of 5 or 6 fields in a time zone that exists. */
  readonly cron: (expression: string, timezone: string) => string | undefined;
  /** A CEL expression over one item of a list (`item`), or over a whole list (`count`, `items`, …). */
  readonly expression: (cel: string, scope: "item" | "list") => string | undefined;
  /** An expression of a mapping on one item of a sample: whether it gives what that fact must be. */
  readonly onItem: (fact: keyof ItemMapping, cel: string, item: unknown) => string | undefined;
}
