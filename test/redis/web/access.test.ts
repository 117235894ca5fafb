import { describe, expect, it, vi } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import type { SlotRecord } from "../../../src/model/slot-record.ts";
import { runByHand, taskId } from "../../../src/model/task.ts";
import { History } from "../../../src/store/history.ts";
import { Pauses, Quarantines } from "../../../src/store/pauses.ts";
import type { Store } from "../../../src/store/redis.ts";
import { SlotLedger } from "../../../src/store/slot-ledger.ts";
import { WebSessions } from "../../../src/store/web-sessions.ts";
import type { Access } from "../../../src/web/access.ts";
import { createToken } from "../../../src/web/tokens.ts";
import { surviveHostile } from "../../support/hostile-requests.ts";
import { liveProcess, setOf } from "../../support/kept-set.ts";
import { testOutcome } from "../../support/outcomes.ts";
import { testPolicy } from "../../support/policies.ts";
import { type WebFixture, webForTest } from "../../support/web-fixture.ts";

const ana = createToken({ name: "ana", scope: "read", services: [] });
const limited = createToken({ name: "limited", scope: "read", services: ["other"] });
const operator = createToken({ name: "op", scope: "operate", services: ["other"] });
const hr = createToken({ name: "hr", scope: "read", services: [], labels: ["team=hr"] });
const expired = createToken({ name: "old", scope: "read", services: [], lastDay: "2020-01-01" });

const open = await webForTest();
const guarded = await webForTest({ tokens: () => `# who may look\n${ana.line}\n${limited.line}\n${expired.line}\n` });
const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

/** Records slots of a policy, oldest first, as the scheduler does. */
async function recordSlots(store: Store, policy: string, records: readonly SlotRecord[]): Promise<void> {
  const [fromMs = 0, toMs = 0] = [records[0], records.at(-1)].map((record) => record?.slotMs);
  const ledger = new SlotLedger(store);
  await ledger.openWatermarks([{ policy, schedule: "every hour" }], fromMs - 1);
  await ledger.record([{ policy, expectedWatermarkMs: fromMs - 1, newWatermarkMs: toMs, records, tasks: [] }]);
}

const hourMs = 3_600_000;
const everyHour = { kind: "every", everyMs: hourMs, spreadMs: 0 } as const;
const [atTwo, atThree] = ["2026-11-21T02:00:00.000Z", "2026-11-21T03:00:00.000Z"];
const atTwoMs = Date.parse(atTwo);

/** Where the slot of two o'clock of a policy is told. */
const placesOf = (policy: string) => [
  ...[`/policies/${policy}/slots/${atTwo}`, `/api/v1/slots/${policy}/${atTwo}`],
  ...[`/api/v1/policies/${policy}`, `/api/v1/policies/${policy}/slots`],
];

const textFor = async (web: WebFixture, path: string, { token }: typeof ana) =>
  (await web.ask(path, bearer(token))).text();

describe("without tokens", () => {
  it("answers to this machine's own names only", async () => {
    expect((await open.ask("/", { headers: { host: "localhost:4780" } })).status).toBe(200);
    expect((await open.ask("/", { headers: { host: "rebound.example.com" } })).status).toBe(421);
  });
});

