// Outcomes for tests, complete and plain; a test changes what it is about.
import type { Outcome } from "../../src/model/outcome.ts";

/** A run of sync job 42 that succeeded. */
export function testOutcome(changes: Partial<Outcome> = {}): Outcome {
  return {
    v: 1,
    taskId: "nightly__run__42__1795228200",
    policy: "nightly",
    service: "main",
    repository: "HR",
    kind: "run",
    target: "42",
    origin: "schedule",
    slot: "2026-11-21T02:30:00.000Z",
    covers: 0,
    status: "succeeded",
    evidence: "direct",
    reason: "completed",
    detail: "1 activity finished",
    startedAt: "2026-11-21T02:30:01.000Z",
    finishedAt: "2026-11-21T02:31:00.000Z",
    durationMs: 59_000,
    attempts: 1,
    answerLost: false,
    newConflicts: 0,
    count: null,
    ...changes,
  };
}
