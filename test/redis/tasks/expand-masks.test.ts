// A run over the sync jobs that masks name, done by two workers at once: whoever is held up, what
// is told of it is true, and both queue the same tasks.
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { silentLog } from "../../../src/core/event-log.ts";
import type { SlotRecord } from "../../../src/model/slot-record.ts";
import { type Task, targetFromMasks } from "../../../src/model/task.ts";
import type { Attempt } from "../../../src/model/task-processing.ts";
import { readPolicyLines } from "../../../src/queries/policy-lines.ts";
import { SyncService, staticToken } from "../../../src/service/client.ts";
import { History } from "../../../src/store/history.ts";
import { NotifyStore } from "../../../src/store/notify-store.ts";
import { acknowledgePolicy, readPolicyStates, rememberStates } from "../../../src/store/policy-states.ts";
import { redisTimeMs } from "../../../src/store/redis.ts";
import { SlotLedger } from "../../../src/store/slot-ledger.ts";
import { StartJournal } from "../../../src/store/start-journal.ts";
import { readTroubles } from "../../../src/store/troubles.ts";
import { endAbandoned } from "../../../src/tasks/finish.ts";
import type { ProcessDependencies } from "../../../src/tasks/process-task.ts";
import { createProcessTask } from "../../../src/tasks/process-task.ts";
import { createRecorder } from "../../../src/tasks/recorder.ts";
import { type ListServer, startListServer } from "../../support/list-server.ts";
import { testOutcome } from "../../support/outcomes.ts";
import { testPolicy } from "../../support/policies.ts";
import { redisForTest, storeForTest } from "../../support/redis.ts";
import { shiftingMasks } from "../../support/shifting-masks.ts";
import { testDeps } from "../../support/task-deps.ts";

const target = redisForTest();
let server: ListServer;
let service: SyncService;

const store = await storeForTest(target);
const journal = new StartJournal(store);
const history = new History(store);
beforeEach(async () => {
  server = await startListServer({ syncjobsmasks: masksOf(7, 8) });
  service = new SyncService({ baseUrl: server.url, token: staticToken("secret"), retries: 0 });
});
afterEach(async () => {
  service.close();
  await server.stop();
});

const masksOf = (...jobs: number[]) => jobs.map((syncJobId, index) => ({ maskId: index + 1, syncJobId }));
const lastAttempt: Attempt = { attempt: 8, attemptsMax: 8, signal: new AbortController().signal };
const policy = testPolicy({ action: { kind: "run", fromMasks: {} } });

const taskOf = (slotMs: number): Task => ({
  v: 1,
  id: `nightly__run__masks__${slotMs / 1_000}`,
  kind: "run",
  policy: "nightly",
  service: "main",
  repository: "HR",
  target: targetFromMasks,
  slotMs,
  origin: "schedule",
  covers: [],
  startByMs: 9_999_999_999_999,
});
const childrenOf = (slotMs: number) => [7, 8].map((job) => `nightly__run__${job}__${slotMs / 1_000}`);

/** One worker: its step, what it put into the queue, and which sync jobs it told the chains of. */
function newWorker(given: Partial<ProcessDependencies> = {}, attempt = lastAttempt) {
  const queued: string[] = [];
  const chained: (readonly string[])[] = [];
  const deps = testDeps(store, {
    policy: () => policy,
    service: () => service,
    journal,
    enqueue: async (tasks) => void queued.push(...tasks.map(({ id }) => id)),
    chains: { noteFannedOut: async (_, targets) => void chained.push(targets), taskOver: async () => {} },
    ...given,
  });
  const step = createProcessTask(deps, createRecorder(history, silentLog));
  return { queued, chained, step: (task: Task) => step(task, attempt) };
}

