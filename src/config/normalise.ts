// Normalises checked policy files into the policy set: defaults filled in, durations in
// milliseconds, paths absolute. What the checks make impossible is a bug and throws.

import { dirname, resolve } from "node:path";
import type { DeclaredKind, DeclaredObject } from "../core/declared-object.ts";
import { parseDuration, parseWallText } from "../core/duration.ts";
import { defined } from "../core/json.ts";
import { type ListName, listNames } from "../model/feed.ts";
import { hasLabels, labelsOf, selectorOf } from "../model/label.ts";
import { runByHand } from "../model/task.ts";
import { policyDefaults } from "./defaults.ts";
import {
  type Action,
  type After,
  type ClosedTimes,
  type DigestSettings,
  dailyCron,
  type EventCalendar,
  type Expectation,
  type Follow,
  type ItemMapping,
  mappingKeys,
  type NotificationSettings,
  type NotifyRule,
  type Policy,
  type PolicySet,
  type Schedule,
  type ServiceSettings,
  type SinkSettings,
  type TokenSettings,
} from "./policy-set.ts";
import { policyLimits } from "./rules/policy-limits.ts";
import type { DefaultsInput, PolicyFileInput, PolicyInput } from "./schema/policy-file.ts";
import type { ScheduleInput } from "./schema/schedule.ts";
import type { ServiceInput } from "./schema/service.ts";
import type { SinkInput } from "./schema/sink.ts";
import type { CheckedFile } from "./schema-problems.ts";
import { hashContent } from "./set-content.ts";

/** Builds the policy set from files that passed every check, and their merged `defaults`. */
export function normalisePolicies(
  files: readonly CheckedFile[],
  defaults: DefaultsInput,
  calendars: ReadonlyMap<string, EventCalendar>,
): PolicySet {
  const services = new Map<string, ServiceSettings>();
  const sinks = new Map<string, SinkSettings>();
  const written: UnrootedPolicy[] = [];
  for (const { yaml, input = impossible("a file with a problem") } of files) {
    const at = (path: string) => resolve(dirname(yaml.file), path);
    for (const [name, service] of Object.entries(input.services ?? {}))
      services.set(name, toService(name, service, at));
    for (const [name, sink] of Object.entries(input.sinks ?? {})) sinks.set(name, toSink(name, sink, at));
    for (const [index, policy] of (input.policies ?? []).entries())
      written.push(
        toPolicy(policy, { defaults, calendars }, { file: yaml.file, line: yaml.lineOf(["policies", index]) }),
      );
  }
  const policies = withChainRoots(written);
  const notifications = toNotifications(files, defaults);
  const byHand = toByHand(defaults);
  const content = { services, sinks, calendars, policies, byHand, notifications };
  return { ...content, contentHash: hashContent(content), files: files.map(({ yaml }) => yaml.file) };
}

function impossible(what: string): never {
  throw new Error(`${what} passed the checks`);
}

/** The absolute path of a path in the policy file. */
type Locate = (path: string) => string;

function toService(name: string, input: ServiceInput, at: Locate): ServiceSettings {
  const { syncJob, ...items } = input.mapping ?? {};
  const mapping: Partial<Record<ListName, ItemMapping>> = {};
  for (const list of listNames) {
    const { sample: _checkedBefore, ...texts } = items[mappingKeys[list]] ?? {};
    if (items[mappingKeys[list]] !== undefined) mapping[list] = texts;
  }
  const { tls, limits, breaker } = input;
  return {
    name,
    baseUrl: input.baseUrl.replace(/\/+$/, ""),
    token: toToken(input.token, at),
    tls: tls && {
      caFile: toPath(tls.caFile, at),
      certFile: toPath(tls.certFile, at),
      keyFile: toPath(tls.keyFile, at),
      keyPassphraseFile: toPath(tls.keyPassphraseFile, at),
      serverName: tls.serverName,
    },
    pathForm: input.pathForm ?? policyDefaults.pathForm,
    concurrency: limits?.concurrency ?? policyDefaults.concurrency,
    limits: { concurrencyMax: limits?.concurrency, requestsPerSecond: limits?.requestsPerSecond },
    breaker: {
      after: breaker?.after ?? policyDefaults.breakerAfter,
      probeMs: toMs(breaker?.probe) ?? policyDefaults.breakerProbeMs,
    },
    requestTimeoutMs: toMs(input.timeouts?.request) ?? policyDefaults.requestTimeoutMs,
    mapping,
    ...defined({
      syncJob: syncJob && { select: [], ...syncJob },
      identity: input.identity && { administrator: false, ...input.identity },
    }),
  };
}

