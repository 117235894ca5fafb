// A caller who is held to labels, against every operation and page: nothing of the policies of
// others comes out, their names included, and nothing of theirs can be changed.
import { expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { readTasksInFlight } from "../../../src/queue/tasks-in-flight.ts";
import { Changes } from "../../../src/store/changes.ts";
import { FailedTasks } from "../../../src/store/failed-tasks.ts";
import { Leases } from "../../../src/store/leases.ts";
import { StartJournal } from "../../../src/store/start-journal.ts";
import { operations } from "../../../src/web/api/operations.ts";
import { createToken } from "../../../src/web/tokens.ts";
import { liveProcess } from "../../support/kept-set.ts";
import { webForTest } from "../../support/web-fixture.ts";
import { type Story, setOfStory } from "../../support/web-story.ts";

// All at one service, and of one sync job. No word of Syncline has "zebra" in it.
const theirs = { labels: { team: "zebra" }, owner: "zebra-owner" };
const every = { kind: "every", everyMs: 3_600_000, spreadMs: 0 } as const;
const root = { name: "zebra-nightly", schedule: every };
const story: Story = {
  ours: { endings: ["ok", "ok", "overlap", "failed"], more: { labels: { team: "finance", stage: "prod" } } },
  "ours-in-test": { endings: ["ok", "open"], more: { labels: { team: "finance", stage: "zebra" } } },
  "zebra-nightly": { endings: ["ok", "failed", "unknown", "skipped", "conflicts"], more: theirs },
  "zebra-last": {
    endings: ["ok", "failed"],
    more: { ...theirs, after: { policy: "zebra-nightly", on: ["succeeded"], withinMs: 60_000, root } },
  },
  "zebra-only": { endings: ["failed"], more: { ...theirs, service: "zebra-service" } },
};
const set = {
  ...setOfStory(story),
  notifications: {
    ...{ groupWaitMs: 0, muteTiming: undefined },
    digests: [{ name: "zebra-digest", schedule: every, timezone: "UTC", to: [], label: "team=zebra" } as never],
  },
};

// Of an hour in which the policies already were, also when the next one begins meanwhile.
const hourMs = 3_600_000;
const slot = new Date(Math.floor(Date.now() / hourMs) * hourMs).toISOString();

const held = createToken({ name: "ana", scope: "admin", services: [], labels: ["team=finance", "stage=prod"] });
const boss = createToken({ name: "boss", scope: "admin", services: [] });
const operator = createToken({ name: "op", scope: "operate", services: [], labels: ["team=finance"] });
const both = createToken({ name: "both", scope: "read", services: ["zebra-service"], labels: ["team=finance"] });
// Time flies, so that no request is refused for being too fast, and each refusal is recorded.
let flownMs = 0;
const clock = { ...systemClock, monotonicMs: () => (flownMs += 3_600_000) };
const web = await webForTest({
  story,
  set,
  clock,
  tokens: () => [held, boss, both, operator].map(({ line }) => line).join("\n"),
});
const rejected = { sinceMs: 1, where: "zebra.yaml:3", message: "policy zebra-nightly is wrong", problems: 1 };
await liveProcess(web.store, { rejected });

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
}

const reason = "ticket 7";

async function ask({ method, path, body }: Asked, { token } = held) {
  const isPage = !path.startsWith("/api/");
  const headers: Record<string, string> = { authorization: `Bearer ${token}` };
  if (method !== "GET") headers["idempotency-key"] = `k${flownMs}`;
  if (body !== undefined && !isPage) headers["content-type"] = "application/json";
  const sent = isPage ? new URLSearchParams(body as Record<string, string>) : JSON.stringify(body);
  const answer = await web.ask(path, { method, headers, ...(body === undefined ? {} : { body: sent }) });
  return { status: answer.status, text: await answer.text(), to: answer.headers.get("location") ?? "" };
}

const get = async (path: string, by = held) => ask({ method: "GET", path }, by);
const change = (method: string, path: string, body?: unknown) => ({ method, path: `/api/v1${path}`, body });
const asBoss = async (method: string, path: string, body: object = {}) =>
  JSON.parse((await ask(change(method, path, { reason: "zebra", ...body }), boss)).text);
