// What is not well now, each with since when and one next step: processes, services, policies (the
// worst first), sinks, lists, unusual runs; what is acknowledged stands last. Called by the pages,
// the API, digests and `syncline status`.
import type { Policy } from "../config/policy-set.ts";
import { formatRoughly } from "../core/duration.ts";
import { showNear } from "../core/instant.ts";
import { counted, someNames } from "../core/plain-text.ts";
import type { OutcomeReason } from "../model/outcome.ts";
import type { Pause } from "../model/pause.ts";
import type { Acknowledgement } from "../store/policy-states.ts";
import { foreignOwner } from "../store/redis.ts";
import { describeCounted } from "./open-conflicts.ts";
import { describeHeldUp, healsByItself, heldUpBy, isListOfOutage, isToldByOutage, ownersOf } from "./outages.ts";
import {
  acknowledgementWords,
  describeLate,
  describeUnusual,
  describeWaiting,
  needsPerson,
  type PolicyHealth,
  type PolicyLine,
  pauseOf,
  readPolicyLines,
  seenLine,
} from "./policy-lines.ts";
import { type QueryContext, type StateContext, type View, wholeView } from "./query-context.ts";
import { describeMissingRoles, describeThrottle, isThrottledLong, showFeed } from "./service-words.ts";
import { isStuck } from "./sinks.ts";
import { readStatus, type Status, type TroubledFeed } from "./status.ts";

type AttentionSubject = "installation" | "service" | "sink" | "list" | "policy";

/** One thing that is not well. `heals`: it needs no person. */
export interface AttentionItem {
  readonly about: AttentionSubject;
  /** The policy, service, sink or list; empty for the installation. */
  readonly name: string;
  /** What is wrong, in a word or two: a policy's health, `breaker open`, … */
  readonly state: string;
  readonly what: string;
  readonly sinceMs: number | undefined;
  /** When it last went well, of a policy. */
  readonly lastSuccessMs: number | undefined;
  /** The slot that shows it, of a policy. */
  readonly slotMs: number | undefined;
  /** Who knows of it, of a policy: such items stand last. */
  readonly acknowledged: Acknowledgement | undefined;
  /** The policies that it is about, or that it holds up. */
  readonly touches: readonly PolicyLine[];
  /** Whether it gets well without a person. */
  readonly heals: boolean;
  readonly nextStep: string;
}

/** All that is not well, and what it was found in. `counts`: of all policies by health. */
export interface Attention {
  readonly nowMs: number;
  readonly items: readonly AttentionItem[];
  readonly counts: ReadonlyMap<PolicyHealth, number>;
  readonly lines: readonly PolicyLine[];
  readonly status: Status;
}

const none = {
  ...{ sinceMs: undefined, lastSuccessMs: undefined, slotMs: undefined, acknowledged: undefined },
  ...{ touches: [], heals: false },
};

/** Reads what is not well. */
export async function readAttention(
  context: Pick<QueryContext, "set" | "target"> & Partial<Pick<QueryContext, "view">> & StateContext,
): Promise<Attention> {
  const { set, store, target, readStates, view = wholeView } = context;
  const status = await readStatus(set, store, target);
  const { nowMs, services } = status;
  const all = await readPolicyLines(set.policies, store, { ...status, readStates });
  const lines = all.map((line) => seenLine(line, view));
  const counts = new Map<PolicyHealth, number>();
  for (const { health } of lines) counts.set(health, (counts.get(health) ?? 0) + 1);
  const items = [
    ...processItems(status, view),
    ...serviceItems(status, lines),
    ...lines.flatMap((line) =>
      needsPerson[line.health] && !isToldByOutage(line, services) ? [policyItem(line, nowMs)] : [],
    ),
    ...sinkItems(status),
    ...listItems(status),
    ...lines.flatMap(unusualItem),
  ];
  const isNew = ({ acknowledged }: AttentionItem) => acknowledged === undefined;
  return { nowMs, items: [...items.filter(isNew), ...items.filter((item) => !isNew(item))], counts, lines, status };
}

/** Whether a person must act on it: it does not heal, and more than a look is needed. */
export function mustBeActedOn({ state, heals }: Pick<AttentionItem, "state" | "heals">): boolean {
  return !heals && state !== "unusual" && state !== "costly";
}