function toToken({ file, env, oauth2 }: ServiceInput["token"], at: Locate): TokenSettings {
  if (file !== undefined) return { kind: "file", path: at(file) };
  if (env !== undefined) return { kind: "env", variable: env };
  const { clientSecretFile, scope, ...rest } = oauth2 ?? impossible("a token without a kind");
  const defaults = { auth: policyDefaults.tokenAuth, allowHttp: false };
  return { kind: "oauth2", ...defaults, ...rest, clientSecretFile: at(clientSecretFile), scope };
}

const unitBytes = { KB: 1_000, MB: 1_000_000, GB: 1_000_000_000 } as const;

function toSink(name: string, input: SinkInput, at: Locate): SinkSettings {
  return {
    name,
    to: toDestination(input, at),
    giveUpAfterMs: toMs(input.giveUpAfter) ?? policyDefaults.sinkGiveUpAfterMs,
    queueMax: input.queueMax ?? policyLimits.sinkQueueMax,
    ...defined({ items: input.items && [...new Set(input.items)].sort() }),
  };
}

function toDestination({ webhook, file, email }: SinkInput, at: Locate): SinkSettings["to"] {
  if (email !== undefined) {
    const { port = policyDefaults.emailPort, passwordFile, tls, timeout } = email;
    return {
      ...{ kind: "email", host: email.host, port, startTls: email.startTls ?? port !== policyDefaults.emailPort },
      ...{ from: email.from, to: email.to, user: email.user, passwordFile: toPath(passwordFile, at) },
      tls: { caFile: toPath(tls?.caFile, at), serverName: tls?.serverName },
      timeoutMs: toMs(timeout) ?? policyDefaults.emailTimeoutMs,
    };
  }
  if (webhook !== undefined)
    return {
      kind: "webhook",
      url: webhook.url,
      secretFile: toPath(webhook.secretFile, at),
      previousSecretFile: toPath(webhook.previousSecretFile, at),
      format: webhook.format ?? policyDefaults.sinkFormat,
      timeoutMs: toMs(webhook.timeout) ?? policyDefaults.sinkTimeoutMs,
    };
  const { path, maxSize, maxFiles = policyDefaults.sinkFilesMax } = file ?? impossible("a sink without a kind");
  const [, size, unit] = /^(\d+)(.*)$/.exec(maxSize ?? "") ?? [];
  const bytesMax = Number(size) * unitBytes[unit as keyof typeof unitBytes] || policyDefaults.sinkFileBytesMax;
  return { kind: "file", path: at(path), bytesMax, filesMax: maxFiles };
}

/** What the policies of a set share. */
interface SetContext {
  readonly defaults: DefaultsInput;
  readonly calendars: ReadonlyMap<string, EventCalendar>;
}

function toPolicy(input: PolicyInput, shared: SetContext, where: Policy["where"]): UnrootedPolicy {
  const { defaults } = shared;
  const action = toAction(input);
  const schedule = input.schedule === undefined ? undefined : toSchedule(input.schedule, defaults);
  const windowMs = Math.min(schedule?.kind === "every" ? schedule.everyMs : Infinity, policyDefaults.catchUpWindowMs);
  const { after, heartbeat, labels, needs, owner, ...merged } = { ...defaults, ...input };
  const { notify = [], quarantine = "off", unusual = {} } = merged;
  const isAbout = (item: NotifyItem) =>
    typeof item === "string" || hasLabels(input, selectorOf(labelsOf({ labels: item.match })));
  const rules = notify.filter(isAbout).map(toRule);
  const withinMs = toMs(after?.within) ?? policyDefaults.afterWithinMs;
  return {
    name: input.name,
    service: input.service,
    ...defined({ labels, owner, heartbeat }),
    repository: input.repository,
    action,
    schedule,
    ...(after === undefined ? {} : { after: { policy: after.policy, on: after.on ?? ["succeeded"], withinMs } }),
    timezone: input.schedule?.timezone ?? defaults.timezone ?? policyDefaults.timezone,
    closed: toClosed(input, shared),
    catchUp: merged.catchUp ?? policyDefaults.catchUp,
    // Of a follower: how long after its slot it may be planned. Its start-by time: slot-tasks.ts.
    catchUpWindowMs: after === undefined ? (toMs(merged.catchUpWindow) ?? windowMs) : withinMs,
    overlap: merged.overlap ?? policyDefaults.overlap,
    follow: toFollow({ ...defaults.follow, ...input.follow }, action),
    onUnknown: merged.onUnknown ?? policyDefaults.onUnknown,
    quarantine:
      quarantine === "off"
        ? undefined
        : { after: quarantine.after, forMs: toMs(quarantine.for) ?? policyDefaults.quarantineForMs },
    unusual: action.kind === "run" ? toUnusual(unusual) : undefined,
    ...defined({
      needs: needs && { policy: needs.policy, withinMs: parseDuration(needs.within) },
      expect: input.expect && toExpectation(input.expect),
      notify: rules.length === 0 ? undefined : rules,
    }),
    where,
  };
}