describe("with tokens", () => {
  it("lets in a known token, and no unknown, expired or missing one", async () => {
    expect((await guarded.ask("/api/v1/me", bearer(ana.token))).status).toBe(200);
    expect((await guarded.ask("/api/v1/policies", bearer(ana.token))).status).toBe(200);
    for (const token of [expired.token, `${ana.token}x`, ana.line, "x"])
      expect((await guarded.ask("/api/v1/policies", bearer(token))).status).toBe(401);
    const none = await guarded.ask("/api/v1/policies");
    expect([none.status, none.headers.get("www-authenticate")]).toEqual([401, 'Bearer realm="syncline"']);
  });

  it("shows a token of one service nothing of the others", async () => {
    for (const path of ["/policies", "/outcomes", "/failed", "/changes", "/pauses", "/services"]) {
      const answer = await guarded.ask(`/api/v1${path}`, bearer(limited.token));
      expect([path, JSON.parse(await answer.text()).items]).toEqual([path, []]);
    }
    const changes = await guarded.ask("/api/v1/changes", bearer(limited.token));
    expect(await changes.json()).toEqual({ items: [], isAll: false });
    expect((await guarded.ask("/api/v1/policies/invoices", bearer(limited.token))).status).toBe(404);
    for (const name of ["invoices", runByHand])
      expect((await guarded.ask(`/api/v1/outcomes?policy=${name}`, bearer(limited.token))).status).toBe(404);
    const pages = await Promise.all(
      ["/", "/policies", "/services", "/changes"].map((path) => guarded.ask(path, bearer(limited.token))),
    );
    for (const page of pages) expect(await page.text()).not.toMatch(/invoices|suspended/);
  });

  it("shows a token of one service its newest run by hand, behind one of another", async () => {
    const named = { policy: runByHand, kind: "run", target: "78", origin: "manual" } as const;
    const slotMs = Date.parse(testOutcome().slot);
    const run = testOutcome({ ...named, taskId: taskId({ ...named, slotMs }), service: "other" });
    await new History(guarded.store).record(run);
    const told = async (token: string) =>
      JSON.parse(await (await guarded.ask("/api/v1/policies/-/by-hand?limit=1", bearer(token))).text());
    expect(await told(ana.token)).toMatchObject({ items: [{ target: "77" }], isAll: false });
    expect(await told(limited.token)).toMatchObject({ items: [{ target: "78" }], isAll: true });
  });

  it("shows a token of one service nothing that a policy did at another one before", async () => {
    const policy = "moved";
    const set = setOf([testPolicy({ name: policy, service: "other" })]);
    const own = await webForTest({ story: {}, set, tokens: () => limited.line });
    const [slotMs = 0, nextMs = 0] = [0, 3_600_000].map((ms) => Date.parse(testOutcome().slot) + ms);
    const ids = [slotMs, nextMs].map((ms) =>
      taskId({ policy, kind: "run", target: "42", slotMs: ms, origin: "schedule" }),
    );
    const [before = "", after = ""] = ids;
    const started = { state: "started", detail: "", kind: "run" } as const;
    const records = [slotMs, nextMs].map((ms) => ({ slotMs: ms, ...started, targets: ["42"] }));
    await recordSlots(own.store, policy, records);
    const secret = { service: "main", detail: "of main only" };
    for (const [id, ms, more] of [
      [before, slotMs, secret],
      [after, nextMs, { service: "other" }],
    ] as const) {
      const times = { slot: new Date(ms).toISOString(), finishedAt: new Date(ms + 60_000).toISOString() };
      await new History(own.store).record(testOutcome({ policy, taskId: id, ...times, ...more }));
    }
    const get = async (path: string) => {
      const answer = await own.ask(path, bearer(limited.token));
      return { status: answer.status, text: await answer.text() };
    };
    for (const query of ["limit=1", "limit=9", `policy=${policy}`])
      expect(JSON.parse((await get(`/api/v1/outcomes?${query}`)).text)).toMatchObject({
        items: [{ taskId: after }],
      });
    expect([(await get(`/api/v1/tasks/${after}`)).status, (await get(`/api/v1/tasks/${before}`)).status]).toEqual([
      200, 404,
    ]);
    const slot = new Date(slotMs).toISOString();
    for (const path of ["/", `/policies/${policy}`, `/policies/${policy}/slots/${slot}`, `/tasks/${before}`])
      expect((await get(path)).text).not.toContain("of main only");
    for (const path of ["slots", `slots/${slot}`])
      expect((await get(`/api/v1/policies/${policy}/${path}`)).text).not.toContain("of main only");
  });

  it("shows a token of one team no reason of another team whose policy it follows", async () => {
    const policy = "hr-report";
    const root = { name: "fin-export", schedule: everyHour };
    const after = { policy: root.name, on: ["succeeded" as const], withinMs: 60_000, root };
    const within = { kind: "within", withinMs: 60_000 } as const;
    const set = setOf([
      testPolicy({ ...root, labels: { team: "fin" } }),
      testPolicy({ name: policy, schedule: undefined, after, expect: within, labels: { team: "hr" } }),
    ]);
    const own = await webForTest({ story: {}, set, tokens: () => `${ana.line}\n${hr.line}` });
    const note = "fin-export did not start: skipped (paused): a merger (ana)";
    const followed = { state: "started", detail: "followed", kind: "run" } as const;
    await recordSlots(own.store, policy, [
      { slotMs: atTwoMs - hourMs, state: "missed", detail: "after-within", note: "fin-export had not ended" },
      { slotMs: atTwoMs, state: "skipped", detail: "predecessor", note },
      { ...followed, targets: ["42"], slotMs: atTwoMs + hourMs, note: "fin-export ended: 7 conflicts" },
    ]);
    const late = { sinceMs: atTwoMs, fromMs: atTwoMs, atMs: atTwoMs + 60_000, toldMs: atTwoMs };
    const why = `slot 02:00 UTC skipped (predecessor): ${note}`;
    const state = JSON.stringify({ v: 1, expect: "x", judgedMs: atTwoMs, late: { ...late, why }, sinks: [] });
    await own.store.redis.hset(own.store.key("notifications", "deadlines"), policy, state);
    const pages = [...["", "policies"], ...["", "/days/2026-11-21"].map((part) => `policies/${policy}${part}`)];
    for (const path of [...pages.map((page) => `/${page}`), ...placesOf(policy)]) {
      const told = await Promise.all([ana, hr].map((by) => textFor(own, path, by)));
      expect([path, told.map((text) => text.includes("merger"))]).toEqual([path, [true, false]]);
    }
    const story = JSON.parse(await textFor(own, `/api/v1/slots/${policy}/${atTwo}`, hr));
    expect(story.verdict).toBe("not started: its predecessor did not end as after.on asks");
    const started = new Date(atTwoMs + hourMs).toISOString();
    const told = await Promise.all([ana, hr].map((by) => textFor(own, `/api/v1/slots/${policy}/${started}`, by)));
    expect(told.map((text) => text.includes("7 conflicts"))).toEqual([true, false]);
    const audits = await Promise.all([ana, hr].map((by) => textFor(own, `/api/v1/audit?policy=${policy}`, by)));
    expect(audits.map((text) => text.includes("fin-export had not ended"))).toEqual([true, false]);
  });

  it("shows a token of one service no words of another one in a quarantine", async () => {
    const [policy, follower] = ["payslips", "payslips-mail"];
    const service = "other";
    const root = { name: policy, schedule: everyHour };
    const after = { policy, on: ["succeeded" as const], withinMs: 60_000, root };
    const set = setOf([
      testPolicy({ ...root, service }),
      testPolicy({ name: follower, schedule: undefined, after, service }),
    ]);
    const tokens = () => [ana, limited, operator].map(({ line }) => line).join("\n");
    const own = await webForTest({ story: {}, set, tokens });
    const note = "the last ended failed (refused): the service says: of main only";
    const skipped = { slotMs: atTwoMs, state: "skipped" } as const;
    const caughtUp = { state: "started", detail: "released", kind: "run" } as const;
    await recordSlots(own.store, policy, [
      { ...skipped, detail: "quarantine", note },
      { ...caughtUp, targets: ["42"], slotMs: atTwoMs + hourMs, note: `${note}; resumed by ana` },
    ]);
    const stopped = { ...skipped, detail: "predecessor" };
    await recordSlots(own.store, follower, [
      { ...stopped, note: `${policy} did not start: skipped (quarantine): ${note}` },
    ]);
    const ending = { policy, slotMs: atTwoMs, isSuccess: false, note };
    await new Quarantines(own.store).count(ending, { after: 1, forMs: 2 * hourMs });
    const lists = ["pauses", "policies", "attention", "plan", `slots/${policy}/${atThree}`];
    const paths = ["/", "/policies", `/policies/${policy}`, ...lists.map((list) => `/api/v1/${list}`)];
    for (const path of [...paths, ...placesOf(policy), ...placesOf(follower)]) {
      const told = await Promise.all([ana, limited].map((by) => textFor(own, path, by)));
      expect([path, told.map((text) => text.includes("of main only"))]).toEqual([path, [true, false]]);
    }
    const { items } = JSON.parse(await textFor(own, `/api/v1/policies/${follower}/slots`, limited));
    expect(items).toMatchObject([{ note: "payslips did not start: skipped (quarantine)" }]);
    const resume = { method: "DELETE", ...bearer(operator.token) };
    const { ended } = JSON.parse(await (await own.ask(`/api/v1/pauses/policy:${policy}?reason=x`, resume)).text());
    expect(ended).toMatchObject([{ note: "it failed too often in a row" }]);
  });

  it.each([
    ["paused", "moving house (ana)", true],
    ["quarantine", "the last ended failed (refused): the service says: no", false],
  ])("shows a team why its own slot was caught up, but no service's words: %s", async (detail, note, isSeen) => {
    const root = { name: "payslips", schedule: everyHour };
    const [policy, service] = ["payslips-mail", "other"];
    const after = { policy: root.name, on: ["succeeded" as const], withinMs: 60_000, root };
    const more = { schedule: undefined, after, service, catchUpWindowMs: 2 * hourMs };
    const set = setOf([testPolicy({ ...root, service }), testPolicy({ name: policy, ...more })]);
    const tokens = () => [ana, limited, operator].map(({ line }) => line).join("\n");
    const own = await webForTest({ story: {}, set, tokens });
    const slotMs = Math.floor(Date.now() / hourMs) * hourMs;
    await recordSlots(own.store, policy, [{ slotMs, state: "skipped", detail, note }]);
    if (detail === "paused")
      await new Pauses(own.store).set({ scope: "policy", name: policy, note: "x", actor: "ana", untilMs: null });
    else
      await new Quarantines(own.store).count({ policy, slotMs, isSuccess: false, note }, { after: 1, forMs: hourMs });
    const resume = { method: "DELETE", ...bearer(operator.token) };
    await own.ask(`/api/v1/pauses/policy:${policy}?reason=x&catchUp=true`, resume);
    const slot = new Date(slotMs).toISOString();
    for (const path of [`/api/v1/slots/${policy}/${slot}`, `/policies/${policy}/slots/${slot}`]) {
      const told = await Promise.all([ana, limited].map((by) => textFor(own, path, by)));
      expect(told.map((text) => text.includes("then started by resume --catch-up"))).toEqual([true, true]);
      expect(told.map((text) => text.includes(`${note}; resumed by op`))).toEqual([true, isSeen]);
    }
  });

  it("tells a token of one service of a wrong file, not what stands in it", async () => {
    const rejected = { sinceMs: 1, where: "invoices.yaml:3", message: "policy invoices is wrong", problems: 1 };
    const own = await webForTest({
      ...{ story: {}, set: setOf([testPolicy()]) },
      tokens: () => `${ana.line}\n${limited.line}\n`,
    });
    await liveProcess(own.store, { rejected });
    const toldTo = async (token: string) => {
      const { files, processes } = JSON.parse(await (await own.ask("/api/v1/config", bearer(token))).text());
      return [files, processes.flatMap((one: { rejected: object | null }) => one.rejected ?? [])];
    };
    const { where, message } = rejected;
    const since = new Date(1).toISOString();
    expect(await toldTo(ana.token)).toEqual([["/p/a.yaml"], [{ since, where, message }]]);
    expect(await toldTo(limited.token)).toEqual([[], [{ since, where: "", message: "" }]]);
  });

  it("leads a person to sign in, and back to the page, by a cookie that holds no token", async () => {
    const away = await guarded.ask("/policies?health=failing");
    expect([away.status, away.headers.get("location")]).toEqual([303, "/sign-in?next=%2Fpolicies%3Fhealth%3Dfailing"]);
    const signIn = (token: string, site: string, next = "/policies") =>
      guarded.ask("/sign-in", {
        method: "POST",
        body: new URLSearchParams({ token, next }),
        headers: { "sec-fetch-site": site },
      });
    expect((await signIn("wrong", "same-origin")).status).toBe(403);
    expect(guarded.refusals.at(-1)).toMatchObject({ what: "POST /sign-in", why: expect.stringContaining("not known") });
    expect((await signIn(ana.token, "cross-site")).status).toBe(403);
    expect((await signIn(ana.token, "same-origin", "//evil.example.com")).headers.get("location")).toBe("/");
    const answer = await signIn(ana.token, "same-origin");
    const cookie = answer.headers.get("set-cookie") ?? "";
    expect(cookie).toMatch(/^__Host-syncline=[\w-]{43}; Max-Age=28800; Path=\/; HttpOnly; Secure; SameSite=Strict$/);
    expect(cookie).not.toContain(ana.token);
    const session = { headers: { cookie: cookie.split(";")[0] ?? "" } };
    expect(await (await guarded.ask("/policies", session)).text()).toContain("ana, read-only");
    await guarded.ask("/sign-out", {
      method: "POST",
      headers: { ...session.headers, "sec-fetch-site": "same-origin" },
    });
    expect((await guarded.ask("/policies", session)).status).toBe(303);
  });

  it("looks up the sessions of all open pages together, and knows none for long", async () => {
    let nowMs = Date.now();
    const clock = { ...systemClock, nowMs: () => nowMs, monotonicMs: () => nowMs };
    const own = await webForTest({ story: {}, set: setOf([testPolicy()]), clock, tokens: () => ana.line });
    const signIn = async () => {
      const body = new URLSearchParams({ token: ana.token, next: "/" });
      const headers = { "sec-fetch-site": "same-origin" };
      const answer = await own.ask("/sign-in", { method: "POST", body, headers });
      return answer.headers.get("set-cookie")?.split(";")[0] ?? "";
    };
    const [gone = "", ...others] = await Promise.all(Array.from({ length: 8 }, signIn));
    const look = async () => {
      const asked = [gone, ...others].map(async (cookie) => (await own.ask("/api", { headers: { cookie } })).status);
      return new Set(await Promise.all(asked));
    };
    expect(await look()).toEqual(new Set([200]));
    const { redis } = own.store;
    const [alone, together] = [vi.spyOn(redis, "get"), vi.spyOn(redis, "mget")];
    nowMs += 6_000;
    expect([...(await look()), ...(await look())]).toEqual([200, 200]);
    expect([alone.mock.calls.length, together.mock.calls.length]).toEqual([0, 1]);
    // Signed out at another replica.
    await new WebSessions(own.store).end(gone.split("=")[1] ?? "");
    nowMs += 6_000;
    expect(await look()).toEqual(new Set([303, 200]));
  });

  it("locks a token out, with its sessions, once its line is gone", async () => {
    let lines = ana.line;
    let nowMs = 0;
    const { Access } = await import("../../../src/web/access.ts");
    const sessions = new Map<string, string>();
    const access = await Access.open(
      { tokens: { path: "f", read: async () => lines } },
      {
        begin: async (hash) => {
          sessions.set("s", hash);
          return "s";
        },
        owner: async (id) => sessions.get(id),
        end: async () => {},
      },
      { clock: { ...guarded.parts.clock, monotonicMs: () => nowMs }, log: guarded.parts.log },
    );
    const shown = (what: { bearer?: string; session?: string }) =>
      access.identify({ bearer: undefined, session: undefined, header: () => undefined, ...what }).then(
        (caller) => caller?.name,
        (error: Error) => error.message,
      );
    expect(await access.signIn(ana.token)).toBe("s");
    lines = "";
    expect(await shown({ session: "s" })).toBe("ana");
    nowMs = 31_000;
    expect(await shown({ session: "s" })).toBeUndefined();
    expect(await shown({ bearer: ana.token })).toBe("this token is not known, or it has expired");
    lines = ana.line;
    nowMs = 62_000;
    expect(await shown({ bearer: ana.token })).toBe("ana");
    lines = "not a token";
    nowMs = 93_000;
    expect(await shown({ bearer: ana.token })).toBe("ana");
  });
});