it("a run over masks reads them again when a link to a later page has died", async () => {
  let isDead = true;
  const paging = createServer((request, response) => {
    const isSecond = request.url?.includes("page=2") === true;
    if (isSecond && isDead) {
      isDead = false;
      return response.writeHead(404).end();
    }
    const next = isSecond ? {} : { "@odata.nextLink": `${request.url?.split("?")[0]}?page=2` };
    return response.end(JSON.stringify({ value: isSecond ? masksOf(7, 8).slice(1) : masksOf(7), ...next }));
  });
  paging.listen(0, "127.0.0.1");
  await once(paging, "listening");
  onTestFinished(() => void paging.close());
  const baseUrl = `http://127.0.0.1:${(paging.address() as AddressInfo).port}`;
  const client = new SyncService({ baseUrl, token: staticToken("secret"), retries: 0 });
  onTestFinished(() => client.close());
  const { queued, step } = newWorker({ service: () => client }, { ...lastAttempt, attempt: 1 });
  const slotMs = 120_000;
  expect(await step(taskOf(slotMs))).toMatchObject({ verdict: "retry" });
  expect(queued).toEqual([]);
  await step(taskOf(slotMs));
  expect(queued).toEqual(childrenOf(slotMs));
});

it("a run over masks finds what slipped over a page boundary at a deletion", async () => {
  const masks = masksOf(6, 7, 8, 9, 10);
  let readings = 0;
  const client = await shiftingMasks(masks, () => {
    readings += 1;
    if (readings === 1) masks.shift();
  });
  const warned: string[] = [];
  const log = { ...silentLog, warn: (event: string) => void warned.push(event) };
  const { queued, step } = newWorker({ service: () => client, log });
  expect(await step(taskOf(130_000))).toMatchObject({ verdict: "complete" });
  expect(queued).toEqual([7, 8, 9, 10].map((job) => `nightly__run__${job}__130`));
  expect([readings, warned]).toEqual([3, []]);
});

it("a run over masks that shift at each reading takes the fourth, and says so", async () => {
  const masks = masksOf(1, 2, 3, 4, 5, 6, 7, 8);
  const client = await shiftingMasks(masks, () => void masks.shift());
  const warned: unknown[] = [];
  const log = { ...silentLog, warn: (event: string, fields?: object) => void warned.push({ event, ...fields }) };
  const { queued, step } = newWorker({ service: () => client, log });
  const task = taskOf(140_000);
  expect(await step(task)).toMatchObject({ verdict: "complete" });
  expect(queued).toEqual([4, 5, 7, 8].map((job) => `nightly__run__${job}__140`));
  expect(warned).toEqual([{ event: "run.masks-unsure", policy: "nightly", taskId: task.id, readings: 4 }]);
});

it("a run over masks reads * as any text of a name and ? as one character, no more", async () => {
  const names = ["Contracts/HR", "Contracts [old]", ".Contracts", "", "ab.aabc.", "Cöntracts", "C𝄞ntracts"];
  server.lists["syncjobsmasks"] = names.map((name, index) => ({ maskId: index, syncJobId: index, name }));
  const found = async (name: string, slotMs: number) => {
    const named = testPolicy({ action: { kind: "run", fromMasks: { name } } });
    const { queued, step } = newWorker({ policy: () => named });
    await step(taskOf(slotMs));
    return queued.map((id) => names[Number(id.split("__")[2])]);
  };
  expect(await found("*", 150_000)).toEqual(names);
  expect(await found("Contracts*", 151_000)).toEqual(["Contracts/HR", "Contracts [old]"]);
  expect(await found("*?Contracts", 152_000)).toEqual([".Contracts"]);
  expect(await found("Contracts [old]", 153_000)).toEqual(["Contracts [old]"]);
  expect(await found("*a?b*", 154_000)).toEqual(["ab.aabc."]);
  expect(await found("C?ntracts", 155_000)).toEqual(["Cöntracts", "C𝄞ntracts"]);
  expect(await found("{Contracts/HR,}", 156_000)).toEqual([]);
  expect(await found("contracts*", 157_000)).toEqual([]);
});

it("a run over masks frees its followers' wait once its tasks are queued", async () => {
  const events: string[] = [];
  const worker = newWorker({
    enqueue: async () => void events.push("queued"),
    chains: {
      noteFannedOut: async () => void events.push("expanded"),
      taskOver: async ({ id }) => void events.push(`released ${id}`),
    },
  });
  const task = taskOf(90_000);
  expect(await worker.step(task)).toMatchObject({ verdict: "complete" });
  expect(events).toEqual(["queued", "expanded", `released ${task.id}`]);
});

