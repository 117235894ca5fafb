// Policies for tests, complete and plain; a test changes what it is about.
import { type Follow, type Policy, scheduleOf } from "../../src/config/policy-set.ts";

/** The waits of a policy file's defaults, but for approvals, which nobody reads. */
export const followWaits: Pick<Follow, "quietForMs" | "unreadableForMs" | "blockedAfterMs"> = {
  quietForMs: 30_000,
  unreadableForMs: 300_000,
  blockedAfterMs: undefined,
};

/** A run policy over sync job 42, every five seconds, with the defaults of a policy file. */
export function testPolicy(changes: Partial<Policy> = {}): Policy {
  const { schedule, after } = changes;
  const zoned = scheduleOf({ schedule, ...(after && { after }) });
  return {
    name: "nightly",
    service: "main",
    repository: "HR",
    action: { kind: "run", syncJobs: [42] },
    schedule: { kind: "every", everyMs: 5_000, spreadMs: 0 },
    timezone: zoned === undefined || zoned.kind === "every" ? "UTC" : zoned.timezone,
    closed: { blackouts: [], holidays: [] },
    catchUp: "latest",
    catchUpWindowMs: 5_000,
    overlap: "skip",
    follow: { ...followWaits, until: "settled", deadlineMs: 60_000, conflictsMax: undefined },
    onUnknown: "verify",
    where: { file: "test.yaml", line: 1 },
    ...changes,
  };
}
