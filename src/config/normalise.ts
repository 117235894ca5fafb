// From policy files as written to the policies as the rest sees them: defaults filled in, durations in milliseconds.
// Called by load-policies.ts when nothing is wrong any more. Pure, apart from making token paths absolute.

import type { DeclaredKind, DeclaredObject } from "../core/declared-object.ts";
import { parseDuration } from "../core/duration.ts";
import type { ListName } from "../core/list-name.ts";
import { canonicalJson, hashText } from "../core/stable-hash.ts";
import { parseWallText } from "../core/wall-text.ts";
import { type UnrootedPolicy, withChainRoots } from "./chain-roots.ts";
import { policyDefaults } from "./defaults.ts";
import { toTls, toToken } from "./normalise-login.ts";
import { toNotify, toTelling } from "./normalise-notify.ts";
import { toSink } from "./normalise-sink.ts";
import type {
  Action,
  After,
  ClosedTimes,
  Follow,
  ItemMapping,
  Policy,
  PolicySet,
  Schedule,
  ServiceSettings,
  SinkSettings,
} from "./policy-set.ts";
import type { DefaultsInput, PolicyFileInput, PolicyInput } from "./schema/policy-file.ts";
import type { ScheduleInput } from "./schema/schedule.ts";
import type { ServiceInput } from "./schema/service.ts";

/** A file that passed every check. */
export interface CheckedFile {
  readonly file: string;
  readonly input: PolicyFileInput;
  /** The line of the policy with this index. */
  readonly lineOfPolicy: (index: number) => number;
}

/** Builds the policy set. Call it only with files that passed every check: what is missing then is a bug and throws. */
export function normalisePolicies(files: readonly CheckedFile[]): PolicySet {
  const services = new Map<string, ServiceSettings>();
  const sinks = new Map<string, SinkSettings>();
  for (const { file, input } of files) {
    for (const [name, service] of Object.entries(input.services ?? {}))
      services.set(name, toService(name, service, file));
    for (const [name, sink] of Object.entries(input.sinks ?? {})) sinks.set(name, toSink(name, sink, file));
  }
  const defaults: DefaultsInput = Object.assign({}, ...files.map(({ input }) => input.defaults ?? {}));
  const written = files.flatMap(({ file, input, lineOfPolicy }) =>
    (input.policies ?? []).map((policy, index) => toPolicy(policy, defaults, { file, line: lineOfPolicy(index) })),
  );
  const policies = withChainRoots(written);
  const inputs = files.map(({ input }) => input);
  const telling = toTelling(inputs, defaults);
  const contentHash = hashContent({ services, sinks, policies, telling });
  return { services, sinks, policies, telling, contentHash, files: files.map(({ file }) => file) };
}

const listOfItem = {
  activity: "activities",
  conflict: "conflictDetails",
  approval: "approvals",
  trigger: "triggers",
  authActivity: "authActivities",
  mask: "masks",
} as const satisfies Record<Exclude<keyof NonNullable<ServiceInput["mapping"]>, "syncJob">, ListName>;

function toService(name: string, input: ServiceInput, file: string): ServiceSettings {
  const mapping = new Map<ListName, ItemMapping>();
  for (const item of ["activity", "conflict", "approval", "trigger", "authActivity", "mask"] as const) {
    const meaning = input.mapping?.[item];
    if (meaning === undefined) continue;
    const { sample: _checkedBefore, ...texts } = meaning;
    mapping.set(listOfItem[item], texts);
  }
  return {
    name,
    baseUrl: input.baseUrl.replace(/\/+$/, ""),
    token: toToken(input.token, file),
    tls: toTls(input.tls, file),
    pathForm: input.pathForm ?? policyDefaults.pathForm,
    concurrency: input.limits?.concurrency ?? policyDefaults.concurrency,
    limits: {
      concurrencyMax: input.limits?.concurrency,
      requestsPerSecond: input.limits?.requestsPerSecond,
    },
    breaker: {
      after: input.breaker?.after ?? policyDefaults.breakerAfter,
      probeMs: toMs(input.breaker?.probe) ?? policyDefaults.breakerProbeMs,
    },
    requestTimeoutMs: toMs(input.timeouts?.request) ?? policyDefaults.requestTimeoutMs,
    mapping,
    ...toSyncJobMapping(input),
    ...(input.identity === undefined ? {} : { identity: { administrator: false, ...input.identity } }),
  };
}