const [theirTask] = (await asBoss("POST", "/policies/zebra-nightly/runs")).tasks;
const [ourTask] = (await asBoss("POST", "/policies/ours/runs", { reason })).tasks;
await asBoss("POST", "/pauses", { target: "policy:zebra-only" });
await asBoss("POST", "/pauses", { target: "label:team=zebra" });
await asBoss("PUT", "/policies/zebra-last/acknowledgement");
const failed = async () => (await new FailedTasks(web.store).all()).map(({ outcome }) => outcome.taskId);
const [theirFailed, ourFailed] = ["zebra", "ours"].map((name) =>
  failed().then((ids) => ids.find((id) => id.startsWith(name))),
);

/** What shows something. `NAME`: a policy, `TASK`: a task that ended badly. */
const shown = [
  ...operations.map(({ path }) =>
    `/api/v1${path}`
      .replace("services/{name}", "services/SERVICE")
      .replace("{service}/{repository}/{list}", "SERVICE/HR/conflictDetails")
      .replace(/\{name\}|\{policy\}/, "NAME")
      .replace("{id}", "TASK")
      .replace("{instant}", slot),
  ),
  ...["policy=NAME", "label=team=TEAM", "service=SERVICE", "after=NAME", "after=TASK", "after=1~TASK"].flatMap(
    (query) => ["policies", "outcomes", "failed", "audit"].map((list) => `/api/v1/${list}?${query}`),
  ),
  ...["ndjson", "csv"].flatMap((form) =>
    ["outcomes", "failed", "audit"].map((list) => `/api/v1/${list}?format=${form}`),
  ),
  ...["/api/v1/policies/-/by-hand", "/", "/policies", "/policies/NAME", "/policies/NAME/by-hand", "/tasks/TASK"],
  ...[`/policies/NAME/days/${slot.slice(0, 10)}`, `/policies/NAME/slots/${slot}`, "/failed", "/by-hand", "/next"],
  ...[`/next?at=${slot}`, "/feeds", "/feeds/SERVICE/HR/conflictDetails", "/audit", "/audit?policy=NAME", "/services"],
  ...["/changes", "/api", "/policies?label=team=TEAM", "/policies?q=NAME", "/policies?service=SERVICE"],
  ...["/pause?of=policy:NAME", "/pause?of=all", "/pause?of=service:SERVICE", "/pause?of=label:team=TEAM"],
  ...["/resume?of=policy:NAME", "/run?of=NAME", "/run-sync-job", "/acknowledge?of=NAME", "/unacknowledge?of=NAME"],
  ...["/replay?of=TASK", "/discard?of=TASK", "/cancel?of=TASK"],
];
const naming = (path: string, names: Readonly<Record<string, string>>) =>
  path.replace(/NAME|TASK|TEAM|SERVICE/g, (word) => names[word] ?? "");

it("shows a caller who is held to labels nothing of other policies, and no changes", async () => {
  const names = { NAME: "ours", TASK: (await ourFailed) ?? "", TEAM: "finance", SERVICE: "main" };
  const refused: string[] = [];
  const own = [`/tasks/${ourTask}`, `/api/v1/tasks/${ourTask}`];
  for (const path of [...shown.map((one) => naming(one, names)), ...own]) {
    const { status, text } = await get(path);
    expect([path, text.match(/.{40}(zebra|ours-in-test|boss).{20}/) ?? ""]).toEqual([path, ""]);
    if (status === 403) refused.push(path);
    // A name of a policy or a team is no cursor and no filter of every list.
    else
      expect([path, status]).toEqual([
        path,
        /after=|cancel|audit\?service|policies\?policy|failed\?(policy|service)/.test(path) ? expect.any(Number) : 200,
      ]);
  }
  // What belongs to no policy, or to all.
  expect(refused).toEqual([
    ...["sinks", "config", "changes", "feeds", "feeds/main/HR/conflictDetails/items", "conflicts", "approvals"].map(
      (path) => `/api/v1/${path}`,
    ),
    ...["/api/v1/policies/-/by-hand", "/by-hand", "/feeds", "/feeds/main/HR/conflictDetails", "/changes"],
    ...["/pause?of=all", "/pause?of=service:main", "/pause?of=label:team=finance", "/run-sync-job"],
  ]);
});

