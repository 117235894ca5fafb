// `run: { activate: true }`: the activation that goes before a run, and what its failures mean for
// it.
import { describe, expect, it } from "vitest";
import { openStore } from "../../src/store/redis.ts";
import { inFlightKey } from "../../src/store/start-entry.ts";
import { type World, type WorldOptions, worldForTest } from "../support/world.ts";

const subject = { service: "main", repository: "HR", target: "3" } as const;

async function start(options: Omit<WorldOptions, "redis" | "policies"> & { more?: string }): Promise<World> {
  const policies = `  - { name: story, service: main, repository: HR, run: { syncJobs: [3], activate: true }${options.more ?? ""} }`;
  return worldForTest({ ...options, policies });
}

const effects = ({ sandbox }: World) => sandbox.ledger().map(({ operation }) => operation);

describe("a run with an activation before it", () => {
  it("activates once and then runs once, and is verified and followed as any other run", async () => {
    const fixture = await start({});
    expect(await fixture.run("story")).toMatchObject({ status: "succeeded", kind: "run", evidence: "direct" });
    expect(effects(fixture)).toEqual(["EnableSyncJobById", "RunSyncJob"]);
  });

  it("does so also where the answer is the end", async () => {
    const fixture = await start({ more: ", follow: { until: accepted }" });
    expect(await fixture.run("story")).toMatchObject({ status: "accepted" });
    expect(effects(fixture)).toEqual(["EnableSyncJobById", "RunSyncJob"]);
  });

  it("is not started when the activation is refused or fails on the server", async () => {
    for (const [fault, reason] of [
      ["401", "no-access"],
      ["500-before", "server-error"],
      ["500-after", "server-error"],
    ] as const) {
      const fixture = await start({ faults: [`${fault},op=EnableSyncJobById`] });
      const outcome = await fixture.run("story");
      expect(outcome).toMatchObject({ status: "not-started", reason, startedAt: null });
      expect(outcome.detail).toMatch(/^the activation before the run: /);
      expect(fixture.starts(3)).toBe(0);
    }
  });

  it("starts when the answer to the activation got lost, which nothing can look into", async () => {
    const fixture = await start({ faults: ["lost-answer,op=EnableSyncJobById"] });
    expect(await fixture.run("story")).toMatchObject({ status: "succeeded", answerLost: false });
    expect(effects(fixture)).toEqual(["EnableSyncJobById", "RunSyncJob"]);
    expect(fixture.log.named("run.activation-unknown")).toHaveLength(1);
  });

  it("does not start then with onUnknown: give-up", async () => {
    const fixture = await start({ faults: ["reset,op=EnableSyncJobById"], more: ", onUnknown: give-up" });
    expect(await fixture.run("story")).toMatchObject({ status: "not-started", reason: "answer-lost" });
    expect(effects(fixture)).toEqual([]);
  });

  it("activates again with onUnknown: retry, three times in all", async () => {
    const fixture = await start({ faults: ["reset,op=EnableSyncJobById,first=2"], more: ", onUnknown: retry" });
    expect(await fixture.run("story")).toMatchObject({ status: "succeeded" });
    expect(fixture.sandbox.requests()["EnableSyncJobById"]).toEqual({ cut: 2, 200: 1 });
    expect(fixture.starts(3)).toBe(1);
  });

  it("leaves nothing in flight, however its activation ended", async () => {
    const fixture = await start({ faults: ["500-before,op=EnableSyncJobById,first=1"] });
    await fixture.run("story");
    await fixture.run("story");
    const store = await openStore(fixture.target);
    expect(await store.redis.exists(inFlightKey(store, { ...subject, kind: "activate" }))).toBe(0);
    await store.close();
  });

  it("verifies a lost start of the run as ever, without another activation", async () => {
    const fixture = await start({ faults: ["lost-answer,op=RunSyncJob,first=1"] });
    expect(await fixture.run("story")).toMatchObject({ status: "succeeded", answerLost: true });
    expect(effects(fixture)).toEqual(["EnableSyncJobById", "RunSyncJob"]);
  });
});
