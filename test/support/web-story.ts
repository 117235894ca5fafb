// A small installation for tests of the web: policies in every health, with slots and outcomes in a
// real Redis, written as scheduler and workers write them. Names and notes try to be markup.
import { acknowledge } from "../../src/actions/acknowledge.ts";
import type { Policy, PolicySet } from "../../src/config/policy-set.ts";
import { systemClock } from "../../src/core/clock.ts";
import { silentLog } from "../../src/core/event-log.ts";
import { isDenied } from "../../src/core/limiter.ts";
import type { Outcome } from "../../src/model/outcome.ts";
import type { SlotRecord } from "../../src/model/slot-record.ts";
import { runByHand, taskId } from "../../src/model/task.ts";
import { Changes } from "../../src/store/changes.ts";
import { FeedStore } from "../../src/store/feed-store.ts";
import { History } from "../../src/store/history.ts";
import { Pauses, Quarantines } from "../../src/store/pauses.ts";
import { redisTimeMs, type Store } from "../../src/store/redis.ts";
import { ServiceLimiter } from "../../src/store/service-limiter.ts";
import { SlotLedger } from "../../src/store/slot-ledger.ts";
import { setOf } from "./kept-set.ts";
import { testOutcome } from "./outcomes.ts";
import { testPolicy } from "./policies.ts";

/** Markup that must stay text wherever it comes from. */
const hostile = `<img src=x onerror="alert(1)"><script>alert(2)</script>'"&`;

const hourMs = 3_600_000;
const every = { kind: "every", everyMs: hourMs, spreadMs: 0 } as const;

type Ending =
  | "ok"
  | "failed"
  | "overlap"
  | "unknown"
  | "conflicts"
  | "blocked"
  | "skipped"
  | "missed"
  | "coalesced"
  | "open";

/** What became of each policy's newest slots, oldest first. */
export type Story = Readonly<Record<string, { readonly endings: readonly Ending[]; readonly more?: Partial<Policy> }>>;

/** A policy in each health. */
export const smallStory: Story = {
  "contracts-nightly": {
    endings: [
      ...times(40, "ok"),
      "failed",
      "ok",
      "missed",
      ...times(9, "ok"),
      "skipped",
      "coalesced",
      ...times(12, "ok"),
    ],
    more: {
      schedule: {
        kind: "cron",
        expressions: ["30 2 * * 1-5"],
        timezone: "Europe/Vienna",
        dst: { gap: "next", overlap: "first" },
        spreadMs: 0,
      },
      timezone: "Europe/Vienna",
      labels: { team: "legal" },
    },
  },
  invoices: { endings: [...times(20, "ok"), ...times(4, "failed")], more: { labels: { team: "finance" } } },
  archive: { endings: [...times(25, "ok"), "unknown"] },
  personnel: { endings: [...times(12, "ok"), "conflicts"] },
  approvals: { endings: [...times(5, "ok"), "blocked"] },
  deliveries: { endings: [...times(18, "ok"), "open"] },
  suspended: { endings: [...times(8, "ok"), "skipped", "skipped"] },
  "just-added": { endings: [] },
};

function times(count: number, ending: Ending): Ending[] {
  return Array.from({ length: count }, () => ending);
}

/** A word without a place to break, as long as notes and names may be. */
const endless = (length: number) => "unbroken".repeat(32).slice(0, length);

/** 200 policies of three services in all conditions, some with the longest names and labels. */
export function crowdedStory(): Story {
  const newest: readonly Ending[] = ["ok", "ok", "ok", "ok", "ok", "ok", "failed", "skipped", "missed", "unknown"];
  const one = (index: number): [string, Story[string]] => {
    const name = index % 40 === 0 ? `${endless(60)}-${index}`.slice(0, 63) : `${areas[index % 7]}-${index}`;
    const ending = index % 3 === 0 ? (newest[(index / 3) % newest.length] ?? "ok") : "ok";
    const labels = { team: index % 40 === 0 ? endless(63) : (areas[index % 7] ?? "") };
    const service = ["main", "billing", `west-${endless(50)}`][index % 20 === 0 ? 2 : index % 2];
    const action = { kind: "run", syncJobs: [index] } as const;
    const count = 20 + (index % 12);
    const endings = [...times(count, "ok"), ...(index % 9 === 0 ? times(2, ending) : []), ending];
    return [name, { endings, more: { labels, action, ...(service === undefined ? {} : { service }) } }];
  };
  return { ...smallStory, ...Object.fromEntries(Array.from({ length: 192 }, (_, index) => one(index))) };
}

