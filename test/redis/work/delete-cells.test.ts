// A deletion over real HTTP and a real journal: what the service does to the read of its name and to the DELETE, and what becomes of it.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Policy } from "../../../src/config/policy-set.ts";
import { openStore, type Store } from "../../../src/store/redis.ts";
import { StartJournal } from "../../../src/store/start-journal.ts";
import { deletionByHand, type Task } from "../../../src/tasks/task.ts";
import { stepDelete } from "../../../src/work/delete.ts";
import type { WorkParts } from "../../../src/work/parts.ts";
import type { Step } from "../../../src/work/step.ts";
import { defaultTiming } from "../../../src/work/timing.ts";
import { type Answer, answeringService, reset, status } from "../../support/answering-service.ts";
import { testPolicy } from "../../support/policies.ts";
import { redisForTest } from "../../support/redis.ts";
import { testParts } from "../../support/work-parts.ts";

const target = redisForTest();
let store: Store;
let journal: StartJournal;

beforeAll(async () => {
  store = await openStore(target);
  journal = new StartJournal(store);
});
afterAll(() => store.close());

const named = (name: unknown, syncJobId: number | undefined = 42) => status(200, JSON.stringify({ syncJobId, name }));

/** What the service does: to each read of the sync job in turn (the last for all further ones), and to each DELETE. */
interface Behaviour {
  readonly reads: readonly Answer[];
  readonly deletes: readonly Answer[];
  readonly policy?: Partial<Policy> | undefined;
  readonly task?: Partial<Task>;
  readonly timing?: Partial<WorkParts["timing"]>;
}

let tasks = 0;

async function house({ reads, deletes, policy, task: changes, timing }: Behaviour) {
  const { asked, service } = await answeringService({ reads, writes: deletes });
  tasks += 1;
  const task: Task = {
    v: 1,
    id: `delete-${tasks}`,
    kind: "delete",
    policy: "retired",
    service: "main",
    repository: `R${tasks}`,
    target: "42",
    slotMs: 0,
    origin: "manual",
    covers: [],
    startByMs: 9_999_999_999_999,
    ...changes,
  };
  const known = testPolicy({ action: { kind: "delete", syncJob: 42, name: "Contracts" }, ...policy });
  const parts = testParts(store, {
    policy: () => (task.guard === undefined ? known : undefined),
    service: () => service,
    journal,
    timing: { ...defaultTiming, verifyForMs: 0, unreadableForMs: 0, ...timing },
  });
  let owner = 0;
  const step = async () => {
    owner += 1;
    return stepDelete(task, parts, { owner: `o${owner}`, entry: await journal.claim(task.id, `o${owner}`) });
  };
  /** Steps until the task ends, whatever it waits for. */
  const through = async () => {
    for (let round = 0; round < 10; round += 1) {
      const done = await step();
      if (done.step === "end") return done;
    }
    throw new Error("no end in ten steps");
  };
  return { asked, task, parts, step, through };
}

const told = (step: Step) =>
  "ending" in step ? `${step.ending.status} ${step.ending.evidence} ${step.ending.reason}` : step.step;

describe("a deletion whose answer is", () => {
  it.each([
    ["true", status(200, "true"), "succeeded direct deleted"],
    ["true in an object", status(200, '{"value":true}'), "succeeded direct deleted"],
    ["false", status(200, "false"), "failed direct not-deleted"],
    ["204", status(204), "succeeded inferred deleted-no-content"],
    ["404", status(404), "succeeded direct gone-meanwhile"],
    ["400", status(400), "not-started direct refused"],
    ["401", status(401), "not-started direct refused"],
    ["403", status(403), "not-started direct refused"],
  ])("%s", async (_what, answer, becomes) => {
    const { asked, step } = await house({ reads: [named("Contracts")], deletes: [answer] });
    expect(told(await step())).toBe(becomes);
    expect(asked).toEqual(["GET", "DELETE"]);
  });
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
    ["401", status(401), "not-started direct refused"],
    ["500", status(500), "not-started direct server-error"],
    ["no answer", reset, "not-started direct answer-lost"],
    ["429", status(429, "", { "retry-after": "7" }), "snooze"],
  ])("that reads %s sends nothing", async (_what, answer, becomes) => {
    const { asked, step, task } = await house({ reads: [answer], deletes: [status(200, "true")] });
    expect(told(await step())).toBe(becomes);
    expect(asked).toEqual(["GET"]);
    expect(await journal.entry(task.id)).toMatchObject({ state: "claimed", sends: 0 });
  });

  it("names both names, cut where they are long, and shows which characters they are made of", async () => {
    const detail = async (name: string) => {
      const step = await (await house({ reads: [named(name)], deletes: [] })).step();
      return "ending" in step ? step.ending.detail : "";
    };
    expect(await detail("Other\n")).toBe('the guard says "Contracts", the sync job has "Other\\n"; nothing was sent');
    expect(await detail("x".repeat(5_000))).toContain(`"${"x".repeat(100)}" and 4900 more characters`);
  });

  it("is read anew when the DELETE had to wait", async () => {
    const { asked, step } = await house({
      reads: [named("Contracts"), named("Renamed")],
      deletes: [status(429, "", { "retry-after": "1" })],
    });
    expect(told(await step())).toBe("snooze");
    expect(told(await step())).toBe("not-started direct guard-mismatch");
    expect(asked).toEqual(["GET", "DELETE", "GET"]);
  });

  it("comes with the task when somebody deletes by hand", async () => {
    const task = { policy: deletionByHand, guard: "Contracts" };
    const right = await house({ reads: [named("Contracts")], deletes: [status(200, "true")], task });
    expect(told(await right.step())).toBe("succeeded direct deleted");
    const wrong = await house({ reads: [named("Contract")], deletes: [], task });
    expect(told(await wrong.step())).toBe("not-started direct guard-mismatch");
  });

  it("of a policy that names another sync job meanwhile does not hold for this task", async () => {
    const policy = { action: { kind: "delete", syncJob: 43, name: "Contracts" } } as const;
    const { asked, step } = await house({ reads: [named("Contracts")], deletes: [], policy });
    expect(told(await step())).toBe("skipped direct policy-removed");
    expect(asked).toEqual([]);
  });
});

