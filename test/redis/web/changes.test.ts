// biome-ignore-all lint/suspicious/noTemplateCurlyInString: ${NAME} is what policy files have.
import { hash } from "node:crypto";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { once } from "../../../src/actions/once.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { canonicalJson, hashText } from "../../../src/core/stable-hash.ts";
import { pauseId } from "../../../src/model/pause.ts";
import { parseTaskId, type Task, taskId } from "../../../src/model/task.ts";
import { readTasksInFlight } from "../../../src/queue/tasks-in-flight.ts";
import { Changes } from "../../../src/store/changes.ts";
import { History } from "../../../src/store/history.ts";
import { Pauses, Quarantines } from "../../../src/store/pauses.ts";
import { redisTimeMs } from "../../../src/store/redis.ts";
import { loadLua } from "../../../src/store/script.ts";
import { changeOperations, subjectOf } from "../../../src/web/api/change-operations.ts";
import { createToken } from "../../../src/web/tokens.ts";
import { testOutcome } from "../../support/outcomes.ts";
import { storeForTest } from "../../support/redis.ts";
import { webForTest } from "../../support/web-fixture.ts";

const ana = createToken({ name: "ana", scope: "operate", services: [] });
const boss = createToken({ name: "boss", scope: "admin", services: [] });
const reader = createToken({ name: "reader", scope: "read", services: [] });
const other = createToken({ name: "other", scope: "admin", services: ["other"] });
const tokens = () => [ana, boss, reader, other].map(({ line }) => line).join("\n");

// Time flies, so that no request is refused for being too fast, and each refusal is recorded.
let flownMs = 0;
const clock = { ...systemClock, monotonicMs: () => (flownMs += 3_600_000) };
const web = await webForTest({ tokens, clock });

type Asked = { readonly by?: string; readonly key?: string; readonly headers?: Record<string, string> };