it("answers to a name of another policy as to one that never was", async () => {
  const names = { NAME: "zebra-nightly", TASK: (await theirFailed) ?? "", TEAM: "zebra", SERVICE: "zebra-service" };
  const told = async (path: string) => {
    const { status, text } = await get(path);
    return [path.replaceAll(/zebra|gnome/g, "…"), status, leveled(text)];
  };
  for (const path of [...shown.map((one) => naming(one, names)), `/tasks/${theirTask}`, `/api/v1/tasks/${theirTask}`])
    if (path.includes("zebra")) expect(await told(path)).toEqual(await told(path.replaceAll("zebra", "gnome")));
});

/** Without what differs from one request to the next. */
const leveled = (text: string) =>
  text
    .replaceAll(/zebra|gnome/g, "…")
    .replaceAll(/"[\w-]{12}"|<code>[\w-]{12}<|urn:request:[\w-]+|Request [\w-]+|\d{4}-\d\d-\d\dT[\d:.]+Z/g, "");

it("names no task of others that one's own task waits for", async () => {
  const inFlight = (await readTasksInFlight(web.store, ["main"], () => true)).tasks.map(({ task }) => task);
  const holder = inFlight.find((task) => task.id === theirTask);
  if (holder === undefined) throw new Error("their task is not in flight");
  await new StartJournal(web.store).claim(theirTask, "a worker");
  await new Leases(web.store).acquire(holder, "a worker");
  const { tasks } = JSON.parse((await get(`/api/v1/tasks/${ourTask}`)).text);
  expect(tasks[0].waitsFor).toBe("a task that you may not see");
});

it("changes nothing of other policies, and records each refusal", async () => {
  const id = (await theirFailed) ?? "";
  const all = {
    pause: change("POST", "/pauses", { target: "policy:zebra-nightly", reason }),
    "pause a label": change("POST", "/pauses", { target: "label:team=zebra", reason }),
    "pause a service": change("POST", "/pauses", { target: "service:main", reason }),
    "pause all": change("POST", "/pauses", { target: "all", reason }),
    resume: change("DELETE", "/pauses/policy:zebra-only?reason=x"),
    "resume a label": change("DELETE", "/pauses/label:team=zebra?reason=x"),
    runPolicy: change("POST", "/policies/zebra-nightly/runs", { reason }),
    runSyncJob: change("POST", "/services/main/runs", { syncJob: 42, repository: "HR", reason }),
    acknowledge: change("PUT", "/policies/zebra-nightly/acknowledgement", { reason }),
    endAcknowledgement: change("DELETE", "/policies/zebra-last/acknowledgement?reason=x"),
    "replay of a policy": change("POST", "/failed/replay", { policy: "zebra-nightly", force: true, reason }),
    "discard of a policy": change("POST", "/failed/discard", { policy: "zebra-nightly", reason }),
    cancelTask: change("POST", `/tasks/${theirTask}/cancel`, { reason }),
    ...Object.fromEntries(
      [
        "pause?of=policy:zebra-nightly",
        "pause?of=label:team=zebra",
        "resume?of=policy:zebra-only",
        "run?of=zebra-nightly",
      ]
        .concat(["acknowledge?of=zebra-nightly", "unacknowledge?of=zebra-last", `cancel?of=${theirTask}`])
        .concat([`replay?of=${id}`, `discard?of=${id}`, "run-sync-job?of="])
        .map((page) => [
          page,
          { method: "POST", path: `/${page}`, body: { reason, for: "4h", service: "main", syncJob: "42" } },
        ]),
    ),
  };
  const before = await stateOf();
  for (const [name, one] of Object.entries(all)) {
    const refusals = web.refusals.length;
    const { status } = await ask(one);
    expect([name, status]).toEqual([name, expect.toSatisfy((code: number) => [403, 404, 409].includes(code))]);
    expect([name, web.refusals.slice(refusals)]).toEqual([name, [expect.objectContaining({ actor: "ana" })]]);
  }
  // These take what they name from the caller's own list, where it is not: named by its id, it is
  // recorded as a refusal, which the answer does not tell.
  for (const [verb, group] of ["replay", "discard"].flatMap((one) => [
    [one, { ids: [id] }] as const,
    [one, { label: "team=zebra" }] as const,
    [one, { sink: "zebra" }] as const,
  ])) {
    const refusals = web.refusals.length;
    const { status, text } = await ask(change("POST", `/failed/${verb}`, { ...group, reason }));
    const answer = "label" in group ? [404, undefined] : [200, []];
    expect([verb, group, status, JSON.parse(text).done]).toEqual([verb, group, ...answer]);
    const why = "ids" in group ? id : "label" in group ? group.label : undefined;
    const refused = { actor: "ana", what: `POST /api/v1/failed/${verb}`, why: expect.stringContaining(why ?? "") };
    expect(web.refusals.slice(refusals)).toMatchObject(why === undefined ? [] : [refused]);
  }
  const refusals = web.refusals.length;
  expect((await ask(change("POST", "/failed/discard", { ids: ["gnome__run__42__1"], reason }))).status).toBe(200);
  expect(web.refusals).toHaveLength(refusals);
  expect(await stateOf()).toEqual(before);
  // Their own they may: also all of the list, which is theirs alone.
  const dealt = JSON.parse((await ask(change("POST", "/failed/discard", { all: true, reason }))).text);
  expect(dealt.done).toEqual([{ id: await ourFailed }]);
  expect(await failed()).toContain(id);
  expect((await ask(change("POST", "/pauses", { target: "policy:ours", reason }))).status).toBe(200);
  expect((await ask(change("POST", `/tasks/${ourTask}/cancel`, { reason }))).status).toBe(200);
});

