// A deletion over real HTTP and a real journal: what the service does to the read of its name and
// to the DELETE, and what becomes of it.
import { describe, expect, it } from "vitest";
import type { Policy } from "../../../src/config/policy-set.ts";
import type { Denial } from "../../../src/core/limiter.ts";
import { deletionByHand, type Task } from "../../../src/model/task.ts";
import { stepDelete } from "../../../src/tasks/delete.ts";
import { defaultTiming } from "../../../src/tasks/timing.ts";
import { type Answer, reset, status } from "../../support/answering-service.ts";
import { testPolicy } from "../../support/policies.ts";
import { storeForTest } from "../../support/redis.ts";
import { steppedTask, told } from "../../support/stepped-task.ts";

const store = await storeForTest();

const named = (name: unknown, syncJobId: number | undefined = 42) => status(200, JSON.stringify({ syncJobId, name }));

/**
 * What the service does: to each read of the sync job in turn (the last for all further ones), and
 * to each DELETE.
 */
interface Behaviour {
  readonly reads: readonly Answer[];
  readonly deletes: readonly Answer[];
  readonly policy?: Partial<Policy> | undefined;
  readonly task?: Partial<Task>;
}

function fixture({ reads, deletes, policy, task }: Behaviour) {
  const known = testPolicy({ action: { kind: "delete", syncJob: 42, name: "Contracts" }, ...policy });
  return steppedTask(store, {
    ...{ task: { kind: "delete", ...task }, by: stepDelete, reads, writes: deletes },
    deps: {
      policy: () => (task?.guard === undefined ? known : undefined),
      timing: { ...defaultTiming, verifyForMs: 10_000, syncJobUnreadableForMs: 20_000 },
    },
  });
}

const deletesOf = (asked: readonly string[]) => asked.filter((method) => method === "DELETE").length;

describe("a deletion whose answer is", () => {
  it.each([
    ["true", status(200, "true"), "succeeded direct deleted"],
    ["true in an object", status(200, '{"value":true}'), "succeeded direct deleted"],
    ["false", status(200, "false"), "failed direct not-deleted"],
    ["204", status(204), "succeeded inferred deleted-no-content"],
    ["404", status(404), "succeeded direct gone-meanwhile"],
    ["400", status(400), "not-started direct refused"],
    ["401", status(401), "not-started direct no-access"],
    ["403", status(403), "not-started direct no-access"],
  ])("%s", async (_what, answer, becomes) => {
    const { asked, step } = await fixture({ reads: [named("Contracts")], deletes: [answer] });
    expect(told(await step())).toBe(becomes);
    expect(asked).toEqual(["GET", "DELETE"]);
  });
});

it("a deletion names a sync job beyond 2^53 by its digits, in reads and request", async () => {
  const job = status(200, '{"syncJobId":9007199254740993,"name":"Contracts"}');
  const denials: Denial[] = [{ deniedBy: "breaker", waitMs: 0 }];
  const { urls, through } = await steppedTask(store, {
    ...{ task: { kind: "delete", target: "9007199254740993", guard: "Contracts" }, by: stepDelete },
    ...{ reads: [job, job, status(404)], writes: [reset] },
    deps: { policy: () => undefined, denialOf: async () => denials.pop() },
  });
  expect(told(await through())).toBe("succeeded direct deletion-confirmed");
  expect(urls.map((url) => url.split("?")[0])).toEqual(Array(4).fill("/odata/syncjobs(9007199254740993)"));
});