function toSyncJobMapping({ mapping }: ServiceInput): Pick<ServiceSettings, "syncJob"> {
  if (mapping?.syncJob === undefined) return {};
  const { active, select = [] } = mapping.syncJob;
  return { syncJob: { active, select } };
}

function toPolicy(input: PolicyInput, defaults: DefaultsInput, where: Policy["where"]): UnrootedPolicy {
  const action = toAction(input);
  const schedule = input.schedule === undefined ? undefined : toSchedule(input.schedule, defaults);
  const windowMs =
    schedule?.kind === "every"
      ? Math.min(schedule.everyMs, policyDefaults.catchUpWindowMs)
      : policyDefaults.catchUpWindowMs;
  const after = input.after === undefined ? undefined : toAfter(input.after);
  return {
    name: input.name,
    service: input.service,
    repository: input.repository,
    action,
    schedule,
    ...(after === undefined ? {} : { after }),
    closed: toClosedTimes(input, defaults),
    catchUp: input.catchUp ?? defaults.catchUp ?? policyDefaults.catchUp,
    // What follows another is late by after.within, and by nothing else.
    catchUpWindowMs: after?.withinMs ?? toMs(input.catchUpWindow ?? defaults.catchUpWindow) ?? windowMs,
    overlap: input.overlap ?? defaults.overlap ?? policyDefaults.overlap,
    follow: toFollow(input, defaults, action),
    onUnknown: input.onUnknown ?? defaults.onUnknown ?? policyDefaults.onUnknown,
    quarantine: toQuarantine(input.quarantine ?? defaults.quarantine),
    ...toNotify(input, defaults),
    where,
  };
}

function toQuarantine(input: PolicyInput["quarantine"]): Policy["quarantine"] {
  if (input === undefined || input === "off") return undefined;
  return { after: input.after, forMs: toMs(input.for) ?? policyDefaults.quarantineForMs };
}

function toAction(input: PolicyInput): Action {
  if (input.poll !== undefined) {
    const { list, expect, offending, notifyOn = policyDefaults.pollNotifyOn } = input.poll;
    return { kind: "poll", list, expect, ...(offending === undefined ? {} : { offending }), notifyOn };
  }
  if (input.delete !== undefined) return { kind: "delete", ...input.delete };
  if (input.activate !== undefined) return { kind: "activate", syncJobs: input.activate.syncJobs };
  const first = input.run?.activate === true ? ({ activate: true } as const) : {};
  if (input.run?.syncJobs !== undefined) return { kind: "run", syncJobs: input.run.syncJobs, ...first };
  if (input.run?.fromMasks !== undefined) return { kind: "run", fromMasks: input.run.fromMasks, ...first };
  if (input.apply !== undefined) return { kind: "apply", objects: toObjects(input.apply) };
  throw new Error("a policy without an action passed the checks");
}

/** In the order of the kinds, and in each by id. */
function toObjects({ syncJobs, docMasks, driveTargets, siteTargets }: NonNullable<PolicyInput["apply"]>) {
  const of = (kind: DeclaredKind, objects: Readonly<Record<string, DeclaredObject["fields"]>> = {}): DeclaredObject[] =>
    Object.entries(objects).map(([id, fields]) => ({ kind, id: Number(id), fields }));
  return [
    ...of("syncJob", syncJobs),
    ...of("docMask", docMasks),
    ...of("driveTarget", driveTargets),
    ...of("siteTarget", siteTargets),
  ];
}

