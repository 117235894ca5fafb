// An activation over real HTTP and a real journal, where the mapping says by what a sync job shows
// that it is active: what the service answers to the POST, what the sync job shows afterwards, and
// what becomes of the task.
import { describe, expect, it } from "vitest";
import type { Policy } from "../../../src/config/policy-set.ts";
import { createActivePredicate } from "../../../src/feeds/mapping.ts";
import { stepActivate } from "../../../src/tasks/activate.ts";
import { startFastPath } from "../../../src/tasks/send-start.ts";
import { defaultTiming } from "../../../src/tasks/timing.ts";
import { type Answer, reset, status } from "../../support/answering-service.ts";
import { testPolicy } from "../../support/policies.ts";
import { storeForTest } from "../../support/redis.ts";
import { steppedTask, told } from "../../support/stepped-task.ts";

const store = await storeForTest();

const shows = (state: unknown) => status(200, JSON.stringify({ syncJobId: 42, state }));

/**
 * What the service does: to each read of the sync job in turn (the last for all further ones), and
 * to each POST.
 */
interface Behaviour {
  readonly reads: readonly Answer[];
  readonly posts: readonly Answer[];
  readonly policy?: Partial<Policy>;
  readonly active?: string;
  readonly select?: readonly string[];
}

function fixture({ reads, posts, policy, active = 'item.state == "On"', select = [] }: Behaviour) {
  const known = testPolicy({ action: { kind: "activate", syncJobs: [42] }, ...policy });
  return steppedTask(store, {
    ...{ task: { kind: "activate", repository: null }, by: stepActivate, reads, writes: posts },
    deps: {
      policy: () => known,
      activePredicate: () => createActivePredicate({ active, select }),
      timing: { ...defaultTiming, verifyForMs: 10_000, syncJobUnreadableForMs: 20_000 },
    },
  });
}

const postsOf = (asked: readonly string[]) => asked.filter((method) => method === "POST").length;

describe("an activation that is looked at", () => {
  it.each([
    ["200", status(200)],
    ["no answer", reset],
    ["500", status(500)],
    ["302", status(302, "", { location: "/login" })],
    ["200 with a login page", status(200, "<html>", { "content-type": "text/html" })],
  ])("was answered with %s: active means succeeded, and one request went out", async (_what, answer) => {
    const { asked, through } = await fixture({ reads: [shows("On")], posts: [answer] });
    expect(told(await through())).toBe("succeeded direct seen-active");
    expect(postsOf(asked)).toBe(1);
  });

  it.each([
    ["200", status(200)],
    ["no answer", reset],
    ["500", status(500)],
  ])("was answered with %s: not active in time means failed, and nothing is sent again", async (_what, answer) => {
    const { asked, through } = await fixture({ reads: [shows("Off")], posts: [answer] });
    const ended = await through();
    expect(told(ended)).toBe("failed direct not-active");
    expect(ended.verdict === "complete" && ended.ending?.detail).toMatch(/; the sync job is not active 1\d s later$/);
    expect(postsOf(asked)).toBe(1);
    // After about 1, 2, 4 and 8 s, and when it could not come any more.
    expect(asked.length - 1).toBeLessThanOrEqual(6);
  });

  it("shows nothing yet while it is not active right after the request", async () => {
    const { through } = await fixture({ reads: [shows("Off"), shows("Off"), shows("On")], posts: [reset] });
    expect(told(await through())).toBe("succeeded direct seen-active");
  });

  it("is not looked at when it was refused", async () => {
    const { asked, through } = await fixture({ reads: [shows("On")], posts: [status(400)] });
    expect(told(await through())).toBe("not-started direct refused");
    expect(asked).toHaveLength(1);
  });

  it.each([
    ["200", status(200), "succeeded direct answered"],
    ["no answer", reset, "unknown none answer-lost"],
  ])("was answered with %s and cannot be read: what is known without a look", async (_what, answer, becomes) => {
    for (const unread of [status(500), status(400), reset]) {
      const { through } = await fixture({ reads: [unread], posts: [answer] });
      const ended = await through();
      expect(told(ended)).toBe(becomes);
      expect(ended.verdict === "complete" && ended.ending?.detail).toContain(
        "whether the sync job is active cannot be read: ",
      );
    }
  });

  it("says what is wrong with the mapping when its expression gives no answer", async () => {
    const { through } = await fixture({ reads: [shows("On")], posts: [reset], active: "item.enabled" });
    const ended = await through();
    expect(told(ended)).toBe("unknown none answer-lost");
    expect(ended.verdict === "complete" && ended.ending?.detail).toMatch(
      /mapping\.syncJob\.active: No such key: enabled$/,
    );
  });

  it("waits for a held-up worker's answer where the expression gives none", async () => {
    const { sentBy, step, later } = await fixture({ reads: [shows("On")], posts: [], active: "item.enabled" });
    await sentBy("dead");
    expect(told(await step())).toBe("snooze");
    later(11_000);
    expect(told(await step())).toBe("unknown none answer-lost");
  });

  it("has no patience with a service that is not configured any more", async () => {
    const { sentBy, task, deps, journal, later } = await fixture({ reads: [shows("On")], posts: [] });
    await sentBy("lost");
    const removed = { ...deps, service: () => undefined };
    const step = async () => stepActivate(task, removed, { claimant: "me", entry: await journal.claim(task.id, "me") });
    expect(told(await step())).toBe("snooze");
    later(11_000);
    expect(told(await step())).toBe("unknown none answer-lost");
  });

  it("asks for the properties that the mapping names", async () => {
    const { urls, through } = await fixture({ reads: [shows("On")], posts: [status(200)], select: ["state", "name"] });
    await through();
    expect(urls[1]).toBe("/odata/syncjobs(42)?$select=state,name");
  });

  it("does not take the short way, which ends with the answer", async () => {
    const { task, deps, asked } = await fixture({ reads: [shows("On")], posts: [status(200)] });
    expect(await startFastPath(task, deps, "me")).toBeUndefined();
    expect(asked).toEqual([]);
  });
});

