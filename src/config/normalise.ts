// Normalises checked policy files into the policy set: defaults filled in, durations in
// milliseconds, paths absolute. Otherwise pure. Called by load-policies.ts when there are no
// problems.
import { dirname, resolve } from "node:path";
import type { DeclaredKind, DeclaredObject } from "../core/declared-object.ts";
import { parseDuration } from "../core/duration.ts";
import type { ListName } from "../core/list-name.ts";
import { canonicalJson, hashText } from "../core/stable-hash.ts";
import { parseWallText } from "../core/wall-text.ts";
import { policyDefaults } from "./defaults.ts";
import { toSink } from "./normalise-sink.ts";
import type {
  Action,
  After,
  ClosedTimes,
  Follow,
  ItemMapping,
  NotificationSettings,
  NotifyRule,
  Policy,
  PolicySet,
  Schedule,
  ServiceSettings,
  SinkSettings,
  TlsSettings,
  TokenSettings,
} from "./policy-set.ts";
import type { DefaultsInput, PolicyInput } from "./schema/policy-file.ts";
import type { ScheduleInput } from "./schema/schedule.ts";
import type { ServiceInput } from "./schema/service.ts";
import type { CheckedFile } from "./schema-problems.ts";

/**
 * Builds the policy set from files that passed every check. A missing value is a bug and throws.
 */
