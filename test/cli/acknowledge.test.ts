// `syncline acknowledge`: a person knows of a trouble, until it is over or gets worse.
import { describe, expect, it } from "vitest";
import type { Outcome } from "../../src/model/outcome.ts";
import { Changes } from "../../src/store/changes.ts";
import { History } from "../../src/store/history.ts";
import { acknowledgePolicy, readPolicyStates } from "../../src/store/policy-states.ts";
import { redisTimeMs } from "../../src/store/redis.ts";
import { SlotLedger } from "../../src/store/slot-ledger.ts";
import { runHere } from "../support/commands-here.ts";
import { keepSet, liveProcess } from "../support/kept-set.ts";
import { testOutcome } from "../support/outcomes.ts";
import { testPolicy } from "../support/policies.ts";
import { redisForTest, storeForTest } from "../support/redis.ts";

const redis = redisForTest();
const failed = { status: "failed", reason: "run-failed" } as const;
const conflicts = { status: "conflicts", reason: "new-conflicts", newConflicts: 2 } as const;
const expectation = { kind: "successBy", at: "06:00", on: "*" } as const;
const hourly = { kind: "every", everyMs: 3_600_000, spreadMs: 0 } as const;
const contracts = testPolicy({
  name: "contracts",
  action: { kind: "run", syncJobs: [42, 7] },
  expect: expectation,
});

/** A Syncline whose runs end as a test says, each a second after the one before. */
async function installation(name: string) {
  const prefix = `${redis.prefix}-${name}`;
  const store = await storeForTest({ url: redis.url, prefix });
  await keepSet(store, [testPolicy({ name: "masks" }), contracts]);
  await liveProcess(store);
  let atMs = (await redisTimeMs(store)) - 60_000;
  return {
    store,
    async ends(policy: string, target: string, end: Partial<Outcome> = {}) {
      atMs += 1_000;
      const at = new Date(atMs).toISOString();
      const named = { taskId: `${policy}__run__${target}__${atMs}`, policy, target, slot: at, finishedAt: at };
      await new History(store).record(testOutcome({ ...named, ...end }));
    },
    command: (...args: string[]) => runHere([...args, "--prefix", prefix, "--redis-url", redis.url], {}),
    async acknowledge() {
      const { code, err } = await this.command("acknowledge", "contracts", "--reason", "ticket 7");
      expect([code, err]).toEqual([0, ""]);
    },
    /** The policies in their order, with the note of an acknowledgement. */
    async order() {
      const { policies } = JSON.parse((await this.command("status", "--json")).out);
      return policies.map((line: { policy: string; acknowledged: { note: string } | null }) =>
        line.acknowledged === null ? line.policy : `${line.policy}: ${line.acknowledged.note}`,
      );
    },
  };
}