describe("an activation whose answer got lost, by onUnknown", () => {
  it("retry: is sent again while it is not active, three times at most", async () => {
    const policy = { onUnknown: "retry" } as const;
    const { asked, through } = await fixture({ reads: [shows("Off")], posts: [reset], policy });
    expect(told(await through())).toBe("failed direct not-active");
    expect(postsOf(asked)).toBe(3);
  });

  it("retry: says that an answer got lost, also when the second request was answered", async () => {
    const policy = { onUnknown: "retry" } as const;
    let isActive = false;
    const activates: Answer = (response) => {
      isActive = true;
      status(200)(response);
    };
    const reads: Answer[] = [(response) => shows(isActive ? "On" : "Off")(response)];
    const { asked, through } = await fixture({ reads, posts: [reset, activates], policy });
    const ended = await through();
    expect(told(ended)).toBe("succeeded direct seen-active");
    expect(ended.verdict === "complete" && ended.ending).toMatchObject({ answerLost: true, sends: 2 });
    expect(postsOf(asked)).toBe(2);
  });

  it.each([
    ["its sync job cannot be read", status(500), undefined],
    ["the expression gives no answer", shows("On"), "item.enabled"],
  ])("retry: is sent again when %s, as without a mapping", async (_what, read, active) => {
    const policy = { onUnknown: "retry" } as const;
    const { asked, through } = await fixture({ reads: [read], posts: [reset], policy, ...(active && { active }) });
    expect(told(await through())).toBe("unknown none answer-lost");
    expect(postsOf(asked)).toBe(3);
  });

  it("retry: is not sent again when it is active", async () => {
    const policy = { onUnknown: "retry" } as const;
    const { asked, through } = await fixture({ reads: [shows("On")], posts: [reset], policy });
    expect(told(await through())).toBe("succeeded direct seen-active");
    expect(postsOf(asked)).toBe(1);
  });

  it("retry: is not sent again when it was answered, although it is not active", async () => {
    const policy = { onUnknown: "retry" } as const;
    const { asked, through } = await fixture({ reads: [shows("Off")], posts: [status(200)], policy });
    expect(told(await through())).toBe("failed direct not-active");
    expect(postsOf(asked)).toBe(1);
  });

  it("give-up: is not looked at", async () => {
    const policy = { onUnknown: "give-up" } as const;
    const { asked, through } = await fixture({ reads: [shows("On")], posts: [reset], policy });
    expect(told(await through())).toBe("unknown none answer-lost");
    expect(asked).toHaveLength(1);
  });
});
