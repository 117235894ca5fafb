// A large installation for measurements of the role web: hourly policies of four services and a
// hundred repositories, each with its own sync job, summaries, an end, and some with slots. Written
// for benchmarks of the web server and test/redis/web/size.long.test.ts; web-process.ts makes the
// same set.
import type { Policy, PolicySet } from "../../src/config/policy-set.ts";
import { FeedStore } from "../../src/store/feed-store.ts";
import { Pauses } from "../../src/store/pauses.ts";
import { redisTimeMs, type Store } from "../../src/store/redis.ts";
import { operations } from "../../src/web/api/operations.ts";
import { liveProcess, setOf } from "../support/kept-set.ts";
import { testPolicy } from "../support/policies.ts";
import { failingEvery, writeDays, writeEnds, writeSlots } from "./long-memory.ts";

const [hourMs, dayMs] = [3_600_000, 86_400_000];
const servicesCount = 4;
/** So many have the slots of an audit; as many failing ones as a page shows have some. */
const [auditedCount, failingShown, shownSlots] = [25, 100, 60];
/** The sync job of the first policy; the next one has the next. */
const firstJob = 1_000;

/** What viewers keep open, and programs ask for. */
export const viewedPages = ["/", "/policies", "/services", "/next"] as const;
export const viewedLists = [
  "/api/v1/attention",
  "/api/v1/policies?limit=100",
  "/api/v1/outcomes?limit=20",
  "/api/v1/pauses",
] as const;

/** So many policies, each due once an hour, spread over its minutes. */
export function webSet(count: number, repositories = 25): PolicySet {
  const policies = Array.from({ length: count }, (_, index) => webPolicy(index, repositories));
  const { services, ...set } = setOf(policies);
  const [main] = services.values();
  if (main === undefined) throw new Error("no service");
  const names = Array.from({ length: servicesCount }, (_, index) => `service-${index}`);
  return { ...set, services: new Map(names.map((name) => [name, { ...main, name }])) };
}

function webPolicy(index: number, repositories: number): Policy {
  return testPolicy({
    name: `contracts-of-region-${String(index).padStart(5, "0")}`,
    service: `service-${index % servicesCount}`,
    repository: `HR-${Math.floor(index / servicesCount) % repositories}`,
    action: { kind: "run", syncJobs: [firstJob + index] },
    schedule: {
      kind: "cron",
      // The slots of an audit are written by the full hour.
      expressions: [`${index < auditedCount ? 0 : (index * 7) % 60} * * * *`],
      timezone: "Europe/Vienna",
      dst: { gap: "next", overlap: "first" },
      spreadMs: 0,
    },
    timezone: "Europe/Vienna",
    labels: { team: `team-${index % 40}` },
    owner: "data-platform",
    where: { file: `/etc/syncline/policies/region-${index % 200}.yaml`, line: 10 + (index % 50) * 8 },
  });
}

/** Writes what Redis would keep of them. */
export async function writeInstallation(
  store: Store,
  { policies }: Pick<PolicySet, "policies">,
  { days, slots }: { readonly days: number; readonly slots: number },
): Promise<void> {
  const nowMs = await redisTimeMs(store);
  const names = policies.map(({ name }) => name);
  const newestMs = Math.floor(nowMs / hourMs) * hourMs;
  const targets = policies.map(({ name }, index) => ({ name, target: `${firstJob + index}` }));
  await writeEnds(store, targets, newestMs - hourMs);
  await writeDays(store, names, { days, runs: 24, nowMs });
  await writeSlots(store, targets.slice(0, auditedCount), { slots, newestMs });
  const failing = targets.slice(auditedCount).filter((_, index) => (index + auditedCount) % failingEvery === 0);
  await writeSlots(store, failing.slice(0, failingShown), { slots: shownSlots, newestMs });
  // All are planned up to an hour from now: a scheduler would be at work.
  await store.redis.hset(store.key("watermarks"), Object.fromEntries(names.map((name) => [name, nowMs + hourMs])));
  const untilMs = nowMs + dayMs;
  await new Pauses(store).set({ scope: "service", name: "service-3", note: "release", actor: "ana@desk", untilMs });
  await writeFeeds(store, policies, nowMs);
  await liveProcess(store);
}

/** Writes the lists of all repositories: activities, conflict details, approvals. */
export async function writeFeeds(store: Store, policies: readonly Policy[], nowMs: number): Promise<void> {
  const feeds = new FeedStore(store);
  const places = new Map(policies.map((one) => [`${one.service} ${one.repository}`, one]));
  for (const { service, repository = null } of places.values()) {
    for (const list of ["activities", "conflictDetails", "approvals"] as const) {
      const feed = { service, repository, list };
      const items = Array.from({ length: 100 }, (_, index) => {
        const id = `${list}-${index}`;
        const facts = { startedAtMs: nowMs, finished: true, succeeded: true, label: `Contract ${index}` };
        return { id, fingerprint: id, syncJobId: `${firstJob + (index % 10)}`, ...facts };
      });
      await feeds.takeIn(feed, { generation: 0 }, { items, sinceSeq: 0 });
      await feeds.keepKnowledge(feed, "{}");
      const totals = new Map([["all", 60] as const, ...Array.from({ length: 6 }, (_, job) => totalOf(job))]);
      const walk = { startedAtMs: 1, count: items.length, whole: true, because: "audit" as const };
      await feeds.endWalk(feed, list === "conflictDetails" ? { ...walk, totals } : walk);
    }
  }
}

function totalOf(job: number): readonly [string, number] {
  return [`job ${firstJob + job}`, 10];
}

/** The pages, and every list and object of the API, asked about a policy that has slots. */
export function viewPaths({ policies: [one] }: Pick<PolicySet, "policies">): string[] {
  if (one === undefined) throw new Error("no policy");
  // The hour before: another one may have begun since the slots were written.
  const hour = new Date((Math.floor(Date.now() / hourMs) - 1) * hourMs).toISOString();
  const at: Record<string, string> = {
    ...{ policy: one.name, instant: hour, service: one.service, repository: one.repository ?? "~", list: "activities" },
    id: `${one.name}__run__${firstJob}__${Date.parse(hour) / 1_000}`,
  };
  const pages = ["/", "/policies", "/policies?q=region-000", `/policies/${one.name}`, "/next", "/feeds", "/services"];
  const more = [`/policies/${one.name}/days/${hour.slice(0, 10)}`, `/policies/${one.name}/slots/${hour}`, "/audit"];
  const feed = `/feeds/${one.service}/${one.repository}/activities`;
  const api = operations.map(({ path }) => {
    const name = path.startsWith("/services") ? one.service : one.name;
    return `/api/v1${path.replaceAll(/\{(\w+)\}/g, (_, part: string) => at[part] ?? name)}`;
  });
  return [...pages, ...more, "/failed", "/changes", "/by-hand", feed, ...api, "/api/v1/policies?limit=1000"];
}
