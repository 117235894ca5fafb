import { describe, expect, it } from "vitest";
import { storyText } from "../../../src/cli/explain.ts";
import { describeDeniedBy } from "../../../src/queries/service-words.ts";
import type { TaskStory } from "../../../src/queries/task-story.ts";

function textOf(changes: Partial<TaskStory>, processes = { schedulers: 1, workers: 1 }, colours = false): string {
  const task: TaskStory = {
    taskId: "nightly__run__42__1795296877",
    name: "sync job 42",
    target: "42",
    journal: "settled",
    queue: null,
    due: "2026-11-21T08:00:00.000Z",
    queued: null,
    sent: "2026-11-21T08:00:00.100Z",
    sentAgain: null,
    answered: null,
    confirmed: null,
    finished: "2026-11-21T08:00:31.000Z",
    outcome: null,
    isInFlight: false,
    now: null,
    droppedUpTo: null,
    waitsFor: null,
    cancelled: null,
    lost: null,
    ...changes,
  };
  const slot = {
    policy: "nightly",
    origin: "schedule" as const,
    asked: null,
    isSlot: true,
    reasons: [],
    previous: null,
    next: null,
  };
  const story = {
    ...slot,
    slot: task.due,
    verdict: "started",
    deadline: null,
    record: null,
    covers: [],
    tasks: [task],
    pauses: [],
    held: null,
    owner: null,
    processes,
  };
  return storyText(story, "UTC", colours);
}

describe("what is said of a service", () => {
  const well = {
    breaker: "closed",
    openSinceMs: undefined,
    nextProbeMs: undefined,
    failures: 0,
    lastFailure: "",
  } as const;
  const nowMs = Date.parse("2026-11-21T08:00:00Z");

  it("is why its tasks wait: it counts as down, or throttles", () => {
    const calm = { ...well, throttledUntilMs: undefined, throttledSinceMs: undefined, inFlight: 0 };
    expect(describeDeniedBy("main", calm, nowMs)).toBeUndefined();
    const throttledUntilMs = nowMs + 864_000;
    expect(describeDeniedBy("main", { ...calm, throttledUntilMs }, nowMs)).toBe(
      "service main throttles until 2026-11-21 08:14:24Z, for 15m",
    );
    const again = { ...calm, throttledUntilMs, throttledSinceMs: nowMs - 900_000 };
    expect(describeDeniedBy("main", again, nowMs)).toBe(
      "service main throttles again and again since 2026-11-21 07:45:00Z, now until 2026-11-21 08:14:24Z",
    );
    const down = {
      breaker: "open",
      openSinceMs: nowMs - 60_000,
      nextProbeMs: nowMs + 9_500,
      lastFailure: "unreachable",
    } as const;
    expect(describeDeniedBy("main", { ...calm, ...down, throttledUntilMs }, nowMs)).toBe(
      "service main counts as down: breaker open since 2026-11-21 07:59:00Z (unreachable), next probe in 10s; `syncline doctor` says more",
    );
  });
});

describe("the story of a task", () => {
  const outcome = {
    status: "succeeded",
    evidence: "direct",
    reason: "completed",
    detail: "1 activity finished",
  } as const;

  it.each(["server", "answer-lost"])("says why no good answer came, without its kind: %s", (kind) => {
    const text = textOf({ lost: `${kind}: the service answered with status 504` });
    expect(text).toContain("    no good answer to its start: the service answered with status 504\n");
  });

  it("says once why no good answer came, where the outcome says it", () => {
    const said = "the service answered with status 504; no activity of it appeared within 30 s";
    const text = textOf({
      lost: "server: the service answered with status 504",
      outcome: { ...outcome, detail: said },
    });
    expect(text).toContain(said);
    expect(text).not.toContain("no good answer");
  });

  it("calls a start confirmed that an activity showed, and not answered", () => {
    const text = textOf({ lost: "answer-lost: no answer", confirmed: "2026-11-21T08:00:01.824Z" });
    expect(text).toContain("sent +100ms, confirmed +2s, finished +31s");
    expect(text).not.toContain("answered");
  });

  it("calls a start permitted, and not sent, where nothing else shows it", () => {
    const unknown = { ...outcome, status: "unknown", evidence: "none", reason: "answer-lost" } as const;
    const silent = { outcome: unknown, lost: "crash: no worker noted an answer" };
    expect(textOf(silent)).toContain(", start permitted +100ms, finished +31s");
    const twice = textOf({ ...silent, sentAgain: "2026-11-21T08:00:20.000Z" });
    expect(twice).toContain(", start permitted +100ms, permitted again +20s");
    expect(textOf({ ...silent, lost: "answer-lost: reset" })).toContain(", sent +100ms, finished");
    // The first request was cut off, and the worker of the second has said nothing.
    const again = { ...silent, lost: "answer-lost: reset", sentAgain: "2026-11-21T08:00:20.000Z" };
    expect(textOf(again)).toContain(", sent +100ms, permitted again +20s, finished");
    const answered = textOf({ ...again, answered: "2026-11-21T08:00:21.000Z" });
    expect(answered).toContain(", sent +100ms, sent again +20s, answered +21s");
    const refused = { ...outcome, status: "not-started", reason: "refused" } as const;
    expect(textOf({ outcome: refused })).toContain(", sent +100ms, finished");
    expect(textOf({ outcome: unknown, journal: "none" })).toContain(", sent +100ms, finished");
  });

  it("says which role no process has, in red on a terminal", () => {
    const told = "no worker is alive: nothing that is queued or in flight goes on until one starts";
    expect(textOf({}, { schedulers: 1, workers: 0 })).toContain(`  ${told}\n`);
    expect(textOf({}, { schedulers: 1, workers: 0 }, true)).toContain(`\u001b[31m${told}`);
    expect(textOf({}, { schedulers: 0, workers: 1 })).toContain("no scheduler is alive");
    expect(textOf({})).not.toContain("is alive");
  });

  it("says how sure it is whose the activities are, and how many requests went out", () => {
    expect(textOf({ outcome: { ...outcome, confidence: "likely", sends: 2 } })).toContain(
      "    succeeded (completed, evidence direct, confidence likely, 2 requests): 1 activity finished\n",
    );
    expect(textOf({ outcome: { ...outcome, confidence: "certain", sends: 1 } })).toContain(
      "    succeeded (completed, evidence direct, confidence certain): 1 activity finished\n",
    );
    expect(textOf({ outcome })).toContain("    succeeded (completed, evidence direct): 1 activity finished\n");
  });
});