describe("syncline acknowledge", () => {
  it("puts a policy below what is new, says who knows, and can be taken back", async () => {
    const one = await installation("order");
    await one.ends("contracts", "42", failed);
    await one.ends("masks", "42", conflicts);
    expect(await one.order()).toEqual(["contracts", "masks"]);
    const made = await one.command("acknowledge", "contracts", "--reason", "ticket 7");
    expect(made).toMatchObject({ code: 0, out: "policy contracts (failing) acknowledged: ticket 7" });
    const status = await one.command("status");
    expect(status.code).toBe(1);
    expect(status.out).toMatch(
      /conflicts +masks[\s\S]*failing +contracts .*acknowledged by .+@.+: ticket 7, since [\d:]+ UTC/,
    );
    const ended = await one.command("acknowledge", "contracts", "--end");
    expect(ended.out).toBe("policy contracts is not acknowledged any more");
    expect(await one.order()).toEqual(["contracts", "masks"]);
    const changes = await new Changes(one.store).newest(5);
    expect(changes.map(({ what, subject, reason }) => [what, subject, reason])).toEqual([
      ["acknowledge --end", "policy contracts", null],
      ["acknowledge", "policy contracts", "ticket 7"],
    ]);
  });

  it("ends when the last sync job that was bad ends well, and not before", async () => {
    const one = await installation("recovery");
    await one.ends("contracts", "42", failed);
    await one.ends("contracts", "7", { ...failed, status: "timed-out", reason: "deadline" });
    await one.acknowledge();
    await one.ends("contracts", "42", { status: "skipped", reason: "overlap" });
    await one.ends("contracts", "42");
    await one.ends("contracts", "7", failed);
    expect(await one.order()).toEqual(["contracts: ticket 7", "masks"]);
    await one.ends("contracts", "7");
    await one.ends("contracts", "7", failed);
    expect(await one.order()).toEqual(["contracts", "masks"]);
  });

  it.each([
    ["another sync job fails", "7", failed],
    ["the sync job fares worse", "42", failed],
    ["it is not known what became of a start", "42", { status: "unknown", reason: "answer-lost" }],
  ] as const)("ends when %s", async (name, target, end) => {
    const one = await installation(name.replaceAll(" ", "-"));
    await one.ends("contracts", "42", conflicts);
    await one.acknowledge();
    await one.ends("contracts", "42", conflicts);
    expect(await one.order()).toEqual(["contracts: ticket 7", "masks"]);
    await one.ends("contracts", target, end);
    await one.ends("contracts", "42", conflicts);
    expect(await one.order()).toEqual(["contracts", "masks"]);
  });

  it("does not cover a slot that is missed later, and covers one that was", async () => {
    const one = await installation("missed");
    const miss = async () => {
      const nowMs = await redisTimeMs(one.store);
      const records = [{ slotMs: nowMs, state: "missed", detail: "outside-window", note: "no scheduler" }] as const;
      const step = { policy: "contracts", expectedWatermarkMs: nowMs - 1, newWatermarkMs: nowMs, records, tasks: [] };
      await new SlotLedger(one.store).openWatermarks([{ policy: "contracts", schedule: String(nowMs) }], nowMs - 1);
      await new SlotLedger(one.store).record([step]);
    };
    await one.ends("contracts", "42", conflicts);
    await one.acknowledge();
    await miss();
    expect(await one.order()).toEqual(["contracts", "masks"]);
    await one.acknowledge();
    expect(await one.order()).toEqual(["contracts: ticket 7", "masks"]);
    await one.ends("contracts", "42");
    await miss();
    expect(await one.order()).toEqual(["contracts", "masks"]);
  });

  it.each(["a good run", "a bad run", "--end"])("covers a policy that is late and never ran, until %s", async (end) => {
    const one = await installation(`late-${end.replaceAll(" ", "-")}`);
    const nowMs = await redisTimeMs(one.store);
    const late = { sinceMs: nowMs, fromMs: nowMs - 1_000, atMs: nowMs, toldMs: nowMs, why: "no slot began" };
    const state = JSON.stringify({ v: 1, expect: "", judgedMs: nowMs, late, sinks: [] });
    await one.store.redis.hset(one.store.key("notifications", "deadlines"), "contracts", state);
    await one.ends("masks", "42", conflicts);
    expect(await one.order()).toEqual(["contracts", "masks"]);
    await one.acknowledge();
    expect(await one.order()).toEqual(["masks", "contracts: ticket 7"]);
    if (end === "--end") await one.command("acknowledge", "contracts", "--end");
    else await one.ends("contracts", "42", end === "a bad run" ? failed : {});
    expect(await one.order()).toEqual(["contracts", "masks"]);
  });

  it("ends with the deadline: what comes after it, and another one, is new", async () => {
    const one = await installation("no-deadline");
    const miss = async (atMs: number) => {
      const late = { sinceMs: atMs, fromMs: atMs - 1_000, atMs, toldMs: atMs, why: "no slot began" };
      const state = JSON.stringify({ v: 1, expect: "", judgedMs: atMs, late, sinks: [] });
      await one.store.redis.hset(one.store.key("notifications", "deadlines"), "contracts", state);
    };
    const nowMs = await redisTimeMs(one.store);
    await miss(nowMs);
    await one.acknowledge();
    expect(await one.order()).toEqual(["contracts: ticket 7", "masks"]);
    const { expect: _, ...free } = contracts;
    const planned = new SlotLedger(one.store);
    await planned.openWatermarks([{ policy: "contracts", schedule: "x" }], nowMs - 86_400_000);
    await keepSet(one.store, [testPolicy({ name: "masks" }), { ...free, schedule: hourly }]);
    expect(await one.order()).toEqual(["contracts", "masks"]);
    await keepSet(one.store, [testPolicy({ name: "masks" }), contracts]);
    await miss((await redisTimeMs(one.store)) + 1_000);
    expect(await one.order()).toEqual(["contracts", "masks"]);
  });

  it("refuses a policy that is well, an unknown one, and one that has just changed", async () => {
    const one = await installation("refused");
    await one.ends("contracts", "42");
    const refused = async (...args: string[]) => (await one.command("acknowledge", ...args)).err;
    expect(await refused("contracts", "--reason", "x")).toContain("is ok: there is nothing to acknowledge");
    expect(await refused("contract", "--reason", "x")).toContain("did you mean contracts?");
    expect(await refused("contracts")).toContain("--reason is required");
    await one.ends("contracts", "42", failed);
    const state = (await readPolicyStates(one.store, ["contracts"])).get("contracts");
    const knownMs = state?.targets[0]?.last.finishedMs ?? 0;
    await one.ends("contracts", "7", failed);
    const acknowledgement = { actor: "ana", note: "late", sinceMs: 0, state: "failing", targets: { "42": 5 } };
    expect(await acknowledgePolicy(one.store, "contracts", { acknowledgement, knownMs })).toBe(false);
    expect(await one.order()).toEqual(["contracts", "masks"]);
  });
});