function toClosed({ blackout, holidays }: PolicyInput, { defaults, calendars }: SetContext): ClosedTimes {
  const windows = blackout ?? defaults.blackout ?? [];
  const days = holidays ?? defaults.holidays ?? [];
  const find = (as: "holiday" | "blackout") => (item: unknown) => {
    const calendar = typeof item === "string" ? calendars.get(item) : undefined;
    return calendar === undefined ? [] : [{ as, calendar }];
  };
  const named = [...windows.flatMap(find("blackout")), ...days.flatMap(find("holiday"))];
  return {
    blackouts: windows.flatMap((one) =>
      typeof one === "string" ? [] : [{ cron: one.cron, durationMs: parseDuration(one.for) }],
    ),
    holidays: days.filter((day) => /^\d/.test(day)),
    ...(named.length === 0 ? {} : { calendars: named }),
  };
}

function toExpectation({ successBy, on = "*", within }: NonNullable<PolicyInput["expect"]>): Expectation {
  if (within !== undefined) return { kind: "within", withinMs: parseDuration(within) };
  return { kind: "successBy", at: successBy ?? impossible("a deadline without a kind"), on };
}

function toUnusual(unusual: NonNullable<PolicyInput["unusual"]>): Policy["unusual"] {
  if (unusual === "off") return undefined;
  const { unusualFactor, unusualFloorMs, unusualItemsFloor, unusualRuns } = policyDefaults;
  const { factor = unusualFactor, floor, itemsFloor = unusualItemsFloor, runs = unusualRuns } = unusual;
  return { factor, floorMs: toMs(floor) ?? unusualFloorMs, itemsFloor, runs };
}

/**
 * How a sync job without a policy is run by hand: it notifies no sink, and is never unusual or in
 * quarantine, since a person looks at it.
 */
function toByHand(defaults: DefaultsInput): Policy {
  const input = { name: runByHand, service: "", run: { syncJobs: [] } };
  const quiet: DefaultsInput = { ...defaults, notify: [], quarantine: "off", unusual: "off" };
  const shared = { defaults: quiet, calendars: new Map() };
  const { after: _none, ...policy } = toPolicy(input, shared, { file: "", line: 0 });
  return policy;
}