describe("a guard", () => {
  it.each([
    ["another name", named("Contract"), "not-started direct guard-mismatch"],
    ["a blank more", named("Contracts "), "not-started direct guard-mismatch"],
    ["another case", named("contracts"), "not-started direct guard-mismatch"],
    ["no name", status(200, '{"syncJobId":42}'), "not-started direct guard-mismatch"],
    ["another sync job", named("Contracts", 43), "not-started direct guard-mismatch"],
    ["404", status(404), "skipped direct already-gone"],
    ["400", status(400), "not-started direct refused"],
    ["401", status(401), "not-started direct no-access"],
    ["500", status(500), "not-started direct server-error"],
    ["no answer", reset, "not-started direct answer-lost"],
    ["a proxy's 404", status(404, "<html>Not Found</html>"), "not-started direct bad-answer"],
    ["429", status(429, "", { "retry-after": "7" }), "snooze"],
  ])("that reads %s sends nothing", async (_what, answer, becomes) => {
    const { asked, step, task, journal } = await fixture({ reads: [answer], deletes: [status(200, "true")] });
    expect(told(await step())).toBe(becomes);
    expect(asked).toEqual(["GET"]);
    expect(await journal.entry(task.id)).toMatchObject({ state: "claimed", sends: 0 });
  });

  it("names both names, cut where long, and shows their characters", async () => {
    const detail = async (name: string) => {
      const step = await (await fixture({ reads: [named(name)], deletes: [] })).step();
      return "ending" in step ? (step.ending?.detail ?? "") : "";
    };
    expect(await detail("Other\n")).toBe(
      'the guard says "Contracts", the sync job has "Other\\n"; nothing was deleted',
    );
    expect(await detail("x".repeat(5_000))).toContain(`"${"x".repeat(100)}" and 4900 more characters`);
  });

  it("is read anew when the DELETE had to wait", async () => {
    const { asked, step } = await fixture({
      reads: [named("Contracts"), named("Renamed")],
      deletes: [status(429, "", { "retry-after": "1" })],
    });
    expect(told(await step())).toBe("snooze");
    expect(told(await step())).toBe("not-started direct guard-mismatch");
    expect(asked).toEqual(["GET", "DELETE", "GET"]);
  });

  it("comes with the task when an operator deletes by hand", async () => {
    const task = { policy: deletionByHand, guard: "Contracts" };
    const right = await fixture({ reads: [named("Contracts")], deletes: [status(200, "true")], task });
    expect(told(await right.step())).toBe("succeeded direct deleted");
    const wrong = await fixture({ reads: [named("Contract")], deletes: [], task });
    expect(told(await wrong.step())).toBe("not-started direct guard-mismatch");
  });

  it("of a policy that names another sync job meanwhile does not hold for this task", async () => {
    const policy = { action: { kind: "delete", syncJob: 43, name: "Contracts" } } as const;
    const { asked, step } = await fixture({ reads: [named("Contracts")], deletes: [], policy });
    expect(told(await step())).toBe("skipped direct policy-removed");
    expect(asked).toEqual([]);
  });
});