describe("a deletion whose answer got lost", () => {
  const there = named("Contracts");

  it.each([
    ["gone (404)", status(404), "succeeded direct deletion-confirmed"],
    ["refused (400) where it could be read before", status(400), "succeeded inferred deletion-confirmed"],
    ["still there", there, "failed direct still-there"],
    ["answered with another sync job", named("Contracts", 43), "unknown none answer-lost"],
    ["still there under another name", named("Renamed"), "failed direct still-there"],
    ["unreadable", status(500), "unknown none answer-lost"],
    ["unreadable, as the token is refused", status(401), "unknown none answer-lost"],
  ])("is %s", async (_what, read, becomes) => {
    const { asked, through } = await house({ reads: [there, read], deletes: [reset] });
    const step = await through();
    expect(told(step)).toBe(becomes);
    expect("ending" in step && step.ending.answerLost).toBe(true);
    expect(asked).toEqual(["GET", "DELETE", "GET"]);
  });

  it.each([
    ["500", status(500), "failed direct still-there"],
    ["an answer that makes no sense", status(200, '"yes"'), "failed direct still-there"],
    ["a redirect", status(302, "", { location: "/login" }), "failed direct still-there"],
    ["no answer in time", () => {}, "failed direct still-there"],
  ])("is looked into as well after %s", async (_what, answer: Answer, becomes) => {
    const { asked, through } = await house({ reads: [there], deletes: [answer] });
    expect(told(await through())).toBe(becomes);
    expect(asked).toEqual(["GET", "DELETE", "GET"]);
  });

  it("is looked at again and again before it is called not deleted: the service may be slow", async () => {
    const { asked, step } = await house({
      reads: [there, there, there, status(404)],
      deletes: [reset],
      timing: { verifyForMs: 60_000, unreadableForMs: 60_000 },
    });
    const steps: string[] = [];
    for (let round = 0; round < 4; round += 1) steps.push(told(await step()));
    expect(steps).toEqual(["snooze", "snooze", "snooze", "succeeded direct deletion-confirmed"]);
    expect(asked).toEqual(["GET", "DELETE", "GET", "GET", "GET"]);
  });

  it("is found by whoever comes after a crash between the request and its answer, and not sent again", async () => {
    for (const [read, becomes] of [
      [status(404), "succeeded direct deletion-confirmed"],
      [there, "failed direct still-there"],
    ] as const) {
      const { asked, task, step } = await house({ reads: [read], deletes: [status(200, "true")] });
      await journal.claim(task.id, "dead");
      expect(await journal.beginSending(task, "dead", { startByMs: task.startByMs, baseline: "" })).toBe("permitted");
      expect(told(await step())).toBe(becomes);
      expect(asked).toEqual(["GET"]);
    }
  });

  it("is sent again by onUnknown: retry while it is there with the same name, three times in all", async () => {
    const policy = { onUnknown: "retry" } as const;
    const always = await house({ reads: [there], deletes: [reset], policy });
    expect(told(await always.through())).toBe("failed direct still-there");
    expect(always.asked.filter((method) => method === "DELETE")).toHaveLength(3);
    const second = await house({ reads: [there], deletes: [reset, status(200, "true")], policy });
    const step = await second.through();
    expect(told(step)).toBe("succeeded direct deleted");
    expect("ending" in step && step.ending).toMatchObject({ sends: 2, answerLost: true });
  });

  it("is not sent again by onUnknown: retry when it has another name, is gone, or cannot be read", async () => {
    for (const read of [named("Renamed"), status(404), status(500)]) {
      const { asked, through } = await house({
        reads: [there, read],
        deletes: [reset],
        policy: { onUnknown: "retry" },
      });
      await through();
      expect(asked.filter((method) => method === "DELETE")).toHaveLength(1);
    }
  });

  it("is not looked into with onUnknown: give-up", async () => {
    const { asked, through } = await house({ reads: [there], deletes: [reset], policy: { onUnknown: "give-up" } });
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
      const { asked, parts, task, step } = await house({
        reads: [named("Contracts")],
        deletes: [],
        policy: { overlap },
      });
      const run = { ...task, id: "nightly__run__42__1" };
      await parts.journal.claim(run.id, "its worker");
      await parts.leases.acquire(run, "its worker", 60_000);
      expect(told(await step())).toBe(becomes);
      expect(asked).toEqual([]);
    }
  });
});
