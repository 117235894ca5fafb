import { describe, expect, it } from "vitest";
import type { Task } from "../../../src/model/task.ts";
import { ServiceError } from "../../../src/service/service-error.ts";
import { deferAfter, snoozeOrMiss } from "../../../src/tasks/defer.ts";

const task: Task = {
  v: 1,
  id: "nightly__run__42__1795228200",
  kind: "run",
  policy: "nightly",
  service: "main",
  repository: null,
  target: "42",
  slotMs: 0,
  origin: "schedule",
  covers: [],
  startByMs: 100_000,
};

const throttled = (fields: Partial<ConstructorParameters<typeof ServiceError>[0]>) =>
  new ServiceError({
    kind: "throttled",
    operation: "RunSyncJob",
    method: "POST",
    path: "/",
    sent: "no",
    problem: "wait",
    ...fields,
  });

describe("a task whose request is denied", () => {
  it("sleeps until then, to the last moment that its start-by time allows", () => {
    const patience = { nowMs: 10_000, waitMs: 90_000, isSure: true, why: "x" };
    expect(snoozeOrMiss(task, patience)).toEqual({ verdict: "snooze", untilMs: 100_000 });
    expect(snoozeOrMiss(task, { ...patience, waitMs: 90_001 })).toMatchObject({
      verdict: "complete",
      ending: { status: "missed", reason: "throttled", detail: "its start-by time passes while it waits: x" },
    });
  });

  it("asks once more just before its start-by time when a place may be free earlier", () => {
    const patience = { nowMs: 10_000, waitMs: 90_001, isSure: false, why: "x" };
    expect(snoozeOrMiss(task, patience)).toEqual({ verdict: "snooze", untilMs: 99_500 });
    expect(snoozeOrMiss(task, { ...patience, nowMs: 99_500 })).toMatchObject({ ending: { status: "missed" } });
  });

  it("believes the service's own word, and takes that of a limit for a guess", () => {
    const long = { retryAfterMs: 200_000 };
    expect(deferAfter(task, throttled({ ...long, status: 429, sent: "maybe" }), { nowMs: 0 })).toMatchObject({
      ending: { status: "missed" },
    });
    expect(deferAfter(task, throttled({ ...long, deniedBy: "throttle" }), { nowMs: 0 })).toMatchObject({
      ending: { status: "missed" },
    });
    expect(deferAfter(task, throttled({ ...long, deniedBy: "rate" }), { nowMs: 0 })).toEqual({
      verdict: "snooze",
      untilMs: 99_500,
    });
    expect(deferAfter(task, throttled({}), { nowMs: 0 })).toEqual({ verdict: "snooze", untilMs: 5_000 });
  });
});
