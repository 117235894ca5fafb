import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { Heartbeats } from "../../../src/notify/heartbeats.ts";
import { createPinger } from "../../../src/service/ping.ts";
import { beginMs, NotifyFixture, notifiedPolicy, policyOver } from "../../support/notify-fixture.ts";
import { TestLog } from "../../support/test-log.ts";

const pinger = createPinger();
let stops: (() => void)[] = [];

afterEach(() => {
  for (const stop of stops) stop();
  stops = [];
});

/** A server that answers with these statuses, one after the other, then with 200, and this body. */
async function serve(statuses: number[], body = "ok"): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    response.writeHead(statuses.shift() ?? 200, { location: "/elsewhere" });
    response.end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stops.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/secret`, asked };
}

/** `ageMs`: how long ago the successes were. */
function houseOf(urls: Readonly<Record<string, string | undefined>>, ageMs = 0) {
  const due = new Map(Object.keys(urls).map((name) => [name, "1000"]));
  const log = new TestLog();
  const waits: number[] = [];
  const heartbeats = new Heartbeats({
    notifyStore: {
      nowMs: async () => 1_000 + ageMs,
      texts: async () => new Map(due),
      sent: async (policy, text) => {
        if (due.get(policy) === text) due.delete(policy);
      },
    },
    urlOf: (policy) => urls[policy],
    ping: pinger.ping,
    log,
    clock: { sleep: async (durationMs) => void waits.push(durationMs) },
  });
  return { heartbeats, due, log, waits };
}

describe("heartbeats", () => {
  it("ask the URL of each policy that succeeded, once", async () => {
    const { url, asked } = await serve([]);
    const fixture = houseOf({ a: `${url}/a`, b: `${url}/b` });
    await fixture.heartbeats.runOnce();
    expect(asked.toSorted()).toEqual(["GET /secret/a", "GET /secret/b"]);
    expect(fixture.due.size).toBe(0);
    await fixture.heartbeats.runOnce();
    expect(asked).toHaveLength(2);
    expect(fixture.log.events).toEqual([]);
  });

  it("try three times, then wait for the next success; non-2xx and redirects fail", async () => {
    const { url, asked } = await serve([503, 302, 404, 200]);
    const fixture = houseOf({ a: url });
    await fixture.heartbeats.runOnce();
    expect(asked).toHaveLength(3);
    expect(fixture.waits).toEqual([5_000, 5_000]);
    expect(fixture.due.size).toBe(0);
    expect(fixture.log.events).toEqual([
      { event: "heartbeat.failed", level: "warn", policy: "a", message: "answered with status 404" },
    ]);
  });

  it("count as told after a 2xx, however large its body", async () => {
    const { url, asked } = await serve([], "x".repeat(65 * 1_024));
    const fixture = houseOf({ a: url });
    await fixture.heartbeats.runOnce();
    expect([asked.length, fixture.due.size]).toEqual([1, 0]);
    expect(fixture.log.events).toEqual([]);
  });

  it("never show the URL, and one that is dead keeps no other from being asked", async () => {
    const { url, asked } = await serve([]);
    const fixture = houseOf({ dead: "http://127.0.0.1:9/secret", well: url });
    await fixture.heartbeats.runOnce();
    expect(asked).toEqual(["GET /secret"]);
    expect(fixture.log.events).toMatchObject([{ policy: "dead", message: "no answer (ECONNREFUSED)" }]);
    expect(JSON.stringify(fixture.log.events)).not.toContain("secret");
  });

  it("are not asked for a success of more than an hour ago, and say so", async () => {
    const fixture = new NotifyFixture([{ ...notifiedPolicy("a"), heartbeat: { url: "https://x.example" } }]);
    fixture.ended("a");
    await fixture.after(7_200_000);
    expect([...fixture.parts.heartbeats]).toEqual([["a", String(beginMs)]]);
    const { url, asked } = await serve([]);
    const { heartbeats, due, log } = houseOf({ a: url }, 3_600_000);
    await heartbeats.runOnce();
    expect([asked, due.size]).toEqual([[], 0]);
    expect(log.events).toMatchObject([
      { event: "heartbeat.failed", policy: "a", message: expect.stringContaining("over an hour old") },
    ]);
  });

  it("are not due while another sync job of the policy is bad, for however long", async () => {
    const { notify: _, ...unheard } = policyOver("a", 42, 43);
    const heartbeat = { url: "https://x.example" };
    const fixture = new NotifyFixture([{ ...unheard, heartbeat }]);
    fixture.ended("a", { status: "failed", reason: "run-failed", target: "43" });
    await fixture.after(3 * 86_400_000);
    fixture.ended("a");
    await fixture.after(10_000);
    expect([...fixture.parts.heartbeats]).toEqual([]);
    const { notify: __, ...without } = policyOver("a", 42);
    fixture.policies = [{ ...without, heartbeat }];
    // Nothing is forgotten right after a change of the policies.
    for (const ms of [1_000, 600_000]) await fixture.after(ms);
    fixture.ended("a");
    await fixture.after(10_000);
    expect(fixture.parts.heartbeats.size).toBe(1);
  });

  it("wait ten minutes for a replica that has loaded the policy", async () => {
    const [young, old] = [houseOf({ a: undefined }, 599_999), houseOf({ a: undefined }, 600_000)];
    await young.heartbeats.runOnce();
    await old.heartbeats.runOnce();
    expect([young.due.size, old.due.size]).toEqual([1, 0]);
  });

  it("leave what is due to others when they are stopped", async () => {
    const { url } = await serve([503]);
    const fixture = houseOf({ a: url });
    const looking = fixture.heartbeats.runOnce();
    await fixture.heartbeats.stop();
    await looking;
    expect(fixture.due.get("a")).toBe("1000");
    expect(fixture.log.events).toEqual([]);
  });
});
