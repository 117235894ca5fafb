// What goes on at an installation: services, quarantines, lists, sinks and processes, and which
// policies these run. Reads Redis only.
import type { PolicySet } from "../config/policy-set.ts";
import { silentLog } from "../core/event-log.ts";
import { showInstant } from "../core/instant.ts";
import { counted } from "../core/plain-text.ts";
import { readKnowledge } from "../feeds/strategy/choose-walk.ts";
import { costlyReasons, type Feed, type WholeReason } from "../model/feed.ts";
import { isInForce, type Pause } from "../model/pause.ts";
import { NoticeQueues } from "../queue/notice-queues.ts";
import { costlyWalksMin, type FeedNote, FeedStore, readFeedNotes } from "../store/feed-store.ts";
import { type KeptNote, type Replica, readKeptNote, readReplicas } from "../store/kept-policies.ts";
import { readPauses } from "../store/pauses.ts";
import {
  type Owners,
  type Presence,
  type RedisTarget,
  readOwners,
  readPresence,
  redisTimeMs,
  type Store,
} from "../store/redis.ts";
import { type LimiterStatus, readLimiterStatus } from "../store/service-limiter.ts";
import { feedsOf } from "./feeds.ts";
import { describeMissingRoles } from "./service-words.ts";
import { hasFailed, isStuck, type LastDigest, readLastDigests, readSinks, type SinkState } from "./sinks.ts";

/** The state of an installation, as far as these policies are concerned. */
export interface Status {
  readonly nowMs: number;
  readonly services: readonly (LimiterStatus & { readonly service: string })[];
  /** The services whose requests are counted: those with `limits.concurrency`. */
  readonly countedServices: ReadonlySet<string>;
  /** Pauses and quarantines in force, also of other policies. */
  readonly pauses: readonly Pause[];
  readonly sinks: readonly SinkState[];
  readonly digests: readonly LastDigest[];
  readonly feeds: readonly TroubledFeed[];
  readonly processes: Presence;
  readonly owners: Owners;
  readonly config: RunningConfig;
}

/** A list that is read whole again and again, or cannot be read: why, and what to do. */
export interface TroubledFeed {
  readonly feed: Feed;
  /** The closed reason; `unreadable` when walks fail. */
  readonly reason: WholeReason | "unreadable";
  readonly sinceMs: number;
  readonly walks: number;
  readonly what: string;
  readonly cure: string;
}

const cures: Readonly<Partial<Record<WholeReason, string>>> = {
  "no-order": "nothing is lost; should it cost too much, let the service sort the list by its key",
  "links-not-kept":
    "nothing is lost; should it cost too much, let the service page by $skiptoken, without a credential in its links",
  "link-expired": "nothing is lost; let the service keep its links good for some minutes, or page by key",
  "open-items":
    "look whether `finished` of the mapping knows every state in which an item ends: `syncline discover` shows them",
};
const otherCure = "nothing is lost; it ends when the list grows at one of its ends only";

/** Reads the state of an installation. */
export async function readStatus(set: PolicySet, store: Store, target: RedisTarget): Promise<Status> {
  const nowMs = await redisTimeMs(store);
  const names = [...set.services.keys()].toSorted();
  const services = await Promise.all(
    names.map(async (service) => ({ service, ...(await readLimiterStatus(store, service)) })),
  );
  const pauses = await readPauses(store);
  await using queues = new NoticeQueues(target, silentLog);
  return {
    nowMs,
    services,
    countedServices: new Set(names.filter((name) => set.services.get(name)?.limits.concurrencyMax !== undefined)),
    pauses: pauses.filter((pause) => isInForce(pause, nowMs)),
    sinks: await readSinks(set, store, queues),
    digests: await readLastDigests(set, { store, queues, nowMs }),
    feeds: await readTroubledFeeds(set, store),
    processes: await readPresence(store),
    owners: await readOwners(store),
    config: await readRunningConfig(store, nowMs),
  };
}

