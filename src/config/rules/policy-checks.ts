// Checks that config gets from other parts without importing them: cron and CEL expressions. The
// commands and app.ts pass them to loadPolicies.

import type { ItemMapping } from "../policy-set.ts";

/** Each returns what is wrong with a text, in one sentence, or undefined. */
export interface PolicyChecks {
  /** Checks a cron expression of 5 or 6 fields, in a time zone that exists. */
  readonly cron: (expression: string, timezone: string) => string | undefined;
  /**
   * Checks a CEL expression over one item of a list (`item`), or over a whole list (`count`,
   * `items`, …).
   */
  readonly expression: (cel: string, scope: "item" | "list") => string | undefined;
  /** Evaluates a mapping's expression on one item of a sample: is the result of the right kind? */
  readonly onItem: (fact: keyof ItemMapping, cel: string, item: unknown) => string | undefined;
}