/** Lists that are costly, or cannot be read and are not told by the outage of their service. */
export function listItems({ feeds, services }: Pick<Status, "feeds" | "services">): AttentionItem[] {
  return feeds.flatMap((feed) => (isListOfOutage(feed, services) ? [] : [listItem(feed)]));
}

function listItem({ feed, what, cure, sinceMs, reason }: TroubledFeed): AttentionItem {
  const state = reason === "unreadable" ? "unreadable" : "costly";
  return { ...none, about: "list", name: showFeed(feed), state, what, sinceMs, nextStep: cure };
}

function processItems({ processes, owners, config }: Status, { isNarrowed }: View): AttentionItem[] {
  const item = { ...none, about: "installation" as const, name: "" };
  const missing = describeMissingRoles(processes).map((what) => ({
    ...{ ...item, state: "role missing", what },
    nextStep: "Start `syncline serve`, or look why it ended: `syncline doctor`",
  }));
  const foreign = owners.others.map((other) => ({
    ...{ ...item, state: "two owners", what: foreignOwner([owners.holder ?? "", other]) },
    nextStep: "Give one of the two another --prefix",
  }));
  const rejected = config.rejected.map(({ by, problems, where, message, sinceMs }) => ({
    ...{ ...item, state: "file rejected", sinceMs },
    // The problem may name what a narrowed view does not hold.
    what: `${counted(by, "process does", "processes do")} not take the newer policies (${counted(problems, "problem")})${isNarrowed ? "" : `: ${where} ${message}`}`,
    nextStep: "Mend the file: `syncline validate` shows every problem. The last good policies stay in force",
  }));
  const split = config.differs
    ? [
        {
          ...item,
          state: "split",
          what: "processes run different policies",
          nextStep: "Restart those that run old ones",
        },
      ]
    : [];
  return [...missing, ...foreign, ...rejected, ...split];
}

function serviceItems({ services, feeds, nowMs }: Status, lines: readonly PolicyLine[]): AttentionItem[] {
  return services.flatMap((status) => {
    const { service: name, breaker, throttledUntilMs, throttledSinceMs, openSinceMs, lastFailure } = status;
    const base = { ...none, about: "service" as const, name, heals: true };
    if (breaker === "open") {
      const touches = heldUpBy(name, lines, services);
      const unread = feeds.flatMap((one) =>
        one.feed.service === name && isListOfOutage(one, services) ? [showFeed(one.feed)] : [],
      );
      const what = [
        ...(touches.length === 0 ? [] : [describeHeldUp(touches)]),
        ...(unread.length === 0 ? [] : [`cannot be read meanwhile: ${someNames(unread, undefined, 3)}`]),
        `last failure: ${lastFailure}`,
      ];
      return [
        {
          ...{ ...base, state: "down", sinceMs: openSinceMs, touches, what: what.join("; ") },
          nextStep:
            "All of it goes on when the service answers. Should it be up, `syncline doctor` says why it is not reached",
        },
      ];
    }
    if (throttledUntilMs === undefined) return [];
    return [
      {
        ...{ ...base, state: "throttled", sinceMs: throttledSinceMs, heals: !isThrottledLong(status, nowMs) },
        what: `the service throttles ${describeThrottle(status, nowMs)}`,
        nextStep: "Nothing is lost; set `limits` of the service, or spread its policies, if this goes on",
      },
    ];
  });
}

