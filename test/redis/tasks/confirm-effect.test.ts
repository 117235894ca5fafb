// What activations and deletions have in common when no good answer came: their sync job is read
// until it shows what became of them, with patience where nobody could look. Over real HTTP and a
// real journal.
import { describe, expect, it } from "vitest";
import type { DeniedBy } from "../../../src/core/limiter.ts";
import { createActivePredicate } from "../../../src/feeds/mapping.ts";
import { stepActivate } from "../../../src/tasks/activate.ts";
import { stepDelete } from "../../../src/tasks/delete.ts";
import type { ProcessDependencies } from "../../../src/tasks/process-task.ts";
import { defaultTiming } from "../../../src/tasks/timing.ts";
import { type Answer, reset, status } from "../../support/answering-service.ts";
import { testPolicy } from "../../support/policies.ts";
import { storeForTest } from "../../support/redis.ts";
import { steppedTask, told } from "../../support/stepped-task.ts";

const store = await storeForTest();

const shows = (more: object, syncJobId = 42) => status(200, JSON.stringify({ syncJobId, ...more }));
const failed = status(500);

/**
 * The two kinds: their deps, what the sync job shows when the request took effect and when it did
 * not, and how the task ends then.
 */
const kinds = {
  activation: {
    task: { kind: "activate" },
    by: stepActivate,
    policy: { action: { kind: "activate", syncJobs: [42] } },
    deps: { activePredicate: () => createActivePredicate({ active: 'item.state == "On"', select: [] }) },
    effect: shows({ state: "On" }),
    none: shows({ state: "Off" }),
    took: "succeeded direct seen-active",
    didNot: "failed direct not-active",
  },
  deletion: {
    task: { kind: "delete" },
    by: stepDelete,
    policy: { action: { kind: "delete", syncJob: 42, name: "Contracts" } },
    deps: {},
    effect: status(404),
    none: shows({ name: "Contracts" }),
    took: "succeeded direct deletion-confirmed",
    didNot: "failed direct still-there",
  },
} as const;

interface Behaviour {
  readonly reads: readonly Answer[];
  readonly denied?: { readonly by: DeniedBy; readonly forMs: number };
  readonly timing?: Partial<ProcessDependencies["timing"]>;
  readonly onUnknown?: "retry" | "give-up";
}

