import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { silentLog } from "../../src/core/event-log.ts";
import { isDenied } from "../../src/core/limiter.ts";
import { readKnowledge } from "../../src/feeds/strategy/choose-walk.ts";
import type { WholeReason } from "../../src/model/feed.ts";
import { FeedStore } from "../../src/store/feed-store.ts";
import { keepPolicySet } from "../../src/store/kept-policies.ts";
import { Quarantines } from "../../src/store/pauses.ts";
import { RedisWatch } from "../../src/store/redis-watch.ts";
import { ServiceLimiter } from "../../src/store/service-limiter.ts";
import { commandFixture } from "../support/command-fixture.ts";
import { keepAlive, setOf } from "../support/kept-set.ts";
import { testPolicy } from "../support/policies.ts";

const fixture = commandFixture(`
  - { name: often, service: main, run: { syncJobs: [1] }, schedule: { every: 1h } }
`);

describe("syncline status", () => {
  it("shows breaker, throttle, requests, quarantine; exits 1; resume ends quarantine", async () => {
    const prefix = `${fixture.redis.prefix}-status`;
    const command = (...args: string[]) => fixture.command(prefix, ...args, "--config", fixture.file());
    const well = await command("status");
    expect(well.code).toBe(1);
    expect(well.out).toMatch(
      /^No process has run under the prefix \S+: this is what the files say\.\n\n1 policy: 1 new\n.*\nnew +often +.* UTC +every 1h\n/,
    );
    expect(well.out).toContain(
      "service  breaker  throttles  in flight\nmain     closed   no         not counted\n\nalive: 0 with the role scheduler, 0 with the role worker\nno scheduler is alive: no slot is planned until one starts\nno worker is alive: nothing that is queued or in flight goes on until one starts\nconfig: no process has run policies here",
    );
    await fixture.inStore(prefix, async (store) => {
      const limits = { concurrencyMax: 4, requestsPerSecond: undefined, failuresMax: 1, probeEveryMs: 3_600_000 };
      const parts = { store, clock: systemClock, log: silentLog };
      const limiter = new ServiceLimiter({ ...limits, service: "main", leaseMs: 60_000 }, parts);
      const passes = [
        await limiter.acquire({ isRead: true }),
        await limiter.acquire({ isRead: true }),
        await limiter.acquire({ isRead: true }),
      ];
      for (const [index, kind] of (["throttled", "unreachable"] as const).entries()) {
        const pass = passes[index];
        if (pass !== undefined && !isDenied(pass)) await pass.release({ kind, retryAfterMs: 600_000 });
      }
      const failed = { policy: "often", slotMs: 1_000, isSuccess: false, note: "the last ended failed" };
      await new Quarantines(store).count(failed, { after: 1, forMs: 3_600_000 });
    });
    const ill = await command("status");
    expect(ill.code).toBe(1);
    expect(ill.out).toMatch(
      /main +open since \S+ \S+ \(unreachable\), next probe in (60m|1h|\d+s) +until \S+ \S+, for \S+ +1\n/,
    );
    expect(ill.out).toMatch(/quarantined +often .* until .*, 1 slot failed; the last ended failed/);
    const { services, quarantined } = JSON.parse((await command("status", "--json")).out);
    expect(services).toMatchObject([{ service: "main", breaker: "open", failures: 1, inFlight: 1 }]);
    expect(quarantined).toMatchObject([{ name: "often", cause: "quarantine" }]);
    expect((await command("pause", "--list")).out).toContain("policy often (quarantine)");
    expect((await command("resume", "often")).out).toBe("policy often resumed");
    const released = JSON.parse((await command("status", "--json")).out);
    expect(released).toMatchObject({ quarantined: [], policies: [{ policy: "often", state: "service-down" }] });
  });

  it("shows no request under way where requests are counted, and none is", async () => {
    const prefix = `${fixture.redis.prefix}-limited`;
    await fixture.inStore(prefix, async (store) => {
      const set = setOf([testPolicy({ service: "limited" })]);
      const [main, limited] = [...set.services.values()];
      if (main === undefined || limited === undefined) throw new Error("two services are expected");
      const limits = { concurrencyMax: 4, requestsPerSecond: undefined };
      await keepPolicySet(
        store,
        {
          ...set,
          services: new Map([
            ["main", main],
            ["limited", { ...limited, limits }],
          ]),
        },
        "host/1",
      );
    });
    const { out } = await fixture.command(prefix, "status");
    expect(out).toMatch(/\nlimited +closed +no +0\nmain +closed +no +not counted\n/);
    const { services } = JSON.parse((await fixture.command(prefix, "status", "--json")).out);
    expect(services).toMatchObject([
      { service: "limited", inFlight: 0 },
      { service: "main", inFlight: 0 },
    ]);
    const elsewhere = await fixture.command(prefix, "status", "nightly", "--service", "main");
    expect(elsewhere).toMatchObject({
      code: 2,
      err: expect.stringContaining("nightly is of service limited, not main"),
    });
    // All policies are of the one service, and none of the other.
    for (const service of ["limited", "main"]) {
      const one = await fixture.command(prefix, "status", "--service", service, "--json");
      expect(JSON.parse(one.out).services).toMatchObject([{ service }]);
    }
  });

  it("shows which lists are read whole walk after walk, and why, as the doctor does", async () => {
    const prefix = `${fixture.redis.prefix}-feeds`;
    const command = (...args: string[]) => fixture.command(prefix, ...args, "--config", fixture.file());
    const feed = { service: "main", repository: null, list: "activities" } as const;
    const known = { ...readKnowledge(null), order: "tail", wholeAtMs: 1, pages: 50, items: 5_000, notKept: "sig" };
    const walked = (book: FeedStore, because: WholeReason | undefined) =>
      book.endWalk(feed, { startedAtMs: 1_000, count: 5_000, whole: because !== undefined, because });
    await fixture.inStore(prefix, async (store) => {
      const book = new FeedStore(store);
      await book.keepKnowledge(feed, JSON.stringify(known));
      for (const because of ["first", "links-not-kept", "links-not-kept"] as const) await walked(book, because);
    });
    expect((await command("status")).out).not.toContain("activities");
    await fixture.inStore(prefix, async (store) => {
      const book = new FeedStore(store);
      // An audit in between says nothing of the cost.
      for (const because of ["audit", "links-not-kept"] as const) await walked(book, because);
      await new RedisWatch(store, { roles: ["scheduler", "worker"] }).check();
      await keepAlive(store);
    });
    expect((await command("status")).code).toBe(0);
    expect((await command("digest")).out).toMatch(/^No trouble: 1 not run yet of 1 policy, 1 costly list\n/);
    await fixture.inStore(prefix, (store) =>
      new FeedStore(store).failWalk({ ...feed, list: "conflictDetails" }, "server: it answered 500", {
        beganAtMs: 0,
        waitMs: 0,
      }),
    );
    const status = await command("status");
    expect(status.code).toBe(1);
    expect((await command("digest")).out).toMatch(
      /^Not fine, 1 needs a person: 1 not run yet of 1 policy, 1 costly list, 1 other trouble\n/,
    );
    expect(status.out).toMatch(
      /activities of main +all 50 pages are read at each walk since \S+ \S+, 3 times in a row: its links carry a credential, so Syncline stores none to resume from \(sig\)/,
    );
    expect(status.out).toMatch(/conflictDetails of main +cannot be read since \S+ \S+: server: it answered 500/);
    const { feeds } = JSON.parse((await command("status", "--json")).out);
    expect(feeds).toMatchObject([{ reason: "links-not-kept", walks: 3 }, { reason: "unreadable" }]);
    const { checks } = JSON.parse((await command("doctor", "--json")).out);
    const found = checks.filter(({ check }: { check: string }) => check === "feeds");
    expect(found).toMatchObject([
      { level: "warning", subject: "activities of main", what: expect.stringContaining("(sig)") },
      { level: "warning", subject: "conflictDetails of main" },
    ]);
    await fixture.inStore(prefix, (store) => walked(new FeedStore(store), undefined));
    expect((await command("status")).out).not.toContain("activities");
  });
});