const areas = ["payroll", "orders", "stock-levels", "employees-of-all-regions", "ledger", "prices", "crm"];

/** The policies of a story. */
export function setOfStory(story: Story): PolicySet {
  const policies = Object.entries(story).map(([name, { more }]) =>
    testPolicy({ name, schedule: every, ...more, where: { file: "/etc/syncline/policies.yaml", line: 7 } }),
  );
  return setOf(policies);
}

/** Writes a story; its newest slot is that of the present hour. */
export async function writeStory(store: Store, story: Story): Promise<void> {
  const nowMs = await redisTimeMs(store);
  const newestMs = Math.floor(nowMs / hourMs) * hourMs;
  for (const [policy, { endings, more }] of Object.entries(story)) {
    const slots = endings.map((ending, index) => ({
      ending,
      slotMs: newestMs - (endings.length - 1 - index) * hourMs,
    }));
    const history = new History(store);
    const target = `${more?.action?.kind === "run" && "syncJobs" in more.action ? more.action.syncJobs[0] : 42}`;
    await writeSlots(store, { policy, target }, slots);
    const outcomes = slots.flatMap(
      (slot) => outcomeOf({ policy, target, service: more?.service ?? "main" }, slot, nowMs) ?? [],
    );
    await Promise.all(outcomes.map((outcome) => history.record(outcome)));
  }
  await writeHandRuns(store, nowMs);
  await writeFeeds(store, nowMs);
  const pause = { scope: "policy", name: "suspended", note: hostile, actor: "ana@desk", untilMs: null } as const;
  await new Pauses(store).set(pause);
  const change = {
    actor: "ana@desk",
    what: "pause",
    subject: `policy suspended ${hostile}`,
    before: null,
    after: null,
  };
  await new Changes(store).add({ ...change, reason: hostile });
}

/** A breaker is open, a policy is quarantined, a failure is known; a stranger's long note. */
export async function writeTroubles(store: Store): Promise<void> {
  const limits = { concurrencyMax: undefined, requestsPerSecond: undefined, probeEveryMs: 60_000, leaseMs: 10_000 };
  const parts = { store, clock: systemClock, log: silentLog };
  const limiter = new ServiceLimiter({ ...limits, service: "billing", failuresMax: 1 }, parts);
  const permit = await limiter.acquire({ isRead: true });
  if (!isDenied(permit)) await permit.release({ kind: "server", retryAfterMs: undefined });
  const nowMs = await redisTimeMs(store);
  const ending = { policy: "orders-1", slotMs: nowMs, isSuccess: false, note: `slot failed: ${endless(200)}` };
  await new Quarantines(store).count(ending, { after: 1, forMs: hourMs });
  const by = { actor: "ana@desk", reason: endless(200), warn: () => {} };
  await acknowledge(testPolicy({ name: "approvals", schedule: every }), { store, by });
}

/** Three conflicts of a sync job without a policy, one of none; an approval; some are gone. */
async function writeFeeds(store: Store, nowMs: number): Promise<void> {
  const feeds = new FeedStore(store);
  const item = (id: string, syncJobId: string | undefined) => ({
    ...{ id, fingerprint: id, syncJobId, startedAtMs: nowMs - hourMs, finished: true, succeeded: true, label: hostile },
  });
  const lists = {
    conflictDetails: {
      items: [...["c1", "c2", "c3", "c4"].map((id) => item(id, "4711")), item("c5", undefined)],
      totals: { all: 4, "job 4711": 3 },
    },
    approvals: { items: [item("a1", "42"), item("a2", "42")], totals: { all: 1, "item a2": 1 } },
    activities: { items: [item("1", "42")], totals: {} },
  };
  for (const [list, { items, totals }] of Object.entries(lists)) {
    const feed = { service: "main", repository: "HR", list: list as keyof typeof lists };
    await feeds.takeIn(feed, { generation: 0 }, { items, sinceSeq: 0 });
    await feeds.keepKnowledge(feed, "{}");
    const counted = new Map(Object.entries(totals));
    const walk = { startedAtMs: nowMs - 60_000, count: items.length, whole: true, because: "audit" as const };
    await feeds.endWalk(feed, counted.size === 0 ? walk : { ...walk, totals: counted });
  }
  const feed = { service: "main", repository: "HR", list: "approvals" } as const;
  await feeds.keepShape(feed, "{}", `state is gone; ${hostile}`);
}