function toAction({ run, poll, delete: deletion, activate, apply }: PolicyInput): Action {
  if (poll !== undefined) return { kind: "poll", notifyOn: policyDefaults.pollNotifyOn, expect: undefined, ...poll };
  if (deletion !== undefined) return { kind: "delete", ...deletion };
  if (activate !== undefined) return { kind: "activate", syncJobs: activate.syncJobs };
  const first = run?.activate === true ? ({ activate: true } as const) : {};
  if (run?.syncJobs !== undefined) return { kind: "run", syncJobs: run.syncJobs, ...first };
  if (run?.fromMasks !== undefined) return { kind: "run", fromMasks: run.fromMasks, ...first };
  return { kind: "apply", objects: toObjects(apply ?? impossible("a policy without an action")) };
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

function toSchedule({ cron, every, once, ...input }: ScheduleInput, defaults: DefaultsInput): Schedule {
  const spreadMs = toMs(input.spread) ?? policyDefaults.spreadMs;
  const everyMs = toMs(every);
  if (everyMs !== undefined) return { kind: "every", everyMs, spreadMs };
  const timezone = input.timezone ?? defaults.timezone ?? policyDefaults.timezone;
  const dst = {
    gap: input.dst?.gap ?? defaults.dst?.gap ?? policyDefaults.dstGap,
    overlap: input.dst?.overlap ?? defaults.dst?.overlap ?? policyDefaults.dstOverlap,
  };
  if (once !== undefined) {
    // One text for one time, however it is written: a changed text means a changed schedule.
    const at = new Date(parseWallText(once) ?? Number.NaN).toISOString().slice(0, 19);
    return { kind: "once", at, timezone, dst, spreadMs };
  }
  const expressions = [cron ?? impossible("a schedule without a kind")].flat();
  return { kind: "cron", expressions, timezone, dst, spreadMs };
}

/** Only a run is followed, whatever `defaults` says. */
function toFollow(follow: NonNullable<PolicyInput["follow"]>, action: Action): Follow {
  const deadlineMs = toMs(follow.deadline) ?? policyDefaults.followDeadlineMs;
  const { blockedAfter, appearsWithin } = follow;
  // A run is over at its deadline: an approval cannot block it after that.
  const blockedAfterMs =
    blockedAfter === "off" ? deadlineMs : (toMs(blockedAfter) ?? policyDefaults.followBlockedAfterMs);
  const until = action.kind === "run" ? (follow.until ?? policyDefaults.followUntil) : "accepted";
  return {
    until,
    deadlineMs,
    quietForMs: toMs(follow.quietFor) ?? policyDefaults.followQuietForMs,
    unreadableForMs: toMs(follow.unreadableFor) ?? policyDefaults.followUnreadableForMs,
    blockedAfterMs: blockedAfterMs < deadlineMs ? blockedAfterMs : undefined,
    ...defined({ appearsWithinMs: toMs(appearsWithin) }),
    conflictsMax: until === "accepted" ? undefined : follow.conflictsMax,
  };
}

function toMs(duration: string | undefined): number | undefined {
  return duration === undefined ? undefined : parseDuration(duration);
}

function toPath(path: string | undefined, at: Locate): string | undefined {
  return path === undefined ? undefined : at(path);
}

type NotifyItem = NonNullable<PolicyInput["notify"]>[number];

type RuleInput = NonNullable<Exclude<NotifyItem, string>["on"]>[number];

function toRule(item: NotifyItem): NotifyRule {
  const { sink, on = ["change"] } = typeof item === "string" ? { sink: item } : item;
  const has = (...words: readonly RuleInput[]) => on.some((rule) => words.includes(rule));
  const failures = on.flatMap((rule) => (typeof rule === "object" && "failure" in rule ? [rule.failure] : []));
  const conflicts = on.flatMap((rule) => (typeof rule === "object" && "conflicts" in rule ? [rule.conflicts] : []));
  return {
    sink,
    every: has("every"),
    change: has("change"),
    // A rule with a number is more specific than what `change` implies.
    failuresInRow: least(failures) ?? (has("failure", "change") ? 1 : undefined),
    conflicts: least(conflicts) ?? (has("conflicts", "change") ? "judged" : undefined),
    blocked: has("blocked", "change"),
    unknown: has("unknown", "change"),
    missed: has("missed", "change"),
    drift: has("drift", "change"),
    unusual: has("unusual", "change"),
    recovery: has("recovery", "change"),
    stale: has("stale"),
    late: has("late", "change"),
    tokenExpiring: has("token-expiring"),
  };
}

/** Of several numbers the smallest: with it, what each of them asks for is told. */
function least(numbers: readonly number[]): number | undefined {
  return numbers.length === 0 ? undefined : Math.min(...numbers);
}

/** The notification settings, from the one file that has them. */
function toNotifications(files: readonly CheckedFile[], defaults: DefaultsInput): NotificationSettings {
  const written = files.find(({ input }) => input?.notifications)?.input?.notifications ?? {};
  const { groupWait, muteTiming, link } = written;
  const digests = Object.entries(written.digests ?? {}).map(([name, digest]) => toDigest(name, digest, defaults));
  return {
    groupWaitMs: toMs(groupWait) ?? policyDefaults.groupWaitMs,
    muteTiming: muteTiming && {
      fromMinute: toMinute(muteTiming.from),
      toMinute: toMinute(muteTiming.to),
      timezone: muteTiming.timezone ?? defaults.timezone ?? policyDefaults.timezone,
      except: muteTiming.except ?? [],
    },
    ...defined({ link, digests: digests.length === 0 ? undefined : digests }),
  };
}

type DigestInput = NonNullable<NonNullable<PolicyFileInput["notifications"]>["digests"]>[string];

function toDigest(name: string, { at, on, to, by, ...input }: DigestInput, defaults: DefaultsInput): DigestSettings {
  const timezone = input.timezone ?? defaults.timezone ?? policyDefaults.timezone;
  const dst = { gap: policyDefaults.dstGap, overlap: policyDefaults.dstOverlap };
  const schedule = { kind: "cron", expressions: [dailyCron(at, on)], timezone, dst, spreadMs: 0 } as const;
  const label = selectorOf(labelsOf({ labels: input.label }));
  return { name, schedule, timezone, to: [...new Set(to)], label, ...defined({ by }) };
}

function toMinute(clockTime: string): number {
  const [hours = 0, minutes = 0] = clockTime.split(":").map(Number);
  return hours * 60 + minutes;
}

/** A policy before the root of its chain is known. */
interface UnrootedPolicy extends Omit<Policy, "after"> {
  readonly after?: Omit<After, "root">;
}

/** Adds the root of each chain, whose zone is that of all who follow it. */
function withChainRoots(policies: readonly UnrootedPolicy[]): Policy[] {
  const byName = new Map(policies.map((policy) => [policy.name, policy]));
  return policies.map(({ after, ...policy }) => {
    if (after === undefined) return policy;
    let first = byName.get(after.policy);
    // Circles have been refused, so this ends.
    while (first?.after !== undefined) first = byName.get(first.after.policy);
    const { name, schedule, timezone } = first ?? impossible("a chain without a beginning");
    return {
      ...policy,
      timezone,
      after: { ...after, root: { name, schedule: schedule ?? impossible("a chain without a schedule") } },
    };
  });
}