describe("a deletion whose answer got lost", () => {
  const there = named("Contracts");

  it.each([405, 409, 422])("and stood as status %i, which the interface does not name, is read again", async (code) => {
    const { asked, through } = await fixture({ reads: [there, status(404)], deletes: [status(code)] });
    expect(told(await through())).toBe("succeeded direct deletion-confirmed");
    expect(asked).toEqual(["GET", "DELETE", "GET"]);
  });

  it.each([
    ["gone (404)", status(404), "succeeded direct deletion-confirmed"],
    ["refused (400) where it could be read before", status(400), "succeeded inferred deletion-confirmed"],
  ])("is %s at the first look", async (_what, read, becomes) => {
    const { asked, through } = await fixture({ reads: [there, read], deletes: [reset] });
    const step = await through();
    expect(told(step)).toBe(becomes);
    expect("ending" in step && step.ending?.answerLost).toBe(true);
    expect(asked).toEqual(["GET", "DELETE", "GET"]);
  });

  it.each([
    ["still there", there, "failed direct still-there", /; it is still there 1\d s later$/],
    ["still there under another name", named("Renamed"), "failed direct still-there", /, and has "Renamed" now$/],
    ["unreadable", status(500), "unknown none answer-lost", /; whether it is there cannot be read: .* status 500/],
    ["not shown", status(200, "{}"), "unknown none answer-lost", /cannot be read: the answer shows no sync job$/],
  ])("is %s in the end", async (_what, read, becomes, tells) => {
    const { asked, through } = await fixture({ reads: [there, read], deletes: [reset] });
    const step = await through();
    expect(told(step)).toBe(becomes);
    expect("ending" in step && step.ending).toMatchObject({ answerLost: true, detail: expect.stringMatching(tells) });
    expect(deletesOf(asked)).toBe(1);
  });

  it.each([
    ["500", status(500)],
    ["an answer that makes no sense", status(200, '"yes"')],
    ["a redirect", status(302, "", { location: "/login" })],
    ["no answer in time", () => {}],
  ])("is looked into as well after %s", async (_what, answer: Answer) => {
    const { asked, through } = await fixture({ reads: [there], deletes: [answer] });
    expect(told(await through())).toBe("failed direct still-there");
    expect(deletesOf(asked)).toBe(1);
    // The guard; then after about 1, 2, 4 and 8 s, and when it could not go any more.
    expect(asked.length - 1).toBeLessThanOrEqual(7);
  });

  it("is not taken for gone where a proxy has no way to the service", async () => {
    const page = status(404, "<html>Not Found</html>", { "content-type": "text/html" });
    const host = status(400, "<html>Bad Request - Invalid Hostname</html>", { "content-type": "text/html" });
    const invalid = await fixture({ reads: [there, host, there], deletes: [reset] });
    expect(told(await invalid.through())).toBe("failed direct still-there");
    const router = status(404, "no such route", { "x-cf-routererror": "unknown_route" });
    for (const away of [page, router]) {
      const { through } = await fixture({ reads: [there, away, there], deletes: [reset] });
      expect(told(await through())).toBe("failed direct still-there");
      const refused = await fixture({ reads: [there], deletes: [away] });
      expect(told(await refused.through())).toBe("failed direct still-there");
    }
  });

  it("is looked at repeatedly before it is called not deleted: the service may be slow", async () => {
    const { asked, through } = await fixture({ reads: [there, there, there, status(404)], deletes: [reset] });
    expect(told(await through())).toBe("succeeded direct deletion-confirmed");
    expect(asked).toEqual(["GET", "DELETE", "GET", "GET", "GET"]);
  });

  it("is found after a crash between request and answer, and not sent again", async () => {
    for (const [read, becomes] of [
      [status(404), "succeeded direct deletion-confirmed"],
      [there, "failed direct still-there"],
    ] as const) {
      const { asked, sentBy, through } = await fixture({ reads: [read], deletes: [status(200, "true")] });
      await sentBy("dead");
      expect(told(await through())).toBe(becomes);
      expect(deletesOf(asked)).toBe(0);
    }
  });

  it("is resent by onUnknown: retry while it exists with the same name, thrice in all", async () => {
    const policy = { onUnknown: "retry" } as const;
    const always = await fixture({ reads: [there], deletes: [reset], policy });
    expect(told(await always.through())).toBe("failed direct still-there");
    expect(deletesOf(always.asked)).toBe(3);
    const second = await fixture({ reads: [there], deletes: [reset, status(200, "true")], policy });
    const step = await second.through();
    expect(told(step)).toBe("succeeded direct deleted");
    expect("ending" in step && step.ending).toMatchObject({ sends: 2, answerLost: true });
  });

  // The first request may be deleting it just now.
  it("is read again where a later request is answered false", async () => {
    const policy = { onUnknown: "retry" } as const;
    let isGone = false;
    const read: Answer = (response) => (isGone ? status(404) : there)(response);
    const no: Answer = (response) => {
      isGone = true;
      status(200, "false")(response);
    };
    const late = await fixture({ reads: [read], deletes: [reset, no], policy });
    expect(told(await late.through())).toBe("succeeded direct deletion-confirmed");
    expect(deletesOf(late.asked)).toBe(2);
    const never = await fixture({ reads: [there], deletes: [reset, status(200, "false")], policy });
    expect(told(await never.through())).toBe("failed direct still-there");
    expect(deletesOf(never.asked)).toBe(3);
  });

  it("is not resent by onUnknown: retry when renamed, gone or unreadable", async () => {
    for (const read of [named("Renamed"), status(404), status(500), status(200, "{}")]) {
      const policy = { onUnknown: "retry" } as const;
      const { asked, through } = await fixture({ reads: [there, read], deletes: [reset], policy });
      await through();
      expect(deletesOf(asked)).toBe(1);
    }
  });

  it("is looked at with the same patience after it was sent again", async () => {
    const reads = [status(500), there, status(500), status(404)];
    const policy = { onUnknown: "retry" } as const;
    const { sentBy, step, through, later, asked } = await fixture({ reads, deletes: [reset], policy });
    await sentBy("lost");
    later(15_000);
    expect(told(await step())).toBe("snooze");
    expect(told(await step())).toBe("snooze");
    expect(asked).toEqual(["GET", "GET", "DELETE"]);
    later(3_600_000);
    expect(told(await through())).toBe("succeeded direct deletion-confirmed");
  });

  it("is unknown once its worker is surely dead and its service is not configured", async () => {
    const { sentBy, task, deps, journal, later, asked } = await fixture({ reads: [there], deletes: [] });
    await sentBy("dead");
    const removed = { ...deps, service: () => undefined };
    const step = async () => stepDelete(task, removed, { claimant: "me", entry: await journal.claim(task.id, "me") });
    const { lastSentAtMs = 0 } = (await journal.entry(task.id)) ?? {};
    expect(await step()).toEqual({ verdict: "snooze", untilMs: lastSentAtMs + 10_000 });
    later(11_000);
    expect(told(await step())).toBe("unknown none policy-removed");
    expect(asked).toEqual([]);
  });

  // A gateway may say so after the service has deleted it.
  it.each([
    ["is gone", [status(404)], "succeeded direct deletion-confirmed", 1],
    ["is there, and is deleted when it is its turn", [there], "succeeded direct deleted", 2],
    ["is there under another name", [named("Renamed")], "not-started direct guard-mismatch", 1],
    ["cannot be read", [status(500)], "unknown none server-error", 1],
  ] as const)("stood as 503 with Retry-After, and the sync job %s", async (_what, reads, becomes, sent) => {
    const busy = status(503, "", { "retry-after": "1" });
    const { asked, through } = await fixture({ reads: [there, ...reads], deletes: [busy, status(200, "true")] });
    expect(told(await through())).toBe(becomes);
    expect(deletesOf(asked)).toBe(sent);
  });

  it("is not taken back where a later request is answered 503 with Retry-After", async () => {
    let requests = 0;
    const busy: Answer = (response) => {
      requests += 1;
      status(503, "", { "retry-after": "1" })(response);
    };
    const read: Answer = (response) => (requests < 2 ? there : status(404))(response);
    const policy = { onUnknown: "retry" } as const;
    const { sentBy, through } = await fixture({ reads: [read], deletes: [busy], policy });
    await sentBy("dead");
    const step = await through();
    expect(told(step)).toBe("succeeded direct deletion-confirmed");
    expect("ending" in step && step.ending).toMatchObject({ sends: 3 });
  });

  it("is not looked into with onUnknown: give-up", async () => {
    const { asked, through } = await fixture({ reads: [there], deletes: [reset], policy: { onUnknown: "give-up" } });
    expect(told(await through())).toBe("unknown none answer-lost");
    expect(asked).toEqual(["GET", "DELETE"]);
  });
});

describe("a sync job that a run holds", () => {
  it("is not deleted, whatever the defaults say of overlaps", async () => {
    for (const [overlap, becomes] of [
      ["skip", "skipped direct overlap"],
      ["allow", "skipped direct overlap"],
      ["queue", "snooze"],
    ] as const) {
      const { asked, deps, task, step } = await fixture({
        reads: [named("Contracts")],
        deletes: [],
        policy: { overlap },
      });
      const run = { ...task, id: "nightly__run__42__1" };
      await deps.journal.claim(run.id, "its worker");
      await deps.leases.acquire(run, "its worker");
      expect(told(await step())).toBe(becomes);
      expect(asked).toEqual([]);
    }
  });
});