it("ends the live pages of a token once its line is gone", async () => {
  let [lines, nowMs, tick] = [ana.line, 0, () => {}];
  const every = (ms: number, act: () => void) => {
    if (ms === 15_000) tick = act;
    return () => {};
  };
  const clock = { ...systemClock, monotonicMs: () => nowMs, every };
  const own = await webForTest({ story: {}, set: setOf([testPolicy()]), clock, tokens: () => lines });
  const stream = await own.ask("/events", bearer(ana.token));
  const asked = vi.spyOn(own.parts.access as Access, "identify");
  tick();
  expect([(await asked.mock.results[0]?.value)?.name, own.parts.live.size]).toEqual(["ana", 1]);
  [lines, nowMs] = ["", 31_000];
  tick();
  await expect.poll(() => own.parts.live.size).toBe(0);
  expect(await stream.text()).toMatch(/^retry: 5000\n\n(event: alive\ndata:\n\n){2}$/);
});

describe("every method that may change something", () => {
  it("is refused and recorded, also for the owner of a token", async () => {
    for (const method of ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"]) {
      const answer = await open.ask("/api/v1/policies/invoices", {
        method,
        ...(method === "OPTIONS" ? {} : { body: "{}" }),
      });
      expect([method, answer.status, answer.headers.get("allow")]).toEqual([method, 405, "GET, HEAD"]);
    }
    const tried = open.refusals.map(({ what }) => what);
    expect(tried).toContain("DELETE /api/v1/policies/invoices");
    // It asks for no change.
    expect(tried).not.toContain("OPTIONS /api/v1/policies/invoices");
    expect((await guarded.ask("/api/v1/pauses", { method: "POST", ...bearer(ana.token) })).status).toBe(403);
    expect(guarded.refusals.at(-1)).toMatchObject({ actor: "ana", why: expect.stringContaining("needs operate") });
    expect((await guarded.ask("/api/v1/pauses", { method: "POST" })).status).toBe(401);
    expect(guarded.refusals.at(-1)?.actor).toMatch(/^unknown@/);
  });

  it("is recorded about once an hour, however long strangers go on", async () => {
    let nowMs = 0;
    const clock = { ...systemClock, monotonicMs: () => nowMs };
    const probed = await webForTest({ story: {}, tokens: () => expired.line, clock });
    for (; nowMs < 86_400_000; nowMs += 600_000) {
      await probed.ask("/api/v1/pauses", { method: "POST" });
      await probed.ask("/api/v1/policies", bearer(expired.token));
    }
    expect(probed.refusals.length).toBeLessThan(50);
  });

  it("is recorded at most a few times, also in a flood", async () => {
    const before = open.refusals.length;
    for (let index = 0; index < 60; index += 1) await open.ask("/x", { method: "DELETE" });
    expect(open.refusals.length - before).toBeLessThan(21);
  });
});