it("a run over masks names its sync jobs to the notifier once, in the fixing step", async () => {
  const told = { ...policy, notify: [] };
  const task = taskOf(95_000);
  const dying = newWorker({ policy: () => told, enqueue: async () => Promise.reject(new Error("died")) });
  await dying.step(task).catch(() => {});
  await newWorker({ policy: () => told }).step(task);
  await newWorker().step(taskOf(96_000));
  const { events } = await new NotifyStore(store).read(10);
  expect(events).toMatchObject([{ kind: "masks-read", policy: "nightly", slotMs: 95_000, syncJobs: ["7", "8"] }]);
});

it("a run over masks ends their own failure, and what they name no more", async () => {
  const readStates = rememberStates(store, () => 0);
  const startMs = Math.floor((await redisTimeMs(store)) / 1_000) * 1_000 - 100_000;
  const at = (second: number) => startMs + second * 1_000;
  const look = async (breaker: "open" | "closed") => {
    const inputs = { nowMs: at(100), pauses: [], services: [{ service: "main", breaker }], readStates };
    return (await readPolicyLines([policy], store, inputs))[0];
  };
  const trouble = async () => {
    const [line, held] = [await look("closed"), await look("open")];
    return [line?.health, held?.waitingMs, ...(line?.troubled ?? []).map(({ target }) => target).toSorted()];
  };
  const records = [at(98), at(99)].map((slotMs): SlotRecord => {
    return { slotMs, state: "started", detail: "on-time", kind: "run", targets: [targetFromMasks] };
  });
  const ledger = new SlotLedger(store);
  await ledger.openWatermarks([{ policy: "nightly", schedule: "s" }], at(97));
  const marks = { expectedWatermarkMs: at(97), newWatermarkMs: at(99) };
  await ledger.record([{ policy: "nightly", ...marks, records, tasks: [] }]);
  const failed = { taskId: "nightly__run__9__97", target: "9", status: "failed", reason: "run-failed" } as const;
  await history.record(testOutcome({ ...failed, slot: new Date(at(97)).toISOString() }));
  server.status = 500;
  await newWorker().step(taskOf(at(98)));
  server.status = 200;
  const known = { actor: "ana", note: "ticket 7", sinceMs: 1, state: "failing", targets: { "": 3, "9": 1, masks: 1 } };
  await acknowledgePolicy(store, "nightly", { acknowledgement: known, knownMs: Number.MAX_SAFE_INTEGER });
  await newWorker().step(taskOf(at(94)));
  expect(await trouble()).toEqual(["failing", at(99), "9", "masks"]);
  const failing = async () => (await readTroubles(store)).filter(({ trouble: kind }) => kind === "failing");
  expect(await failing()).toHaveLength(2);
  await newWorker().step(taskOf(at(99)));
  expect(await failing()).toEqual([]);
  expect(await trouble()).toEqual(["new", at(99)]);
  const state = (await readPolicyStates(store)).get("nightly");
  expect(state).toMatchObject({ targets: [], acknowledged: { targets: { "": 3 } } });
});