async function stateOf() {
  const { items } = JSON.parse((await get("/api/v1/pauses", boss)).text);
  const { tasks } = await readTasksInFlight(web.store, ["main", "zebra-service"], () => true);
  const changes = await new Changes(web.store).newest(100);
  return { pauses: items, failed: await failed(), changes, tasks: tasks.map(({ task }) => task.id).toSorted() };
}

it("lets those who are held to labels pause what has all of them, and no more", async () => {
  const own = "label:team=finance,stage=prod";
  const pausing = (by: typeof held, target = own) => ask(change("POST", "/pauses", { target, reason }), by);
  expect((await pausing(held, "label:team=finance")).status).toBe(403);
  expect((await pausing(held, "label:stage=prod")).status).toBe(403);
  expect((await pausing(both, "label:team=finance")).status).toBe(403);
  const done = await pausing(operator, "label:team=finance,stage=zebra");
  expect([done.status, JSON.parse(done.text).matched ?? {}]).toEqual([200, {}]);
  expect((await pausing(held)).status).toBe(200);
  expect((await get("/policies")).text).toContain("Resume label stage=prod,team=finance…");
  expect((await get("/policies?label=stage=prod,team=finance", boss)).text).toMatch(/1 of 5 policies/);
  expect((await get("/policies/ours")).text).toContain("ticket 7");
  const resumed = await ask(change("DELETE", `/pauses/${encodeURIComponent(own)}?reason=x`), held);
  expect([resumed.status, JSON.parse(resumed.text).ended]).toEqual([200, [expect.objectContaining({ actor: "ana" })]]);
});

it("holds a caller to services and labels at once, and tells them so", async () => {
  const me = JSON.parse((await get("/api/v1/me", both)).text);
  expect(me).toEqual({ name: "both", scope: "read", services: ["zebra-service"], labels: { team: "finance" } });
  expect(JSON.parse((await get("/api/v1/policies", both)).text).items).toEqual([]);
});

it("keeps what is read for one view from every other", async () => {
  const still = await webForTest({
    ...{ story: {}, set, clock: { ...systemClock, monotonicMs: () => 0 } },
    tokens: () => `${boss.line}\n${held.line}`,
  });
  const page = async ({ token }: typeof held) =>
    (await still.ask("/policies", { headers: { authorization: `Bearer ${token}` } })).text();
  expect(await page(boss)).toContain("zebra");
  expect(await page(held)).not.toContain("zebra");
});

it("foresees what follows a policy that the caller may not see, without its times", async () => {
  const after = { policy: "zebra-nightly", on: ["succeeded" as const], withinMs: 60_000, root };
  const report = { endings: [], more: { labels: { team: "finance", stage: "prod" }, schedule: undefined, after } };
  const own = await webForTest({ story: { ...story, report }, tokens: () => held.line });
  const headers = { authorization: `Bearer ${held.token}` };
  const { slots } = JSON.parse(await (await own.ask("/api/v1/plan?hours=1", { headers })).text());
  const foreseen = slots.filter(({ policy }: { policy: string }) => policy === "report");
  expect(foreseen).toEqual([expect.objectContaining({ state: "started", begins: null, ends: null, clashes: [] })]);
});