it("refuses a sign-in that is no form", async () => {
  const headers = { "sec-fetch-site": "same-origin", "content-type": "multipart/form-data" };
  expect((await guarded.ask("/sign-in", { method: "POST", headers, body: "x" })).status).toBe(400);
});

it("refuses a sign-in that is too large", async () => {
  const [headers, body] = [{ "sec-fetch-site": "same-origin" }, new URLSearchParams({ token: "x".repeat(5_000) })];
  const answer = await guarded.ask("/sign-in", { method: "POST", headers, body });
  expect([answer.status, await answer.text()]).toEqual([413, expect.stringContaining("A body has at most 4 KiB")]);
});

it("asks a caller that is too fast to wait", async () => {
  const clock = { ...systemClock, monotonicMs: () => 0 };
  const fast = await webForTest({ story: {}, set: setOf([testPolicy()]), clock, isPaced: true });
  const answers = await Promise.all(Array.from({ length: 130 }, () => fast.ask("/api/v1/nothing")));
  const refused = answers.filter(({ status }) => status === 429);
  expect(refused).toHaveLength(30);
  expect(refused[0]?.headers.get("retry-after")).toBe("1");
});

it("keeps eight live pages of a caller, gives a place back, and ends all at its stop", async () => {
  const streams = await Promise.all(Array.from({ length: 8 }, () => open.ask("/events")));
  expect((await open.ask("/events")).status).toBe(429);
  await streams[0]?.body?.cancel();
  expect((await open.ask("/events", { method: "HEAD" })).status).toBe(200);
  expect([(await open.ask("/events")).status, open.parts.live.size]).toEqual([200, 8]);
  open.parts.live.stop();
  expect([await streams[1]?.text(), open.parts.live.size]).toEqual(["retry: 5000\n\n", 0]);
});

it("survives hostile requests: no failure, no leak, no change without its record", async () => {
  const { statuses } = await surviveHostile(400);
  for (const status of [200, 400, 401, 403, 404]) expect([status, statuses.get(status) ?? 0]).not.toEqual([status, 0]);
  expect(statuses.get(429)).toBeUndefined();
});
