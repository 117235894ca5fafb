// A small installation for tests of the web: policies in every health, with slots and outcomes in a
// real Redis, written as scheduler and workers write them. Names and notes try to be markup.
import type { Policy, PolicySet } from "../../src/config/policy-set.ts";
import type { Outcome } from "../../src/model/outcome.ts";
import type { SlotRecord } from "../../src/model/slot-record.ts";
import { runByHand } from "../../src/model/task.ts";
import { taskId } from "../../src/model/task-id.ts";
import { Changes } from "../../src/store/changes.ts";
import { FeedStore } from "../../src/store/feed-store.ts";
import { History } from "../../src/store/history.ts";
import { Pauses } from "../../src/store/pauses.ts";
import { redisTimeMs, type Store } from "../../src/store/redis.ts";
import { SlotLedger } from "../../src/store/slot-ledger.ts";
import { setOf } from "./kept-set.ts";
import { testOutcome } from "./outcomes.ts";
import { testPolicy } from "./policies.ts";

/** Markup that must stay text wherever it comes from. */
const hostile = `<img src=x onerror="alert(1)"><script>alert(2)</script>'"&`;

const hourMs = 3_600_000;
const every = { kind: "every", everyMs: hourMs, spreadMs: 0 } as const;

type Ending = "ok" | "failed" | "unknown" | "conflicts" | "blocked" | "skipped" | "missed" | "coalesced" | "open";

/** What became of a policy's newest slots, oldest first. */
const stories: Readonly<Record<string, { readonly endings: readonly Ending[]; readonly more?: Partial<Policy> }>> = {
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
      closed: { timezone: "Europe/Vienna", blackouts: [], holidays: [] },
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

/** The policies of the story. */
export function storySet(): PolicySet {
  const policies = Object.entries(stories).map(([name, { more }]) =>
    testPolicy({ name, schedule: every, ...more, where: { file: "/etc/syncline/policies.yaml", line: 7 } }),
  );
  return setOf(policies);
}

/** Writes the story; its newest slot is that of the present hour. */
export async function writeStory(store: Store): Promise<void> {
  const nowMs = await redisTimeMs(store);
  const newestMs = Math.floor(nowMs / hourMs) * hourMs;
  for (const [policy, { endings }] of Object.entries(stories)) {
    const slots = endings.map((ending, index) => ({
      ending,
      slotMs: newestMs - (endings.length - 1 - index) * hourMs,
    }));
    await writeSlots(store, policy, slots);
    const history = new History(store);
    for (const slot of slots) {
      const outcome = outcomeOf(policy, slot);
      if (outcome !== undefined) await history.record(outcome);
    }
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

/** Three conflicts of sync job 42, one of none, and an approval that waits; others are gone. */
async function writeFeeds(store: Store, nowMs: number): Promise<void> {
  const feeds = new FeedStore(store);
  const item = (id: string, syncJobId: string | undefined) => ({
    ...{ id, fingerprint: id, syncJobId, startedAtMs: nowMs - hourMs, finished: true, succeeded: true, label: hostile },
  });
  const lists = {
    conflictDetails: {
      items: [...["c1", "c2", "c3", "c4"].map((id) => item(id, "42")), item("c5", undefined)],
      totals: { all: 4, "job 42": 3 },
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
    await feeds.walked(feed, counted.size === 0 ? walk : { ...walk, totals: counted });
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

async function writeSlots(store: Store, policy: string, slots: readonly Slot[]): Promise<void> {
  const [first] = slots;
  if (first === undefined) return;
  const ledger = new SlotLedger(store);
  const fromMs = first.slotMs - 1;
  await ledger.watermarks([{ policy, schedule: "every hour" }], fromMs);
  const newestMs = slots.at(-1)?.slotMs ?? fromMs;
  const records = slots.map(toRecord);
  await ledger.record([{ policy, expectedWatermarkMs: fromMs, newWatermarkMs: newestMs, records, tasks: [] }]);
  // Two hours on, so that no slot comes due while a test looks.
  const later = { expectedWatermarkMs: newestMs, newWatermarkMs: newestMs + 2 * hourMs };
  await ledger.record([{ policy, ...later, records: [], tasks: [] }]);
}

function toRecord({ ending, slotMs }: Slot): SlotRecord {
  if (ending === "skipped") return { slotMs, state: "skipped", detail: "paused", note: hostile };
  if (ending === "missed") return { slotMs, state: "missed", detail: "window" };
  if (ending === "coalesced") return { slotMs, state: "coalesced", detail: new Date(slotMs + hourMs).toISOString() };
  return { slotMs, state: "started", detail: "", kind: "run", targets: ["42"] };
}

const endings: Readonly<Partial<Record<Ending, Partial<Outcome>>>> = {
  ok: {},
  failed: { status: "failed", reason: "server-error", evidence: "direct", detail: `HTTP 500: ${hostile}` },
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

function outcomeOf(policy: string, { ending, slotMs }: Slot): Outcome | undefined {
  const changes = endings[ending];
  if (changes === undefined) return undefined;
  const durationMs = 60_000 + ((slotMs / hourMs) % 7) * 9_000;
  const at = (ms: number) => new Date(slotMs + ms).toISOString();
  return testOutcome({
    taskId: taskId({ policy, kind: "run", target: "42", slotMs, origin: "schedule" }),
    ...{ policy, slot: at(0), startedAt: at(400), finishedAt: at(400 + durationMs), durationMs },
    confidence: "certain",
    ...changes,
  });
}