export function normalisePolicies(files: readonly CheckedFile[], defaults: DefaultsInput): PolicySet {
  const services = new Map<string, ServiceSettings>();
  const sinks = new Map<string, SinkSettings>();
  const written: UnrootedPolicy[] = [];
  for (const { yaml, input } of files) {
    const { file } = yaml;
    if (input === undefined) throw new Error("a file with a problem passed the checks");
    for (const [name, service] of Object.entries(input.services ?? {}))
      services.set(name, toService(name, service, file));
    for (const [name, sink] of Object.entries(input.sinks ?? {})) sinks.set(name, toSink(name, sink, file));
    for (const [index, policy] of (input.policies ?? []).entries())
      written.push(toPolicy(policy, defaults, { file, line: yaml.lineOf(["policies", index]) }));
  }
  const policies = withChainRoots(written);
  const notifications = toNotifications(files, defaults);
  const contentHash = hashContent({ services, sinks, policies, notifications });
  return { services, sinks, policies, notifications, contentHash, files: files.map(({ yaml }) => yaml.file) };
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
    // For a follower, `after.within` is the only limit of lateness.
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

/** In the order of the kinds, and within each by id. */
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
    // One text for one time, however it is written: a changed text means a changed schedule.
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

/** Activate and poll have nothing to follow, whatever `defaults` says. */
function toFollow(input: PolicyInput, defaults: DefaultsInput, action: Action): Follow {
  const follow = { ...defaults.follow, ...input.follow };
  const deadlineMs = toMs(follow.deadline) ?? policyDefaults.followDeadlineMs;
  // A run is over at its deadline: an approval cannot block it after that, so approvals need not be
  // read.
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

function hashContent({ services, sinks, policies, notifications }: Omit<PolicySet, "contentHash" | "files">): string {
  const byName = <Item extends { readonly name: string }>(items: readonly Item[]) =>
    items.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const content = {
    services: byName([...services.values()]).map((service) => ({
      ...service,
      mapping: Object.fromEntries(service.mapping),
    })),
    policies: byName(policies).map(({ where: _, ...policy }) => policy),
    // Only set when there are sinks, so that the hash stays the same without them.
    ...(sinks.size === 0 ? {} : { sinks: byName([...sinks.values()]) }),
    notifications,
  };
  return hashText(canonicalJson(content), 64);
}

/** Where the token is. `file`: the policy file that paths are relative to. */
function toToken(token: ServiceInput["token"], file: string): TokenSettings {
  const at = pathIn(file);
  if (token.file !== undefined) return { kind: "file", path: at(token.file) };
  if (token.env !== undefined) return { kind: "env", variable: token.env };
  if (token.oauth2 === undefined) throw new Error("a token without file, env and oauth2 passed the checks");
  const { tokenUrl, clientId, clientSecretFile, scope, auth, allowHttp } = token.oauth2;
  return {
    kind: "oauth2",
    tokenUrl,
    clientId,
    clientSecretFile: at(clientSecretFile),
    scope,
    auth: auth ?? policyDefaults.tokenAuth,
    allowHttp: allowHttp ?? policyDefaults.tokenAllowHttp,
  };
}

/** The certificates, if any. */
function toTls(tls: ServiceInput["tls"], file: string): TlsSettings | undefined {
  if (tls === undefined) return undefined;
  const at = pathIn(file);
  const path = (name: string | undefined) => (name === undefined ? undefined : at(name));
  return {
    caFile: path(tls.caFile),
    certFile: path(tls.certFile),
    keyFile: path(tls.keyFile),
    keyPassphraseFile: path(tls.keyPassphraseFile),
    serverName: tls.serverName,
  };
}

function pathIn(file: string): (path: string) => string {
  return (path) => resolve(dirname(file), path);
}

type NotifyItem = NonNullable<PolicyInput["notify"]>[number];

type RuleInput = NonNullable<Exclude<NotifyItem, string>["on"]>[number];

/**
 * The notify rules of a policy, one a sink, and its heartbeat; without the keys where it has none.
 */
function toNotify(input: PolicyInput, defaults: DefaultsInput): Pick<Policy, "notify" | "heartbeat"> {
  const items = input.notify ?? defaults.notify ?? [];
  return {
    ...(items.length === 0 ? {} : { notify: items.map(toRule) }),
    ...(input.heartbeat === undefined ? {} : { heartbeat: { url: input.heartbeat.url } }),
  };
}

function toRule(item: NotifyItem): NotifyRule {
  const { sink, on = ["change"] } = typeof item === "string" ? { sink: item } : item;
  const has = (...words: readonly RuleInput[]) => on.some((rule) => words.includes(rule));
  const failures = on.flatMap((rule) => (typeof rule === "object" && "failure" in rule ? [rule.failure] : []));
  const conflicts = on.flatMap((rule) => (typeof rule === "object" && "conflicts" in rule ? [rule.conflicts] : []));
  return {
    sink,
    every: has("every"),
    // A rule with a number is more specific than what `change` implies.
    failuresInRow: failures[0] ?? (has("failure", "change") ? 1 : undefined),
    conflicts: conflicts[0] ?? (has("conflicts", "change") ? "judged" : undefined),
    blocked: has("blocked", "change"),
    unknown: has("unknown", "change"),
    missed: has("missed", "change"),
    drift: has("drift", "change"),
    recovery: has("recovery", "change"),
    stale: has("stale"),
    tokenExpiring: has("token-expiring"),
  };
}

/** The notification settings, from the one file that has them, with defaults. */
function toNotifications(files: readonly CheckedFile[], defaults: DefaultsInput): NotificationSettings {
  const notifications = files.find(({ input }) => input?.notifications !== undefined)?.input?.notifications;
  const groupWaitMs =
    notifications?.groupWait === undefined ? policyDefaults.groupWaitMs : parseDuration(notifications.groupWait);
  const hours = notifications?.muteTiming;
  if (hours === undefined) return { groupWaitMs: groupWaitMs, muteTiming: undefined };
  const { from, to, except = [] } = hours;
  const timezone = hours.timezone ?? defaults.timezone ?? policyDefaults.timezone;
  return {
    groupWaitMs: groupWaitMs,
    muteTiming: { fromMinute: toMinute(from), toMinute: toMinute(to), timezone, except },
  };
}

function toMinute(clockTime: string): number {
  const [hours = 0, minutes = 0] = clockTime.split(":").map(Number);
  return hours * 60 + minutes;
}

/** A policy before the root of its chain is known. */
interface UnrootedPolicy extends Omit<Policy, "after"> {
  readonly after?: Omit<After, "root">;
}

/**
 * Adds the root of each chain. Every chain must begin with a schedule (chain-rules.ts checks it).
 */
function withChainRoots(policies: readonly UnrootedPolicy[]): Policy[] {
  const byName = new Map(policies.map((policy) => [policy.name, policy]));
  return policies.map(({ after, ...policy }) =>
    after === undefined ? policy : { ...policy, after: { ...after, root: rootOf(after.policy, byName) } },
  );
}

function rootOf(predecessor: string, byName: ReadonlyMap<string, UnrootedPolicy>): After["root"] {
  let first = byName.get(predecessor);
  // Circles have been refused, so a chain is shorter than the list of all policies.
  for (let step = 0; step < byName.size && first?.after !== undefined; step += 1)
    first = byName.get(first.after.policy);
  if (first?.schedule === undefined) throw new Error("a chain without a beginning passed the checks");
  return { name: first.name, schedule: first.schedule };
}