/** Whether no person must look: at services, processes, owners, sinks, digests or files. */
export function isInstallationWell({ nowMs, services, sinks, digests, processes, owners, config }: Status): boolean {
  return (
    services.every(({ breaker, throttledUntilMs }) => breaker !== "open" && throttledUntilMs === undefined) &&
    !sinks.some((sink) => isStuck(sink, nowMs) || sink.refused !== undefined) &&
    !digests.some(hasFailed) &&
    describeMissingRoles(processes).length + owners.others.length + config.rejected.length === 0 &&
    !config.differs
  );
}

async function readTroubledFeeds(set: PolicySet, store: Store): Promise<readonly TroubledFeed[]> {
  const notes = await readFeedNotes(store, await new FeedStore(store).troubled(feedsOf(set)));
  return notes.flatMap(judgeFeed).toSorted((a, b) => a.sinceMs - b.sinceMs);
}

function judgeFeed(note: FeedNote): TroubledFeed[] {
  const { feed, failure, failingSinceMs, costlyWalks = 0, costlySinceMs = 0 } = note;
  if (failure !== undefined && failingSinceMs !== undefined) {
    const what = `cannot be read since ${showInstant(failingSinceMs)}: ${failure}`;
    const then = feed.list === "approvals" ? "no run is found blocked meanwhile" : "runs that need it end unknown";
    const cure = `${then}; the log has it as feed.unreadable`;
    return [{ feed, reason: "unreadable", sinceMs: failingSinceMs, walks: 0, what, cure }];
  }
  const reason = Object.keys(costlyReasons).find((one): one is WholeReason => one === note.costlyReason);
  if (reason === undefined || costlyWalks < costlyWalksMin) return [];
  const { notKept, pages } = readKnowledge(note.knowledge);
  const carries = reason === "links-not-kept" && notKept !== null ? ` (${notKept})` : "";
  const what = `all ${pages} pages are read at each walk since ${showInstant(costlySinceMs)}, ${costlyWalks} times in a row: ${costlyReasons[reason]}${carries}`;
  return [{ feed, reason, sinceMs: costlySinceMs, walks: costlyWalks, what, cure: cures[reason] ?? otherCure }];
}

/** Which policies the processes run: is a new file in force on all of them? */
export interface RunningConfig {
  readonly kept: KeptNote | undefined;
  readonly replicas: readonly Replica[];
  /** True when processes have run different policies for longer than a change takes. */
  readonly differs: boolean;
  /** The newer files that are not in force, each with the processes that rejected it. */
  readonly rejected: readonly RejectedFile[];
}

/** A problem of a newer file. `by`: how many processes rejected it. */
export interface RejectedFile extends NonNullable<Replica["rejected"]> {
  readonly by: number;
}

/** A ConfigMap reaches a pod within about two minutes. */
const changeTakesMs = 300_000;

async function readRunningConfig(store: Store, nowMs: number): Promise<RunningConfig> {
  const [kept, replicas] = await Promise.all([readKeptNote(store), readReplicas(store)]);
  const newestMs = Math.max(0, ...replicas.map(({ sinceMs }) => sinceMs));
  const isSplit = new Set(replicas.map(({ hash }) => hash)).size > 1;
  const problems = replicas.flatMap(({ rejected }) => rejected ?? []);
  const groups = [...Map.groupBy(problems, ({ where, message }) => JSON.stringify([where, message])).values()];
  const rejected = groups.flatMap((group) => {
    const [first] = group.toSorted((a, b) => a.sinceMs - b.sinceMs);
    return first === undefined ? [] : [{ ...first, by: group.length }];
  });
  return { kept, replicas, differs: isSplit && nowMs - newestMs > changeTakesMs, rejected };
}

/** The newer files that are not in force, and why. */
export function describeRejected(
  { where, message, problems, sinceMs, by }: RejectedFile,
  { replicas }: Pick<RunningConfig, "replicas">,
): string {
  const more = problems > 1 ? ` (and ${counted(problems - 1, "more problem")})` : "";
  return `newer files are rejected since ${showInstant(sinceMs)} by ${by} of ${counted(replicas.length, "process", "processes")}: ${where}: ${message}${more}; the policies before stay in force`;
}