async function send(method: string, path: string, body?: unknown, { by = ana.token, key, headers }: Asked = {}) {
  const answer = await web.ask(`/api/v1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${by}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...(key === undefined ? {} : { "idempotency-key": key }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: answer.status, body: JSON.parse(await answer.text()), id: answer.headers.get("x-request-id") };
}

const post = (path: string, body: unknown, asked?: Asked) => send("POST", path, body, asked);
const changes = () => new Changes(web.store).newest(100);
const inFlight = async (policy: string) =>
  (await readTasksInFlight(web.store, ["main"], (name) => name === policy)).tasks.map(({ task }) => task.id);

/** As it stands when the process has died after it has queued this task. */
async function forgetAnswer(task: string): Promise<void> {
  const { redis, key } = web.store;
  for (const name of await redis.keys(key("request-key", "*"))) {
    const { answer, ...kept } = JSON.parse((await redis.get(name)) ?? "");
    if (answer?.tasks?.[0] === task) await redis.set(name, JSON.stringify(kept));
  }
}

const shownIn = (page: string) => /name="shown" value="(.*?)"/.exec(page)?.[1] ?? "";

describe("each change", () => {
  it("is done, and recorded with who, why, from where and under which request", async () => {
    const { items } = (await send("GET", "/failed", undefined)).body;
    const [first, second] = items.filter(
      ({ outcome }: { outcome: { policy: string } }) => outcome.policy === "invoices",
    );
    const reason = "ticket 7";
    const run = await post("/policies/deliveries/runs", { reason }, { key: "a" });
    const answers = {
      runPolicy: run,
      pause: await post("/pauses", { target: "policy:invoices", for: "4h", reason }),
      resume: await send("DELETE", `/pauses/policy:invoices?reason=${encodeURIComponent(reason)}`),
      runSyncJob: await post("/services/main/runs", { syncJob: 7, repository: "HR", reason }, { key: "b" }),
      replayFailed: await post("/failed/replay", { ids: [first.id], reason }, { key: "c" }),
      discardFailed: await post("/failed/discard", { ids: [second.id], reason }),
      acknowledge: await send("PUT", "/policies/personnel/acknowledgement", { reason }),
      endAcknowledgement: await send("DELETE", "/policies/personnel/acknowledgement?reason=ticket%207"),
      cancelTask: await post(`/tasks/${run.body.tasks[0]}/cancel`, { reason }),
    };
    const recorded = new Map((await changes()).map((change) => [change.from?.requestId, change]));
    for (const [name, { status, id }] of Object.entries(answers)) {
      const change = recorded.get(id ?? "");
      expect([name, status, change?.actor, change?.reason]).toEqual([name, 200, "ana", reason]);
      expect(change?.from?.address).toBe("unknown");
    }
    expect(answers.pause.body).toMatchObject({ scope: "policy", name: "invoices", actor: "ana" });
    expect(answers.resume.body).toMatchObject({ ended: [{ note: reason }], stillPaused: [] });
    expect(answers.runPolicy.body.tasks).toEqual([expect.stringMatching(/^deliveries__run__42__m\d+$/)]);
    expect(answers.replayFailed.body).toMatchObject({ done: [{ id: first.id, into: expect.any(String) }], left: [] });
    const page = async (id: string) =>
      (await web.ask(`/tasks/${id}`, { headers: { authorization: `Bearer ${ana.token}` } })).text();
    const { into } = answers.replayFailed.body.done[0];
    expect(await page(first.id)).toContain(`It was replayed: <a href="/tasks/${into}">`);
    expect(await page(second.id)).toMatch(/It is not on the failed list: <a href="\/changes">/);
    expect(answers.cancelTask.body).toEqual({ wasSent: false });
    expect((await send("GET", "/failed", undefined)).body.items).toHaveLength(items.length - 2);
    // A new operation belongs into this test.
    expect([...Object.keys(answers), "validateConfig"].toSorted()).toEqual(
      changeOperations.map(({ name }) => name).toSorted(),
    );
  });

  it("starts a sync job at each of two places that are asked in one millisecond", async () => {
    const nowMs = await redisTimeMs(web.store);
    const time = vi.spyOn(web.store.redis, "time").mockResolvedValue([Math.floor(nowMs / 1_000), 0]);
    const run = (repository: string, key: string) =>
      post("/services/main/runs", { syncJob: 42, repository, reason: "x" }, { key }).then(({ body }) => body.tasks[0]);
    const [hr, fin, also] = await Promise.all([run("HR", "hr"), run("FIN", "fin"), run("HR", "hr-2")]);
    time.mockRestore();
    for (const task of [hr, fin]) await forgetAnswer(task);
    expect(await Promise.all([run("FIN", "fin"), run("HR", "hr")])).toEqual([fin, hr]);
    expect(also).toBe(hr);
    expect(hr).not.toBe(fin);
    expect(await inFlight("nightly")).toEqual(expect.arrayContaining([hr, fin]));
  });

  it("does not say of a cancelled apply that nothing was sent", async () => {
    const of = { policy: "deliveries", kind: "apply", target: "syncJob 42", slotMs: 1, origin: "manual" } as const;
    const place = { service: "main", repository: null };
    const task: Task = { v: 1, id: taskId(of), ...of, ...place, covers: [], startByMs: 2 };
    const { context } = web.parts;
    await context().producer?.enqueue([task]);
    const { body, id } = await post(`/tasks/${encodeURIComponent(task.id)}/cancel`, { reason: "x" });
    expect(body).toEqual({ wasSent: null });
    const page = await web.ask(`/policies?done=${id}`, { headers: { authorization: `Bearer ${ana.token}` } });
    expect(await page.text()).toMatch(/id="done".*: x; what it has changed stays\./);
  });

  it("says of a cancelled task that nothing is sent, and by whom", async () => {
    const { tasks } = (await post("/policies/deliveries/runs", { reason: "x" }, { key: "to-cancel" })).body;
    const headers = { authorization: `Bearer ${ana.token}` };
    const body = new URLSearchParams({ reason: "ticket 7" });
    const done = await web.ask(`/cancel?of=${tasks[0]}`, { method: "POST", headers, body });
    const page = await (await web.ask(done.headers.get("location") ?? "", { headers })).text();
    expect(page).toMatch(/id="done".*: ticket 7; nothing is sent any more\./);
    expect(page).toContain("<span>cancelled by ana: ticket 7</span>");
    const story = (await send("GET", `/tasks/${tasks[0]}`)).body;
    expect(story).toMatchObject({ missingRoles: [], tasks: [{ cancelled: "cancelled by ana: ticket 7" }] });
  });

  it("takes the place of another's pause only after it was seen", async () => {
    const path = "/pause?of=policy:deliveries";
    const headers = { authorization: `Bearer ${ana.token}` };
    const [, seen] = /name="instead" value="(.*?)"/.exec(await (await web.ask(path, { headers })).text()) ?? [];
    await new Pauses(web.store).set({ ...subjectOf("policy:deliveries"), note: "move", actor: "bob", untilMs: null });
    const pause = async (instead = "") => {
      const body = new URLSearchParams({ for: "1h", reason: "ticket 9", instead });
      const answer = await web.ask(path, { method: "POST", headers, body });
      return { status: answer.status, text: await answer.text() };
    };
    const { status, text } = await pause(seen);
    expect([seen, status]).toEqual(["", 409]);
    expect(text).toMatch(/bob has paused it meanwhile: move;.*by bob until it is resumed: move\. The new pause takes/s);
    const shown = /name="instead" value="(.+?)"/.exec(text)?.[1];
    // Sent twice, as by a double click, it meets its own.
    expect([(await pause(shown)).status, (await pause(shown)).status]).toEqual([303, 303]);
    expect((await send("DELETE", "/pauses/policy:deliveries?reason=x")).body.ended).toMatchObject([{ actor: "ana" }]);
  });

  it("ends another's pause only after it was seen", async () => {
    const path = "/resume?of=policy:deliveries";
    const headers = { authorization: `Bearer ${ana.token}` };
    const pauses = new Pauses(web.store);
    const paused = { ...subjectOf("policy:deliveries"), untilMs: null };
    await pauses.set({ ...paused, note: "mine", actor: "ana" });
    const shown = shownIn(await (await web.ask(path, { headers })).text());
    await pauses.set({ ...paused, note: "restoring", actor: "bob" });
    const resume = async (seen: string) => {
      const body = new URLSearchParams({ reason: "ticket 9", shown: seen });
      const answer = await web.ask(path, { method: "POST", headers, body });
      return { status: answer.status, text: await answer.text() };
    };
    const refused = await resume(shown);
    expect([refused.status, refused.text]).toEqual([
      409,
      expect.stringContaining("bob has paused it meanwhile: restoring"),
    ]);
    expect((await resume(shownIn(refused.text))).status).toBe(303);
  });

  it("acknowledges only the state that the form has shown", async () => {
    const path = "/acknowledge?of=invoices";
    const headers = { authorization: `Bearer ${ana.token}` };
    const page = await (await web.ask(path, { headers })).text();
    const acknowledge = async (shown: string) => {
      const body = new URLSearchParams({ reason: "ticket 9", shown });
      return (await web.ask(path, { method: "POST", headers, body })).status;
    };
    expect(page).toContain("failing");
    expect([await acknowledge("another state"), await acknowledge(shownIn(page))]).toEqual([409, 303]);
    await send("DELETE", "/policies/invoices/acknowledgement?reason=x");
  });

  it("is told as not known, when Redis goes away during it", async () => {
    const gaveUp = Object.assign(new Error("gave up"), { name: "MaxRetriesPerRequestError" });
    vi.spyOn(Pauses.prototype, "set").mockRejectedValueOnce(gaveUp);
    const { status, body } = await post("/pauses", { target: "policy:invoices", for: "4h", reason: "x" });
    expect([status, body.detail]).toEqual([503, expect.stringContaining("not known whether this was done")]);
    vi.spyOn(Pauses.prototype, "set").mockRejectedValueOnce(gaveUp);
    const form = new URLSearchParams({ for: "4h", reason: "x" });
    const headers = { authorization: `Bearer ${ana.token}` };
    const page = await web.ask("/pause?of=policy:invoices", { method: "POST", headers, body: form });
    expect([page.status, await page.text()]).toEqual([503, expect.stringContaining("send the same form")]);
  });

  it("finds an old failed task by its id, and tells when a group may be a part", async () => {
    const { redis, key } = web.store;
    const { outcome, id } = (await send("GET", "/failed", undefined)).body.items.at(-1);
    const newer = Array.from({ length: 20_000 }, (_, index) => `newer__run__${index}__1`);
    await redis.zadd(key("failed"), ...newer.flatMap((one) => [Date.now() + 3_600_000, one]));
    const discard = async (meant: object) => (await post("/failed/discard", { ...meant, reason: "x" })).body;
    expect(await discard({ policy: outcome.policy })).toMatchObject({ done: [], isAll: false });
    const form = await web.ask(`/discard?of=${id}`, { headers: { authorization: `Bearer ${ana.token}` } });
    expect(form.status).toBe(200);
    expect(await discard({ ids: [id] })).toMatchObject({ done: [{ id }], left: [], isAll: true });
    const listed = async () => (await send("GET", "/failed")).body;
    expect(await listed()).toEqual({ items: [], next: null, isAll: false });
    const headers = { authorization: `Bearer ${ana.token}` };
    const csv = await web.ask("/api/v1/failed?format=csv", { headers });
    expect(csv.headers.get("syncline-is-all")).toBe("false");
    const page = await (await web.ask("/failed", { headers })).text();
    expect(page).toContain("Only the newest 20,000 failed tasks of all were looked at.");
    await redis.zrem(key("failed"), ...newer);
    expect(await listed()).toMatchObject({ isAll: true });
  });

  it("refuses a label that no policy has, instead of doing nothing", async () => {
    const { status, body } = await post("/failed/discard", { label: "team=finanze", reason: "again" });
    expect([status, body.detail]).toEqual([404, "no policy has the label team=finanze"]);
  });

  it("shows a change on the next page, however fresh the page before was", async () => {
    const still = await webForTest({ tokens, clock: { ...systemClock, monotonicMs: () => 0 } });
    const headers = { authorization: `Bearer ${ana.token}`, "content-type": "application/json" };
    const page = async () => (await still.ask("/policies/invoices", { headers })).text();
    expect(await page()).toContain("Acknowledge…");
    const body = JSON.stringify({ reason: "ticket 7" });
    await still.ask("/api/v1/policies/invoices/acknowledgement", { method: "PUT", headers, body });
    expect(await page()).toContain("Take back the acknowledgement…");
  });

  it("is read once for the page that its form leads to, however often that asks", async () => {
    const still = await webForTest({ tokens, clock: { ...systemClock, monotonicMs: () => 0 } });
    const headers = { authorization: `Bearer ${ana.token}`, "content-type": "application/json" };
    const body = JSON.stringify({ reason: "ticket 7" });
    const path = "/api/v1/policies/invoices/acknowledgement";
    const { headers: told } = await still.ask(path, { method: "PUT", headers, body });
    const read = vi.spyOn(still.store.redis, "lrange");
    const look = async () => (await still.ask(`/policies?done=${told.get("x-request-id")}`, { headers })).text();
    for (const page of [await look(), await look(), await look()])
      expect(page).toMatch(/id="done".*acknowledged.*: ticket 7\./);
    expect(read).toHaveBeenCalledTimes(1);
  });

  it("leaves a policy on trial when there is no quarantine to end", async () => {
    const quarantines = new Quarantines(web.store);
    const fails = (slotMs: number) =>
      quarantines.count({ policy: "archive", slotMs, isSuccess: false, note: "failed" }, { after: 3, forMs: 0 });
    for (const slotMs of [1_000, 2_000, 3_000]) await fails(slotMs);
    expect((await send("DELETE", "/pauses/policy:archive?reason=x")).status).toBe(409);
    expect(await fails(4_000)).toBe("quarantined");
  });

  it("needs a reason, and says what is wrong with a request, and where", async () => {
    expect((await post("/pauses", { target: "policy:invoices" })).body.errors).toMatchObject([{ pointer: "/reason" }]);
    expect((await post("/pauses", { target: "invoices", reason: "x" })).body.errors).toMatchObject([
      { pointer: "/target" },
    ]);
    expect((await post("/policies/invoices/runs", { reason: "x" })).body.errors).toMatchObject([
      { pointer: "/Idempotency-Key" },
    ]);
    const past = { target: "policy:invoices", until: "2020-01-01T00:00:00Z", reason: "x" };
    expect(await post("/pauses", past)).toMatchObject({ status: 422, body: { title: "This cannot be done" } });
    expect((await send("DELETE", "/pauses/policy:invoices?reason=x")).status).toBe(409);
    expect(await post("/failed/discard", { reason: "x" })).toMatchObject({
      status: 422,
      body: { detail: "name ids, or one of: policy NAME, label NAME=VALUE, sink NAME, all" },
    });
    expect((await post("/tasks/gone/cancel", { reason: "x" })).status).toBe(404);
    const large = { files: { "a.yaml": "x".repeat(1_100_000) } };
    expect((await post("/config/validate", large)).status).toBe(413);
    const [headers, body] = [
      { authorization: `Bearer ${ana.token}` },
      new URLSearchParams({ reason: "x".repeat(20_000) }),
    ];
    expect((await web.ask("/pause?of=policy:invoices", { method: "POST", headers, body })).status).toBe(413);
    const odd = new URLSearchParams({ reason: "x", for: "constructor" });
    expect((await web.ask("/pause?of=policy:invoices", { method: "POST", headers, body: odd })).status).toBe(400);
  });

  it("takes no end of a pause after the year 9999, and shows and ends a stored one", async () => {
    const ends = [
      { for: "3000000d" },
      { for: "99999999d" },
      { for: "999999999d" },
      { until: "9999-12-31T23:59:59-05:00" },
    ];
    const statuses = ends.map(
      async (end) => (await post("/pauses", { target: "policy:invoices", reason: "x", ...end })).status,
    );
    expect(await Promise.all(statuses)).toEqual([422, 422, 422, 400]);
    const stored = { scope: "policy", name: "invoices", note: "x", actor: "ana", untilMs: 8.64e16 } as const;
    await new Pauses(web.store).set(stored);
    expect((await send("GET", "/pauses")).body.items[0]).toMatchObject({ until: "9999-12-31T23:59:59.999Z" });
    expect((await send("DELETE", "/pauses/policy:invoices?reason=x")).status).toBe(200);
  });

  it("names what a resume left whose answer Redis lost, so that it was sent again", async () => {
    await post("/pauses", { target: "policy:invoices", reason: "x" });
    const { redis } = web.store;
    const [lua, evalsha] = [loadLua("change-pause"), redis.evalsha.bind(redis)];
    const spy = vi.spyOn(redis, "evalsha").mockImplementation(async (sha, count, ...rest) => {
      if (sha === hash("sha1", lua)) await redis.eval(lua, count, ...rest.map(String));
      return evalsha(sha, count, ...rest);
    });
    const { status, body } = await send("DELETE", "/pauses/policy:invoices?reason=x&catchUp=true");
    spy.mockRestore();
    expect({ status, body }).toMatchObject({ status: 200, body: { ended: [], caughtUp: [], left: ["invoices"] } });
    expect((await send("DELETE", "/pauses/policy:invoices?reason=x&catchUp=true")).status).toBe(409);
  });

  it.each([
    ["policy:old", 404],
    ["service:gone", 404],
    ["label:team=gone", 403],
  ])("ends the pause of %s, which is in no file any more, for an admin of all", async (target, narrowed) => {
    const pauses = new Pauses(web.store);
    const paused = { ...subjectOf(target), note: "x", actor: "ana", untilMs: null };
    await pauses.set(paused);
    const path = `/pauses/${encodeURIComponent(target)}?reason=x`;
    const end = async ({ token }: { token: string }) => (await send("DELETE", path, undefined, { by: token })).status;
    expect([await end(ana), await end(other), await end(boss)]).toEqual([403, narrowed, 200]);
    await pauses.set(paused);
    const headers = { authorization: `Bearer ${boss.token}` };
    const form = `/resume?of=${encodeURIComponent(target)}`;
    const page = await (await web.ask(form, { headers })).text();
    expect(page).toContain("No policy is held by it now");
    const body = new URLSearchParams({ reason: "x", shown: shownIn(page) });
    const done = await web.ask(form, { method: "POST", headers, body });
    expect((await web.ask(done.headers.get("location") ?? "", { headers })).status).toBe(200);
    expect((await pauses.all()).filter(({ endedBy }) => endedBy === null)).not.toContainEqual(
      expect.objectContaining(subjectOf(target)),
    );
  });

  it("does over what may be at work still only when forced", async () => {
    const { items } = (await send("GET", "/failed", undefined)).body;
    const { id } = items.find(({ outcome }: { outcome: { status: string } }) => outcome.status === "unknown");
    const asked = { ids: [id], reason: "looked" };
    expect((await post("/failed/replay", asked, { key: "f1" })).body.left).toMatchObject([{ id }]);
    expect((await post("/failed/replay", { ...asked, force: true }, { key: "f2" })).body.done).toMatchObject([{ id }]);
  });
});

describe("a resume with catch-up", async () => {
  const more = { catchUpWindowMs: 7_200_000 };
  const names = ["ran", "replayed", "runs", "waits"];
  const action = { kind: "run", syncJobs: [42, 43] } as const;
  const moreOf = (name: string) => (name === "replayed" ? { ...more, action } : more);
  const story = Object.fromEntries(names.map((name) => [name, { endings: ["skipped"] as const, more: moreOf(name) }]));
  const own = await webForTest({ story, tokens, clock });
  const headers = { authorization: `Bearer ${boss.token}`, "content-type": "application/json", "idempotency-key": "k" };
  const ask = async (method: string, path: string, body?: object) => {
    const answer = await own.ask(path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    return { id: answer.headers.get("x-request-id"), text: await answer.text() };
  };
  /** Since before the slots that are skipped. */
  const pause = () => {
    const paused = { v: 1, ...subjectOf("all"), note: "x", actor: "ana", sinceMs: 1, untilMs: null, endedBy: null };
    return own.store.redis.hset(own.store.key("pauses"), pauseId(paused), JSON.stringify(paused));
  };
  const resume = () => ask("DELETE", "/api/v1/pauses/all?reason=x&catchUp=true");

  it("names what it had no time for: in its answer, in the record, on the page", async () => {
    await pause();
    vi.spyOn(AbortSignal, "timeout").mockReturnValue(AbortSignal.abort());
    const { id, text } = await resume();
    expect(JSON.parse(text)).toMatchObject({ caughtUp: [], left: names });
    const [change] = await new Changes(own.store).newest(1);
    expect(change?.after).toEqual({ caughtUp: [], caughtUpCount: 0, left: names, leftCount: 4 });
    expect((await ask("GET", `/policies?done=${id}`)).text).toContain(
      "x; not caught up, so run by hand what was skipped: ran, replayed, runs, waits.",
    );
  });

  it("starts no sync job that a person has run since: what ended, and what still runs", async () => {
    await pause();
    const slotMs = await redisTimeMs(own.store);
    const slot = new Date(slotMs).toISOString();
    for (const policy of ["ran", "replayed"]) {
      const ended = taskId({ policy, kind: "run", target: "42", slotMs, origin: "manual" });
      const outcome = testOutcome({ taskId: ended, policy, origin: "manual", slot, finishedAt: slot });
      await new History(own.store).record(outcome);
    }
    await ask("POST", "/api/v1/policies/runs/runs", { reason: "x" });
    const { caughtUp, left } = JSON.parse((await resume()).text);
    const tasks = caughtUp.map((one: { readonly policy: string; readonly tasks: readonly string[] }) => [
      one.policy,
      one.tasks.map((id) => parseTaskId(id)?.target),
    ]);
    expect([tasks, left]).toEqual([
      [
        ["replayed", ["43"]],
        ["waits", ["42"]],
      ],
      [],
    ]);
  });
});

describe("a start under a key", () => {
  it("happens once, however often and at once it is asked for", async () => {
    // By a clock that goes on, a request that Redis holds up for two seconds would count as dead.
    const now = await web.store.redis.time();
    const time = vi.spyOn(web.store.redis, "time").mockResolvedValue(now);
    onTestFinished(() => time.mockRestore());
    const ask = () => post("/policies/personnel/runs", { reason: "again" }, { key: "k" });
    const answers = await Promise.all([ask(), ask(), ask()]);
    const bodies = [...answers, await ask()].map(({ body }) => JSON.stringify(body.tasks));
    expect(new Set(bodies).size).toBe(1);
    expect(await inFlight("personnel")).toEqual(answers[0]?.body.tasks);
    expect(
      (await changes()).filter(({ what, subject }) => what === "run" && subject === "policy personnel"),
    ).toHaveLength(1);
  });

  it("is told as an earlier one, where its form is sent again after going back to it", async () => {
    const headers = { authorization: `Bearer ${ana.token}` };
    const sendForm = async () => {
      const body = new URLSearchParams({ key: "form", reason: "ticket 8" });
      const { headers: answer } = await web.ask("/run?of=approvals", { method: "POST", headers, body });
      const told = await (await web.ask(answer.get("location") ?? "", { headers })).text();
      return /id="done".*/.exec(told)?.[0].replaceAll(/<[^>]+>/g, "");
    };
    const again = /queued policy approvals: ticket 8\. .*it was started once, [^.]*Z\. Open the form anew/;
    expect(await sendForm()).toMatch(/queued policy approvals: ticket 8\. Reload/);
    expect(await sendForm()).toMatch(again);
    expect(await inFlight("approvals")).toHaveLength(1);
  });

  it("keeps the key of its form while the first request is at work", async () => {
    const nowMs = await redisTimeMs(web.store);
    const asked = hashText(canonicalJson({ run: "approvals", reason: "slow" }), 64);
    const name = web.store.key("request-key", hashText(canonicalJson(["ana", "slow"]), 64));
    await web.store.redis.set(name, JSON.stringify({ asked, atMs: nowMs, aliveMs: nowMs + 3_600_000 }));
    let passedMs = 0;
    const time = vi.spyOn(systemClock, "monotonicMs").mockImplementation(() => (passedMs += 10_000));
    onTestFinished(() => time.mockRestore());
    const before = await inFlight("approvals");
    const headers = { authorization: `Bearer ${ana.token}` };
    const body = new URLSearchParams({ key: "slow", reason: "slow" });
    const answer = await web.ask("/run?of=approvals", { method: "POST", headers, body });
    const shown = expect.stringMatching(/under way<.*still at work: ask again.*name="key" value="slow"/s);
    expect([answer.status, await answer.text()]).toEqual([409, shown]);
    expect(await inFlight("approvals")).toEqual(before);
  });

  it("makes the same tasks after a crash between the key and its answer", async () => {
    const ask = () => post("/policies/suspended/runs", { reason: "crash" }, { key: "crash" });
    const { body } = await ask();
    await forgetAnswer(body.tasks[0]);
    expect((await ask()).body.tasks).toEqual(body.tasks);
    expect(await inFlight("suspended")).toEqual(body.tasks);
  });

  it("of a replay goes on after an outage, names all, and leaves later failures alone", async () => {
    const listed = async () => {
      const { items } = (await send("GET", "/failed", undefined)).body;
      return items.flatMap(({ id }: { id: string }) => (id.startsWith("invoices__") ? [id] : []));
    };
    const ask = () => post("/failed/replay", { policy: "invoices", reason: "again" }, { key: "outage" });
    const { producer } = web.parts.context();
    const enqueue = producer.enqueue.bind(producer);
    vi.spyOn(producer, "enqueue").mockImplementationOnce(enqueue).mockRejectedValueOnce(new Error("outage"));
    const [meant, earlier] = [await listed(), await inFlight("invoices")];
    expect((await ask()).status).toBeGreaterThanOrEqual(500);
    expect(await listed()).toHaveLength(meant.length - 1);
    const [into = ""] = (await inFlight("invoices")).filter((id) => !earlier.includes(id));
    const slot = new Date(await redisTimeMs(web.store)).toISOString();
    const failed = { status: "failed", reason: "server-error", origin: "manual", slot, finishedAt: slot } as const;
    await new History(web.store).record(testOutcome({ taskId: into, policy: "invoices", ...failed }));
    const { body } = await ask();
    const done = expect.arrayContaining(meant.map((id: string) => ({ id, into })));
    const left = [{ id: into, why: expect.stringContaining("after the first request") }];
    expect([body, body.done.length]).toEqual([{ done, left, isAll: true }, meant.length]);
    expect(await listed()).toEqual([into]);
  });

  it("is waited for as long as it shows that it is at work, up to a limit", async () => {
    const store = await storeForTest();
    const acted: string[] = [];
    const end = Promise.withResolvers<void>();
    const request = (who: string) =>
      once(store, { caller: "ana", key: "long", asked: "x" }, async () => {
        acted.push(who);
        await end.promise;
        return who;
      });
    const first = request("first");
    const name = () => store.redis.keys(store.key("request-key", "*")).then(([found = ""]) => found);
    const kept = async () => JSON.parse((await store.redis.get(await name())) ?? "{}");
    await expect.poll(kept).toHaveProperty("aliveMs");
    end.resolve();
    expect(await first).toBe("first");
    const answered = await kept();
    // As it stands while the first request is at work for long.
    const { answer: _, ...open } = answered;
    const nowMs = await redisTimeMs(store);
    const atWork = { ...open, atMs: nowMs - 60_000, aliveMs: nowMs + 3_600_000 };
    await store.redis.set(await name(), JSON.stringify(atWork));
    const asked = vi.spyOn(store.redis, "get");
    const second = request("second");
    await expect.poll(() => acted.length > 1 || asked.mock.calls.length > 1).toBe(true);
    await store.redis.set(await name(), JSON.stringify(answered));
    expect([await second, acted]).toEqual(["first", ["first"]]);
    await store.redis.set(await name(), JSON.stringify(atWork));
    let passedMs = 0;
    vi.spyOn(systemClock, "monotonicMs").mockImplementation(() => (passedMs += 10_000));
    await expect(request("third")).rejects.toThrow("still at work");
  });

  it("is refused when the key stands for another request, but not for another caller", async () => {
    const run = (policy: string, by: string) => post(`/policies/${policy}/runs`, { reason: "x" }, { key: "same", by });
    const first = await run("deliveries", ana.token);
    expect((await run("approvals", ana.token)).status).toBe(422);
    const own = await run("deliveries", boss.token);
    expect([own.status, own.body.tasks[0] === first.body.tasks[0]]).toEqual([200, false]);
  });
});

describe("a change is refused, and the attempt recorded", () => {
  const lastRefusal = () => web.refusals.at(-1);

  it("when it comes from another site, with a cookie or without a word on where from", async () => {
    const signedIn = await web.ask("/sign-in", {
      method: "POST",
      body: new URLSearchParams({ token: ana.token }),
      headers: { "sec-fetch-site": "same-origin" },
    });
    const cookie = signedIn.headers.get("set-cookie")?.split(";")[0] ?? "";
    const body = JSON.stringify({ target: "policy:invoices", reason: "x" });
    const from = (headers: Record<string, string>) =>
      web.ask("/api/v1/pauses", { method: "POST", body, headers: { "content-type": "application/json", ...headers } });
    for (const site of ["cross-site", "same-site"])
      expect((await from({ cookie, "sec-fetch-site": site })).status).toBe(403);
    expect((await from({ cookie })).status).toBe(403);
    expect((await from({ cookie, authorization: `Bearer ${ana.token}` })).status).toBe(403);
    expect(lastRefusal()).toMatchObject({ actor: "ana", why: expect.stringContaining("another site") });
    expect((await from({ cookie, "sec-fetch-site": "same-origin" })).status).toBe(200);
    expect((await send("DELETE", "/pauses/policy:invoices?reason=x")).status).toBe(200);
  });

  it("unless its page, its own address, or a program's token says where it comes from", async () => {
    const oidc =
      'oidc: { issuer: "https://id.example.com", clientId: a, clientSecretFile: /no/such/file, publicUrl: "https://syncline.example.com" }';
    const auth = () => `${oidc}\ngrants: [{ claim: groups, value: a, scope: read }]\n`;
    const own = await webForTest({ story: {}, tokens, auth, clock });
    const allowed: string[] = [];
    for (const site of [undefined, "same-origin", "none", "same-site", "cross-site", "x"])
      for (const origin of [
        undefined,
        "https://syncline.example.com",
        "https://evil.example.com",
        "http://syncline.example.com",
        "null",
      ])
        for (const cookie of [undefined, "a=b"]) {
          const named = { "sec-fetch-site": site, origin, cookie, authorization: `Bearer ${ana.token}` };
          const headers = Object.entries(named).filter((pair): pair is [string, string] => pair[1] !== undefined);
          const { status } = await own.ask("/api/v1/pauses/policy:gone?reason=x", { method: "DELETE", headers });
          // Past the admission, there is no such policy.
          expect([403, 404]).toContain(status);
          if (status === 404) allowed.push(`${site} ${origin} ${cookie}`);
        }
    const byPage = allowed.filter((one) => /^(same-origin|none) /.test(one));
    expect(byPage).toHaveLength(20);
    expect(allowed.filter((one) => !byPage.includes(one))).toEqual([
      "undefined undefined undefined",
      "undefined https://syncline.example.com undefined",
      "undefined https://syncline.example.com a=b",
    ]);
  });

  it("when the scope is too small", async () => {
    const all = { target: "all", reason: "x" };
    expect((await post("/pauses", { target: "policy:invoices", reason: "x" }, { by: reader.token })).status).toBe(403);
    expect(lastRefusal()).toMatchObject({ actor: "reader", what: "POST /api/v1/pauses" });
    const [headers, body] = [{ authorization: `Bearer ${reader.token}` }, new URLSearchParams({ reason: "x" })];
    expect((await web.ask("/pause?of=policy:invoices", { method: "POST", headers, body })).status).toBe(403);
    expect(lastRefusal()?.what).toBe("POST /pause of policy:invoices");
    const shown = await (await web.ask("/pause?of=policy:invoices", { headers })).text();
    expect(shown).toMatch(/may read, and this needs operate\./);
    for (const target of ["all", "service:main", "label:team=finance"]) {
      expect((await post("/pauses", { target, reason: "x" })).status).toBe(403);
      expect(lastRefusal()?.why).toContain("needs admin");
    }
    expect((await post("/pauses", all, { by: other.token })).status).toBe(403);
    const label = { target: "label:team=finance", reason: "x" };
    expect((await post("/pauses", label, { by: other.token })).status).toBe(403);
    expect((await post("/pauses", label, { by: boss.token })).body).toMatchObject({
      scope: "label",
      name: "team=finance",
    });
    expect((await post("/pauses", { target: "service:main", reason: "x" }, { by: boss.token })).status).toBe(200);
    expect((await send("DELETE", "/pauses/service:main?reason=x", undefined, { by: boss.token })).status).toBe(200);
    expect((await changes()).some(({ subject }) => subject === "all policies")).toBe(false);
  });

  it("when it concerns a service that the caller does not see: as if it were not there", async () => {
    const by = other.token;
    const [task] = await inFlight("personnel");
    const asked = [
      await post("/pauses", { target: "policy:invoices", reason: "x" }, { by }),
      await post("/pauses", { target: "service:main", reason: "x" }, { by }),
      await post("/policies/invoices/runs", { reason: "x" }, { by, key: "o1" }),
      await post("/services/main/runs", { syncJob: 1, reason: "x" }, { by, key: "o2" }),
      await post(`/tasks/${task}/cancel`, { reason: "x" }, { by }),
      await post("/failed/discard", { policy: "invoices", reason: "x" }, { by }),
    ];
    expect(asked.map(({ status }) => status)).toEqual(asked.map(() => 404));
    const discarded = await post("/failed/discard", { all: true, reason: "x" }, { by });
    expect(discarded.body).toEqual({ done: [], left: [], isAll: true });
    expect((await send("GET", "/failed", undefined)).body.items).not.toEqual([]);
    expect(await inFlight("personnel")).toEqual([task]);
    expect(lastRefusal()?.actor).toBe("other");
  });

  it("when the server is read-only, also for an admin", async () => {
    const quiet = await webForTest({ story: {}, tokens, isReadOnly: true });
    const headers = { authorization: `Bearer ${boss.token}`, "content-type": "application/json" };
    const body = JSON.stringify({ target: "all", reason: "x" });
    expect((await quiet.ask("/api/v1/pauses", { method: "POST", headers, body })).status).toBe(405);
    const form = await quiet.ask("/pause?of=all", { headers });
    expect([form.status, await form.text()]).toEqual([403, expect.stringContaining("This server is read-only")]);
    expect(quiet.refusals).toMatchObject([{ actor: "boss", what: "POST /api/v1/pauses" }]);
  });

  it("when it is the eleventh at once", async () => {
    const fast = await webForTest({ story: {}, tokens, clock: { ...systemClock, monotonicMs: () => 0 } });
    const headers = { authorization: `Bearer ${ana.token}` };
    const ask = () => fast.ask("/api/v1/pauses/policy:x?reason=x", { method: "DELETE", headers });
    const answers = await Promise.all(Array.from({ length: 11 }, ask));
    expect(answers.map(({ status }) => status)).toEqual([...Array<number>(10).fill(404), 429]);
  });
});

it("checks policy files without taking them, and says what is wrong where", async () => {
  const files = { "a.yaml": "apiVersion: syncline/v1\npolicies:\n  - { name: x }\n" };
  const { body } = await post("/config/validate", { files });
  expect(body).toMatchObject({ ok: false, problems: [{ file: "a.yaml", line: 3 }] });
  const valid = {
    "b.yaml":
      'apiVersion: syncline/v1\nservices:\n  m: { baseUrl: "https://m.example.com", token: { env: T } }\npolicies:\n  - { name: x, service: m, repository: HR, schedule: { every: 1h }, run: { syncJobs: [1] } }\n',
  };
  expect((await post("/config/validate", { files: valid })).body).toEqual({ ok: true, policies: 1, problems: [] });
  const mapping = '{ activity: { sample: /etc/hostname, id: "string(item.id)" } }';
  const probing = { "b.yaml": valid["b.yaml"].replace("token:", `mapping: ${mapping}, token:`) };
  expect((await post("/config/validate", { files: probing })).body).toMatchObject({ ok: true });
  const filled = { "b.yaml": valid["b.yaml"].replace("name: x,", "name: x, labels: { k: '${OF_THE_SERVER}' },") };
  const unset = await post("/config/validate", { files: filled });
  expect(unset.body.problems).toMatchObject([{ message: "the environment variable OF_THE_SERVER is not set" }]);
  const given = { files: filled, variables: { OF_THE_SERVER: "own" } };
  expect((await post("/config/validate", given)).body).toMatchObject({ ok: true });
});
