// Formats a busy minute for `simulate` and `plan --peaks`.

import { showInstant } from "../core/instant.ts";
import type { BusyMinute } from "../simulate/load-meter.ts";

/** A busy minute in three cells: the number of starts, the minute, and the policies. */
export function showMinute({ fromMs, starts, policies, policiesCount }: BusyMinute): [string, string, string] {
  const named = policies.map((one) => (one.starts === 1 ? one.policy : `${one.policy} (${one.starts})`));
  const more = policiesCount > policies.length ? [`${policiesCount - policies.length} more`] : [];
  return [String(starts), showInstant(fromMs).replace(":00Z", "Z"), [...named, ...more].join(", ")];
}

/** A busy minute for machines. */
export function minuteToJson({ fromMs, ...minute }: BusyMinute): object {
  return { from: new Date(fromMs).toISOString(), ...minute };
}