/** One of a policy, and one of a sync job without a policy. */
async function writeHandRuns(store: Store, nowMs: number): Promise<void> {
  const slotMs = nowMs - 26 * hourMs;
  const at = (ms: number) => new Date(slotMs + ms).toISOString();
  const runs = [
    { policy: "invoices", target: "42", subject: "policy invoices" },
    { policy: runByHand, target: "77", subject: "sync job 77 of main" },
  ];
  for (const { policy, target, subject } of runs) {
    const id = taskId({ policy, kind: "run", target, slotMs, origin: "manual" });
    const times = { slot: at(0), startedAt: at(300), finishedAt: at(61_000), durationMs: 61_000 };
    await new History(store).record(testOutcome({ taskId: id, policy, target, origin: "manual", ...times }));
    const change = { what: "run", subject, before: null, after: { tasks: [id] } };
    await new Changes(store).add({ actor: "ana@desk", reason: "the books close today", ...change });
  }
}

interface Slot {
  readonly ending: Ending;
  readonly slotMs: number;
}

async function writeSlots(
  store: Store,
  { policy, target }: Pick<Outcome, "policy" | "target">,
  slots: readonly Slot[],
): Promise<void> {
  const [first] = slots;
  if (first === undefined) return;
  const ledger = new SlotLedger(store);
  const fromMs = first.slotMs - 1;
  await ledger.openWatermarks([{ policy, schedule: "every hour" }], fromMs);
  const newestMs = slots.at(-1)?.slotMs ?? fromMs;
  const records = slots.map((slot) => toRecord(slot, target));
  await ledger.record([{ policy, expectedWatermarkMs: fromMs, newWatermarkMs: newestMs, records, tasks: [] }]);
  // Two hours on, so that no slot comes due while a test looks.
  const later = { expectedWatermarkMs: newestMs, newWatermarkMs: newestMs + 2 * hourMs };
  await ledger.record([{ policy, ...later, records: [], tasks: [] }]);
}

function toRecord({ ending, slotMs }: Slot, target: string): SlotRecord {
  if (ending === "skipped") return { slotMs, state: "skipped", detail: "paused", note: hostile };
  if (ending === "missed") return { slotMs, state: "missed", detail: "window" };
  if (ending === "coalesced") return { slotMs, state: "coalesced", detail: new Date(slotMs + hourMs).toISOString() };
  return { slotMs, state: "started", detail: "", kind: "run", targets: [target] };
}

const endings: Readonly<Partial<Record<Ending, Partial<Outcome>>>> = {
  ok: {},
  failed: { status: "failed", reason: "server-error", evidence: "direct", detail: `HTTP 500: ${hostile}` },
  overlap: { status: "skipped", reason: "overlap", detail: "zebra-nightly__run__42__1795228200 is still running" },
  unknown: {
    status: "unknown",
    reason: "answer-lost",
    evidence: "none",
    detail: "the answer was lost",
    answerLost: true,
  },
  conflicts: {
    status: "conflicts",
    reason: "new-conflicts",
    detail: "3 new conflicts",
    newConflicts: 3,
    confidence: "likely",
  },
  blocked: { status: "blocked", reason: "approval-waiting", detail: "an approval waits" },
};

/** In the first minutes of an hour its slot has ended already: what a test records comes later. */
function outcomeOf(
  of: Pick<Outcome, "policy" | "target" | "service">,
  { ending, slotMs }: Slot,
  nowMs: number,
): Outcome | undefined {
  const changes = endings[ending];
  if (changes === undefined) return undefined;
  const durationMs = 60_000 + ((slotMs / hourMs) % 7) * 9_000;
  const at = (ms: number) => new Date(Math.min(slotMs + ms, nowMs)).toISOString();
  return testOutcome({
    taskId: taskId({ ...of, kind: "run", slotMs, origin: "schedule" }),
    ...{ ...of, slot: at(0), startedAt: at(400), finishedAt: at(400 + durationMs), durationMs },
    confidence: "certain",
    ...changes,
  });
}