function sinkItems({ sinks, digests, nowMs }: Status): AttentionItem[] {
  const item = { ...none, about: "sink" as const };
  const mend = (sink: string) =>
    `Mend the receiver, then \`syncline failed replay --sink ${sink} --yes\`; \`failed discard\` what it will never take`;
  const failed = digests.flatMap(({ digest, atMs, to }) =>
    to.flatMap(({ sink, state, reason = "" }) => (state === "failed" ? [{ digest, atMs, sink, reason }] : [])),
  );
  const undelivered = failed.map(({ digest, atMs, sink, reason }) => ({
    ...{ ...item, name: sink, state: "digest failed", sinceMs: atMs, nextStep: mend(sink) },
    what: `the digest ${digest} was not delivered: ${reason}`,
  }));
  const refusing = sinks.flatMap(({ sink, failed: count, refused }) =>
    refused === undefined || undelivered.some(({ name }) => name === sink)
      ? []
      : [
          {
            ...{ ...item, name: sink, state: "refuses", sinceMs: refused.atMs, nextStep: mend(sink) },
            what: `the last notice that it was given was not delivered: ${refused.reason}; ${counted(count, "notice is", "notices are")} in its failed list`,
          },
        ],
  );
  const stuck = sinks
    .filter((sink) => isStuck(sink, nowMs))
    .map(({ sink, waiting, oldestMs }) => ({
      ...{ ...item, name: sink, state: "stuck", sinceMs: oldestMs },
      what: `${counted(waiting, "notice waits", "notices wait")}, the first for ${formatRoughly(nowMs - (oldestMs ?? nowMs))}`,
      nextStep: `Try it: \`syncline sinks test ${sink}\``,
    }));
  return [...stuck, ...undelivered, ...refusing];
}

function policyItem(line: PolicyLine, nowMs: number): AttentionItem {
  const { policy, health, worst, acknowledged, pauses } = line;
  const [pause] = health === "quarantined" ? [] : pauses;
  return {
    about: "policy",
    name: policy.name,
    state: health,
    what: `${describePolicy(line, nowMs)}${pause === undefined ? "" : `; ${pauseWords(pause, policy, nowMs)}`}`,
    acknowledged,
    touches: [line],
    heals: healsByItself(line),
    sinceMs: sinceOf(line),
    lastSuccessMs: worst?.lastSuccessMs,
    slotMs: slotOf(line),
    nextStep: nextStepOf(line),
  };
}

/** The slot that shows what is wrong: where slots are, not that of the last run. */
function slotOf({ health, worst, unplannedMs }: PolicyLine): number | undefined {
  if (health === "unplanned") return unplannedMs;
  if (health === "late" || (health === "missed" && worst?.last.status !== "missed")) return undefined;
  return worst?.last.origin === "schedule" ? worst.last.slotMs : undefined;
}

/** A run that ended well and is unusual: a person should look whether it did what it should. */
function unusualItem(line: PolicyLine): AttentionItem[] {
  const { policy, health, unusual } = line;
  if (unusual === undefined || needsPerson[health]) return [];
  const { last } = unusual;
  const times = { sinceMs: last.finishedMs, lastSuccessMs: last.finishedMs };
  const slotMs = last.origin === "schedule" ? last.slotMs : undefined;
  const nextStep = "Look at the run, and at what changed at the service; `unusual` of the policy sets when it is told";
  return [
    {
      ...{ ...none, ...times, slotMs, nextStep, about: "policy", name: policy.name, touches: [line] },
      ...{ state: "unusual", what: describeUnusual(unusual) },
    },
  ];
}

/** Since when a policy is as it is, where that is known. */
export function sinceOf(line: PolicyLine): number | undefined {
  const { health, worst, missedMs, unplannedMs, late, open } = line;
  if (health === "quarantined" || health === "paused") return pauseOf(line)?.sinceMs;
  if (health === "unplanned") return unplannedMs;
  if (health === "late") return late?.sinceMs;
  if (health === "missed") return missedMs ?? worst?.last.slotMs;
  if (health === "conflicts" && open !== undefined) return open.sinceMs;
  // Since when it is bad or well. What needs a person and is no failed run, such as conflicts or an
  // unmet expectation, counts from the last outcome.
  return needsPerson[health] && worst?.weight !== "bad" ? worst?.last.finishedMs : worst?.sinceMs;
}

/** What a policy's health means and who knows of it, in one sentence without its name. */
export function describePolicy(line: PolicyLine, nowMs: number): string {
  const { late, policy, health, acknowledged, open } = line;
  const isOpen = health === "conflicts" && open !== undefined;
  const words = [
    ...(health === "late" || isOpen || (health === "service-down" && line.waitingMs !== undefined)
      ? []
      : [describeHealth(line, nowMs)]),
    ...(late === undefined ? [] : [describeLate(late, policy, nowMs)]),
    ...(open === undefined ? [] : [describeCounted(open, policy, nowMs)]),
    ...(line.waitingMs === undefined ? [] : [describeWaiting(line, nowMs)]),
    ...(acknowledged === undefined ? [] : [acknowledgementWords(acknowledged)]),
  ];
  return words.join("; ");
}

