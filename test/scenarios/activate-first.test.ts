// `run: { activate: true }`: the activation that goes before a run, and what its failures mean for it.
import { afterEach, describe, expect, it } from "vitest";
import { openStore } from "../../src/store/redis.ts";
import { inFlightKey } from "../../src/store/start-entry.ts";
import { redisForTest } from "../support/redis.ts";
import { startWorld, type World, type WorldOptions } from "../support/world.ts";

const redis = redisForTest();
const subject = { service: "main", repository: "HR", target: "3" } as const;
let world: World | undefined;

async function start(options: Omit<WorldOptions, "redis" | "policies"> & { more?: string }): Promise<World> {
  const policies = `  - { name: story, service: main, repository: HR, run: { syncJobs: [3], activate: true }${options.more ?? ""} }`;
  world = await startWorld({ redis, ...options, policies });
  return world;
}

afterEach(async () => {
  await world?.stop();
  world = undefined;
});

const effects = ({ sandbox }: World) => sandbox.ledger().map(({ operation }) => operation);

describe("a run with an activation before it", () => {
  it("activates once and then runs once, and is verified and followed as any other run", async () => {
    const house = await start({});
    expect(await house.run("story")).toMatchObject({ status: "succeeded", kind: "run", evidence: "direct" });
    expect(effects(house)).toEqual(["EnableSyncJobById", "RunSyncJob"]);
  });

  it("does so also where the answer is the end", async () => {
    const house = await start({ more: ", follow: { until: accepted }" });
    expect(await house.run("story")).toMatchObject({ status: "accepted" });
    expect(effects(house)).toEqual(["EnableSyncJobById", "RunSyncJob"]);
  });

  it("is not started when the activation is refused or fails on the server", async () => {
    for (const [fault, reason] of [
      ["401", "refused"],
      ["500-before", "server-error"],
      ["500-after", "server-error"],
    ] as const) {
      const house = await start({ faults: [`${fault},op=EnableSyncJobById`] });
      const outcome = await house.run("story");
      expect(outcome).toMatchObject({ status: "not-started", reason, startedAt: null });
      expect(outcome.detail).toMatch(/^the activation before the run: /);
      expect(house.starts(3)).toBe(0);
      await house.stop();
    }
    world = undefined;
  });

  it("starts when the answer to the activation got lost, which nothing can look into", async () => {
    const house = await start({ faults: ["lost-answer,op=EnableSyncJobById"] });
    expect(await house.run("story")).toMatchObject({ status: "succeeded", answerLost: false });
    expect(effects(house)).toEqual(["EnableSyncJobById", "RunSyncJob"]);
    expect(house.log.named("run.activation-unknown")).toHaveLength(1);
  });

  it("does not start then with onUnknown: give-up", async () => {
    const house = await start({ faults: ["reset,op=EnableSyncJobById"], more: ", onUnknown: give-up" });
    expect(await house.run("story")).toMatchObject({ status: "not-started", reason: "answer-lost" });
    expect(effects(house)).toEqual([]);
  });

  it("activates again with onUnknown: retry, three times in all", async () => {
    const house = await start({ faults: ["reset,op=EnableSyncJobById,first=2"], more: ", onUnknown: retry" });
    expect(await house.run("story")).toMatchObject({ status: "succeeded" });
    expect(house.sandbox.requests()["EnableSyncJobById"]).toEqual({ cut: 2, 200: 1 });
    expect(house.starts(3)).toBe(1);
  });

  it("leaves nothing in flight, however its activation ended", async () => {
    const house = await start({ faults: ["500-before,op=EnableSyncJobById,first=1"] });
    await house.run("story");
    await house.run("story");
    const store = await openStore(house.target);
    expect(await store.redis.exists(inFlightKey(store, { ...subject, kind: "activate" }))).toBe(0);
    await store.close();
  });

  it("verifies a lost start of the run as ever, without another activation", async () => {
    const house = await start({ faults: ["lost-answer,op=RunSyncJob,first=1"] });
    expect(await house.run("story")).toMatchObject({ status: "succeeded", answerLost: true });
    expect(effects(house)).toEqual(["EnableSyncJobById", "RunSyncJob"]);
  });
});