describe.each(["activation", "deletion"] as const)("an %s without a good answer", (kind) => {
  const { effect, none, took, didNot, policy, ...rest } = kinds[kind];

  const fixture = ({ reads, denied, timing, onUnknown = "verify" as never }: Behaviour) =>
    steppedTask(store, {
      ...{ ...rest, reads, writes: [reset], denied },
      deps: {
        policy: () => testPolicy({ ...policy, onUnknown }),
        ...rest.deps,
        timing: { ...defaultTiming, verifyForMs: 10_000, syncJobUnreadableForMs: 20_000, ...timing },
      },
    });

  it.each(["rate", "concurrency", "throttle"] as const)(
    "is looked at after 12 min in which limits deny the look (%s)",
    async (by) => {
      const { sentBy, through, asked } = await fixture({ reads: [none], denied: { by, forMs: 720_000 } });
      await sentBy("lost");
      expect(told(await through())).toBe(didNot);
      expect(asked).toEqual(["GET"]);
    },
  );

  it.each(["rate", "throttle"] as const)("does not wait for ever until limits permit the look (%s)", async (by) => {
    const timing = { deniedForMsMax: 600_000 };
    const { sentBy, through, asked } = await fixture({ reads: [none], denied: { by, forMs: 7_200_000 }, timing });
    await sentBy("lost");
    expect(told(await through())).toBe("unknown none answer-lost");
    expect(asked).toEqual([]);
  });

  it("is not given up when its worker stops during a look, however long it was tried", async () => {
    const { sentBy, step, later, service } = await fixture({ reads: [failed, () => service.close()] });
    await sentBy("lost");
    later(15_000);
    expect(await step()).toMatchObject({ verdict: "snooze" });
    later(3_600_000);
    expect(await step()).toMatchObject({ verdict: "snooze" });
  });

  it.each(["dead", "lost"] as const)("is looked at with patience also an hour later (%s)", async (end) => {
    const { sentBy, step, through, later } = await fixture({ reads: [failed, failed, effect] });
    await sentBy(end);
    later(3_600_000);
    expect(await step()).toMatchObject({ verdict: "snooze" });
    expect(told(await through())).toBe(took);
  });

  it("is looked at with all that patience also when a look soon after it had failed", async () => {
    const { sentBy, step, through, later } = await fixture({ reads: [failed, failed, effect] });
    await sentBy("lost");
    expect(told(await step())).toBe("snooze");
    later(3_600_000);
    expect(told(await step())).toBe("snooze");
    expect(told(await through())).toBe(took);
  });

  it("is looked at for the last time when its request can be under way no more", async () => {
    const { sentBy, step, later, journal, task, service } = await fixture({
      reads: [none],
      timing: { verifyForMs: 0 },
    });
    await sentBy("lost");
    const { lastSentAtMs = 0 } = (await journal.entry(task.id)) ?? {};
    later(4_000);
    const untilMs = lastSentAtMs + 5_000 + service.requestTimeoutMs;
    expect(service.requestTimeoutMs).toBeGreaterThan(0);
    expect(await step()).toEqual({ verdict: "snooze", untilMs });
  });

  it("waits as long where the service asks for patience only hours later", async () => {
    const { sentBy, through, later } = await fixture({ reads: [effect], denied: { by: "throttle", forMs: 720_000 } });
    await sentBy("dead");
    later(3 * 3_600_000);
    expect(told(await through())).toBe(took);
  });

  it("shows nothing yet while the request may leave late, and be under way", async () => {
    const { sentBy, step, later } = await fixture({ reads: [none], timing: { verifyForMs: 0 } });
    await sentBy("lost");
    later(4_000);
    expect(told(await step())).toBe("snooze");
    later(3_000);
    expect(told(await step())).toBe(didNot);
  });

  it("is not judged by a look that began too early, whenever it was answered", async () => {
    const slow: Answer = (response) => {
      later(60_000);
      none(response);
    };
    const { sentBy, step, later } = await fixture({ reads: [slow, effect] });
    await sentBy("lost");
    expect(told(await step())).toBe("snooze");
    expect(told(await step())).toBe(took);
  });

  it.each([
    ["401", status(401)],
    ["403", status(403)],
    ["a login page", status(200, "<html>", { "content-type": "text/html" })],
    ["another sync job", shows({ name: "Contracts", state: "On" }, 1)],
  ])("cannot be told by %s: it is looked at again, and is unknown in the end", async (_what, answer) => {
    const mended = await fixture({ reads: [answer, answer, effect] });
    await mended.sentBy("lost");
    expect(told(await mended.through())).toBe(took);
    const lasting = await fixture({ reads: [answer] });
    await lasting.sentBy("lost");
    expect(told(await lasting.through())).toBe("unknown none answer-lost");
  });

  it("is looked at when the breaker closes in time, and is unknown when it does not", async () => {
    const short = await fixture({ reads: [effect], denied: { by: "breaker", forMs: 15_000 } });
    await short.sentBy("lost");
    expect(told(await short.through())).toBe(took);
    const long = await fixture({ reads: [effect], denied: { by: "breaker", forMs: 60_000 } });
    await long.sentBy("lost");
    expect(told(await long.through())).toBe("unknown none answer-lost");
    expect(long.asked).toEqual([]);
  });

  it("is waited for by onUnknown: give-up while its worker may be held up", async () => {
    const { sentBy, step, later, asked } = await fixture({ reads: [effect], onUnknown: "give-up" });
    await sentBy("dead");
    expect(told(await step())).toBe("snooze");
    later(11_000);
    expect(told(await step())).toBe("unknown none answer-lost");
    expect(asked).toEqual([]);
  });
});