describe("a run over masks whose worker is held up", () => {
  it("starts nothing any more when another one has ended it meanwhile as not started", async () => {
    const task = taskOf(1_000);
    const [slow, other] = [newWorker(), newWorker()];
    const arrived = server.hold();
    const slowStep = slow.step(task);
    await arrived;
    server.status = 500;
    expect(await other.step(task)).toMatchObject({ verdict: "fail" });
    expect(await history.outcome(task)).toMatchObject({ status: "not-started", reason: "server-error" });
    server.status = 200;
    server.release();
    expect(await slowStep).toMatchObject({ verdict: "snooze" });
    expect(slow.queued).toEqual([]);
    expect(await slow.step(task)).toMatchObject({ verdict: "complete" });
    expect(slow.queued).toEqual([]);
    expect(await journal.fannedOutInto(task.id)).toBeUndefined();
  });

  it("starts nothing while another worker has claimed it without knowing its masks", async () => {
    const task = taskOf(2_000);
    const slow = newWorker();
    const arrived = server.hold();
    const slowStep = slow.step(task);
    await arrived;
    await journal.claim(task.id, "another");
    server.release();
    expect(await slowStep).toMatchObject({ verdict: "snooze" });
    expect(slow.queued).toEqual([]);
    expect(await slow.step(task)).toMatchObject({ verdict: "complete" });
    expect(slow.queued).toEqual(childrenOf(2_000));
  });

  it("starts nothing any more when it was given up meanwhile, and told as unknown", async () => {
    const task = taskOf(7_000);
    const slow = newWorker();
    const arrived = server.hold();
    const slowStep = slow.step(task);
    await arrived;
    const recorder = createRecorder(history, silentLog);
    expect(await endAbandoned(task, testDeps(store, { journal }), { recorder, why: "workers died" })).toBe(true);
    server.release();
    expect(await slowStep).toMatchObject({ verdict: "snooze" });
    expect(slow.queued).toEqual([]);
    expect(await slow.step(task)).toMatchObject({ verdict: "complete" });
    expect(await history.outcome(task)).toMatchObject({ status: "unknown" });
  });

  it.each([
    ["before its tasks are in the queue", 3_000, "enqueue"],
    ["when they are, and nobody knows yet", 4_000, "journal"],
  ] as const)("%s: who comes next goes on with its sync jobs, whatever the masks say now", async (_, slotMs, where) => {
    const task = taskOf(slotMs);
    let goOn = () => {};
    let isHeld = () => {};
    const held = new Promise<void>((resolve) => {
      isHeld = resolve;
    });
    const pause = () => {
      isHeld();
      return new Promise<void>((resolve) => {
        goOn = resolve;
      });
    };
    const queued: string[] = [];
    const slow = newWorker({
      enqueue: async (tasks) => {
        if (where === "enqueue") await pause();
        queued.push(...tasks.map(({ id }) => id));
      },
      chains: { noteFannedOut: where === "journal" ? pause : async () => {}, taskOver: async () => {} },
    });
    const slowStep = slow.step(task);
    await held;
    server.status = 500;
    const other = newWorker();
    expect(await journal.fannedOutInto(task.id)).toBeUndefined();
    expect(await other.step(task)).toMatchObject({ verdict: "complete" });
    expect(await history.outcome(task)).toBeUndefined();
    expect(other.queued).toEqual(childrenOf(slotMs));
    expect(other.chained).toEqual([["7", "8"]]);
    goOn();
    expect(await slowStep).toMatchObject({ verdict: "complete" });
    expect(queued).toEqual(childrenOf(slotMs));
    expect(await journal.fannedOutInto(task.id)).toEqual(childrenOf(slotMs));
    expect((await journal.entry(task.id))?.state).toBe("settled");
  });

  it("also when its policy and its service are gone by then", async () => {
    const task = taskOf(5_000);
    const died = newWorker({
      enqueue: async () => {
        throw new Error("Command timed out");
      },
    });
    expect(await died.step(task)).toMatchObject({ verdict: "snooze" });
    const next = newWorker({ policy: () => undefined, service: () => undefined });
    expect(await next.step(task)).toMatchObject({ verdict: "complete" });
    expect(next.queued).toEqual(childrenOf(5_000));
    expect(await history.outcome(task)).toBeUndefined();
  });

  it("names a thousand sync jobs in one entry, forgotten once their tasks exist", async () => {
    const task = taskOf(6_000);
    server.lists["syncjobsmasks"] = masksOf(...Array.from({ length: 1_000 }, (_, index) => 9_000_000_000_000 + index));
    const worker = newWorker();
    expect(await worker.step(task)).toMatchObject({ verdict: "complete" });
    expect(worker.queued).toHaveLength(1_000);
    expect(await journal.fannedOutInto(task.id)).toEqual(worker.queued);
    expect(await store.redis.hkeys(store.key("start", task.id))).not.toContain("targets");
  });
});