function toSchedule(input: ScheduleInput, defaults: DefaultsInput): Schedule {
  const spreadMs = toMs(input.spread) ?? policyDefaults.spreadMs;
  const everyMs = toMs(input.every);
  if (everyMs !== undefined) return { kind: "every", everyMs, spreadMs };
  const timezone = input.timezone ?? defaults.timezone ?? policyDefaults.timezone;
  const dst = {
    gap: input.dst?.gap ?? defaults.dst?.gap ?? policyDefaults.dstGap,
    overlap: input.dst?.overlap ?? defaults.dst?.overlap ?? policyDefaults.dstOverlap,
  };
  if (input.once !== undefined) {
    // One text for one time, however it is written: the text tells whether a schedule has changed.
    const at = new Date(parseWallText(input.once) ?? Number.NaN).toISOString().slice(0, 19);
    return { kind: "once", at, timezone, dst, spreadMs };
  }
  if (input.cron === undefined) throw new Error("a schedule without cron, every and once passed the checks");
  const expressions = typeof input.cron === "string" ? [input.cron] : input.cron;
  return { kind: "cron", expressions, timezone, dst, spreadMs };
}

function toAfter({ policy, on, within }: NonNullable<PolicyInput["after"]>): Omit<After, "root"> {
  return { policy, on: on ?? ["succeeded"], withinMs: toMs(within) ?? policyDefaults.afterWithinMs };
}

function toClosedTimes(input: PolicyInput, defaults: DefaultsInput): ClosedTimes {
  return {
    timezone: input.schedule?.timezone ?? defaults.timezone ?? policyDefaults.timezone,
    blackouts: (input.blackout ?? defaults.blackout ?? []).map((window) => ({
      cron: window.cron,
      durationMs: parseDuration(window.for),
    })),
    holidays: input.holidays ?? defaults.holidays ?? [],
  };
}

/** After activate and poll there is nothing to follow, whatever `defaults` says. */
function toFollow(input: PolicyInput, defaults: DefaultsInput, action: Action): Follow {
  const follow = { ...defaults.follow, ...input.follow };
  const deadlineMs = toMs(follow.deadline) ?? policyDefaults.followDeadlineMs;
  // A run is over at its deadline: what cannot block it before need not be read.
  const blockedAfterMs = toBlockedAfter(follow.blockedAfter);
  const until = action.kind === "run" ? (follow.until ?? policyDefaults.followUntil) : "accepted";
  return {
    until,
    deadlineMs,
    quietForMs: toMs(follow.quietFor) ?? policyDefaults.followQuietForMs,
    unreadableForMs: toMs(follow.unreadableFor) ?? policyDefaults.followUnreadableForMs,
    blockedAfterMs: blockedAfterMs !== undefined && blockedAfterMs < deadlineMs ? blockedAfterMs : undefined,
    ...(follow.appearsWithin === undefined ? {} : { appearsWithinMs: parseDuration(follow.appearsWithin) }),
    conflictsMax: until === "accepted" ? undefined : follow.conflictsMax,
  };
}

function toBlockedAfter(text: string | undefined): number | undefined {
  return text === "off" ? undefined : (toMs(text) ?? policyDefaults.followBlockedAfterMs);
}

function toMs(duration: string | undefined): number | undefined {
  return duration === undefined ? undefined : parseDuration(duration);
}

function hashContent({ services, sinks, policies, telling }: Omit<PolicySet, "contentHash" | "files">): string {
  const byName = <Item extends { readonly name: string }>(items: readonly Item[]) =>
    items.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const content = {
    services: byName([...services.values()]).map((service) => ({
      ...service,
      mapping: Object.fromEntries(service.mapping),
    })),
    policies: byName(policies).map(({ where: _, ...policy }) => policy),
    // Only where there are any, so that nothing changes for those who have none.
    ...(sinks.size === 0 ? {} : { sinks: byName([...sinks.values()]) }),
    telling,
  };
  return hashText(canonicalJson(content), 64);
}