/** Who paused it, until when and why. */
export function pauseWords({ actor, note, untilMs }: Pause, { timezone }: Policy, nowMs: number): string {
  const until = untilMs === null ? "" : ` until ${showNear(untilMs, timezone, nowMs)}`;
  return `paused by ${actor}${until}: ${note}`;
}

/** Why a policy is in quarantine. */
export function quarantineNote(line: PolicyLine): string {
  return pauseOf(line)?.note ?? "";
}

function describeHealth(line: PolicyLine, nowMs: number): string {
  const { health, worst, pauses, policy } = line;
  const target = policy.action.kind === "run" || policy.action.kind === "activate" ? `sync job ${worst?.target}: ` : "";
  const ended = worst === undefined ? "" : `${target}${wordsOfEnd(worst.last.status)} (${worst.last.reason})`;
  const [pause] = pauses;
  switch (health) {
    case "quarantined":
      return `its slots are skipped: ${quarantineNote(line)}`;
    case "paused":
      return pause === undefined ? "paused" : pauseWords(pause, policy, nowMs);
    case "unplanned":
      return "a slot is due, and no scheduler has planned it";
    case "missed":
      return worst?.last.status === "missed" ? ended : "a slot was missed";
    case "service-down":
      return `nothing starts while ${policy.service} is down`;
    case "new":
      return "no outcome yet";
    default:
      return `${ended}${worst?.weight === "bad" && worst.inARow > 1 ? `, ${worst.inARow} in a row` : ""}`;
  }
}

const endings: Readonly<Record<string, string>> = {
  unknown: "not known whether it ran well",
  blocked: "waits for an approval",
  conflicts: "ended with new conflicts",
  "timed-out": "not ended in its time",
  "not-started": "not started",
};

/** How a task ended, for who does not know the names of endings. */
export function wordsOfEnd(status: string): string {
  return endings[status] ?? status;
}

const stepOfReason: Readonly<Partial<Record<OutcomeReason, string>>> = {
  refused: "The service calls the request wrong, the run tells its words: is the sync job there, in this repository?",
  "no-access": "The service does not let it in: check the token and its rights with `syncline doctor`",
  unreachable: "The service did not answer: is it up? `syncline doctor` says",
  "server-error": "The service failed: look into its log at the time of the run",
  "approval-waiting": "Decide the waiting approval at the service",
};

/** Whom to ask about it. */
export function whomToAsk({ about, touches }: Pick<AttentionItem, "about" | "touches">): string {
  if (touches.length === 0 || about === "installation") return "for the people who run Syncline";
  const unowned = touches.flatMap(({ policy }) => (policy.owner === undefined ? [policy.name] : []));
  if (unowned.length === touches.length) return "owner: none is named";
  return `owner: ${ownersOf(touches)}${unowned.length === 0 ? "" : `; none is named for ${someNames(unowned, undefined, 3)}`}`;
}

/** What a person does about a policy in trouble; what heals says so by the next run. */
export function nextStepOf(line: PolicyLine): string {
  const { health, worst, waitingMs, underWayMs, policy } = line;
  if (healsByItself(line)) {
    if (waitingMs !== undefined) return `Its run goes on when ${policy.service} answers`;
    return "Its next run makes up for it; run it now if that is too late";
  }
  const reason = Object.entries(stepOfReason).find(([known]) => known === worst?.last.reason)?.[1];
  if (health === "quarantined") return "Mend the cause, then resume the policy";
  if (health === "unknown" && worst?.last.kind !== "poll")
    return "Look at the service whether it ran before you replay it";
  if (health === "conflicts") return "Settle them at the service; the list of conflicts is read again at the next run";
  if ((health === "missed" || health === "late") && underWayMs !== undefined)
    return "Its run has not ended yet: look what it waits for before you start another";
  if (health === "missed") return "Run it now, if it is needed; the story of the missed slot tells why";
  if (health === "late") return "Run it now, if that is soon enough; the story of its last slot tells why";
  if (health === "unplanned") return "Is a scheduler alive, and does it have this policy?";
  return reason ?? `Look at ${policy.service} for the cause; the run tells what was sent, answered and seen`;
}
