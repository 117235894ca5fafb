// From policy files as written to the policies as the rest sees them: defaults filled in, durations in milliseconds.
// Called by load-policies.ts when nothing is wrong any more. Pure, apart from making token paths absolute.

import type { DeclaredKind, DeclaredObject } from "../core/declared-object.ts";
import { parseDuration } from "../core/duration.ts";
import type { ListName } from "../core/list-name.ts";
import { canonicalJson, hashText } from "../core/stable-hash.ts";
import { type UnrootedPolicy, withChainRoots } from "./chain-roots.ts";
import { policyDefaults } from "./defaults.ts";
import { toTls, toToken } from "./normalise-login.ts";
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
  for (const { file, input } of files) {
    for (const [name, service] of Object.entries(input.services ?? {}))
      services.set(name, toService(name, service, file));
  }
  const defaults: DefaultsInput = Object.assign({}, ...files.map(({ input }) => input.defaults ?? {}));
  const written = files.flatMap(({ file, input, lineOfPolicy }) =>
    (input.policies ?? []).map((policy, index) => toPolicy(policy, defaults, { file, line: lineOfPolicy(index) })),
  );
  const policies = withChainRoots(written);
  return { services, policies, contentHash: hashContent(services, policies), files: files.map(({ file }) => file) };
}

const listOfItem = {
  activity: "activities",
  conflict: "conflictDetails",
  approval: "approvals",
  trigger: "triggers",
  authActivity: "authActivities",
  mask: "masks",
} as const satisfies Record<keyof NonNullable<ServiceInput["mapping"]>, ListName>;

function toService(name: string, input: ServiceInput, file: string): ServiceSettings {
  const mapping = new Map<ListName, ItemMapping>();
  for (const item of ["activity", "conflict", "approval", "trigger", "authActivity", "mask"] as const) {
    const meaning = input.mapping?.[item];
    if (meaning !== undefined) mapping.set(listOfItem[item], meaning);
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
    ...(input.identity === undefined ? {} : { identity: { administrator: false, ...input.identity } }),
  };
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
    where,
  };
}

function toQuarantine(input: PolicyInput["quarantine"]): Policy["quarantine"] {
  if (input === undefined || input === "off") return undefined;
  return { after: input.after, forMs: toMs(input.for) ?? policyDefaults.quarantineForMs };
}

function toAction(input: PolicyInput): Action {
  if (input.poll !== undefined) return { kind: "poll", list: input.poll.list, expect: input.poll.expect };
  if (input.activate !== undefined) return { kind: "activate", syncJobs: input.activate.syncJobs };
  if (input.run?.syncJobs !== undefined) return { kind: "run", syncJobs: input.run.syncJobs };
  if (input.run?.fromMasks !== undefined) return { kind: "run", fromMasks: input.run.fromMasks };
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
  if (input.cron === undefined) throw new Error("a schedule without cron and every passed the checks");
  return {
    kind: "cron",
    expressions: typeof input.cron === "string" ? [input.cron] : input.cron,
    timezone: input.timezone ?? defaults.timezone ?? policyDefaults.timezone,
    dst: {
      gap: input.dst?.gap ?? defaults.dst?.gap ?? policyDefaults.dstGap,
      overlap: input.dst?.overlap ?? defaults.dst?.overlap ?? policyDefaults.dstOverlap,
    },
    spreadMs,
  };
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
  const until = action.kind === "run" ? (follow.until ?? policyDefaults.followUntil) : "accepted";
  return {
    until,
    deadlineMs: toMs(follow.deadline) ?? policyDefaults.followDeadlineMs,
    conflictsMax: until === "accepted" ? undefined : follow.conflictsMax,
  };
}

function toMs(duration: string | undefined): number | undefined {
  return duration === undefined ? undefined : parseDuration(duration);
}

function hashContent(services: ReadonlyMap<string, ServiceSettings>, policies: readonly Policy[]): string {
  const byName = <Item extends { readonly name: string }>(items: readonly Item[]) =>
    items.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const content = {
    services: byName([...services.values()]).map((service) => ({
      ...service,
      mapping: Object.fromEntries(service.mapping),
    })),
    policies: byName(policies).map(({ where: _, ...policy }) => policy),
  };
  return hashText(canonicalJson(content), 64);
}
