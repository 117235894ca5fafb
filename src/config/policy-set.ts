// The policies as the rest of Syncline sees them: checked, with every default filled in. Tokens are
// paths or names of variables: a set holds no secret but the URLs of sinks and heartbeats.
import { type DeclaredObject, objectName } from "../core/declared-object.ts";
import { formatDuration } from "../core/duration.ts";
import type { ListName } from "../model/feed.ts";
import type { Notice } from "../model/notice.ts";
import type { OutcomeStatus } from "../model/outcome.ts";
import type { UnusualRule } from "../model/unusual.ts";
import type { MaskFilter } from "./mask-filter.ts";

/** What the fields of a list's items mean: CEL expressions over `item`. */
export interface ItemMapping {
  readonly id?: string;
  readonly syncJobId?: string;
  readonly startedAt?: string;
  readonly finished?: string;
  readonly succeeded?: string;
  readonly label?: string;
}

/** The key of each list under `mapping` in a policy file. */
export const mappingKeys = {
  activities: "activity",
  conflictDetails: "conflict",
  approvals: "approval",
  triggers: "trigger",
  authActivities: "authActivity",
  masks: "mask",
} as const satisfies Record<ListName, string>;

/** Where a bearer token comes from. Paths are absolute. */
export type TokenSettings =
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "env"; readonly variable: string }
  | {
      readonly kind: "oauth2";
      readonly tokenUrl: string;
      readonly clientId: string;
      readonly clientSecretFile: string;
      readonly scope: string | undefined;
      readonly auth: "basic" | "post";
      readonly allowHttp: boolean;
    };

/** Certificates of a service. Paths are absolute. */
export interface TlsSettings {
  readonly caFile: string | undefined;
  readonly certFile: string | undefined;
  readonly keyFile: string | undefined;
  readonly keyPassphraseFile: string | undefined;
  readonly serverName: string | undefined;
}

/** One service. The base URL has no trailing slash. */
export interface ServiceSettings {
  readonly name: string;
  readonly baseUrl: string;
  readonly token: TokenSettings;
  /** undefined: the public authorities and no client certificate. */
  readonly tls: TlsSettings | undefined;
  readonly pathForm: "parentheses" | "segment";
  /** How many tasks, polls apart, one replica works on at a time. */
  readonly concurrency: number;
  /** Limits of requests over all replicas; undefined: no limit. */
  readonly limits: { readonly concurrencyMax: number | undefined; readonly requestsPerSecond: number | undefined };
  readonly breaker: { readonly after: number; readonly probeMs: number };
  readonly requestTimeoutMs: number;
  readonly mapping: Readonly<Partial<Record<ListName, ItemMapping>>>;
  /** How a sync job shows that it is active, as CEL over `item`; the properties to select. */
  readonly syncJob?: { readonly active: string; readonly select: readonly string[] };
  /** The identity behind the token; only `syncline doctor` reads it. */
  readonly identity?: { readonly id: string; readonly repository: string; readonly administrator: boolean };
}

/** What a policy does. `activate`: activates each sync job before its run. */
export type Action =
  | { readonly kind: "run"; readonly syncJobs: readonly number[]; readonly activate?: true }
  | { readonly kind: "run"; readonly fromMasks: MaskFilter; readonly activate?: true }
  | { readonly kind: "activate"; readonly syncJobs: readonly number[] }
  | { readonly kind: "delete"; readonly syncJob: number; readonly name: string }
  | { readonly kind: "apply"; readonly objects: readonly DeclaredObject[] }
  | PollAction;

/** A poll: `expect` is a CEL expression over the list, `offending` one over an item. */
export interface PollAction {
  readonly kind: "poll";
  readonly list: ListName;
  readonly expect: string | undefined;
  readonly offending?: string;
  readonly notifyOn?: "change" | "always";
}

/** The targets of an action; undefined: masks name the sync jobs, slot by slot. */
export function targetsOf(action: Action): string[] | undefined {
  if (action.kind === "poll") return [action.list];
  if (action.kind === "delete") return [String(action.syncJob)];
  if (action.kind === "apply") return action.objects.map(objectName);
  return "fromMasks" in action ? undefined : action.syncJobs.map(String);
}

/** The schedule that makes a policy's slots: its own, or that at the start of its chain. */
export function scheduleOf({ schedule, after }: Pick<Policy, "schedule" | "after">): Schedule | undefined {
  return after?.root.schedule ?? schedule;
}

/** The zone of a policy's own slots: UTC for an interval, and without a schedule. */
export function zoneOfSlots({ schedule }: Pick<Policy, "schedule">): string {
  return schedule === undefined || schedule.kind === "every" ? "UTC" : schedule.timezone;
}

/** A policy and those that it follows, directly or not, the first of the chain last. */
export function chainOf(policy: Policy, byName: ReadonlyMap<string, Policy>): Policy[] {
  const before = policy.after && byName.get(policy.after.policy);
  return before === undefined ? [policy] : [policy, ...chainOf(before, byName)];
}

/** What a clock change does to a slot: in the skipped hour, and in the repeated one. */
export interface DstRule {
  readonly gap: "next" | "skip";
  readonly overlap: "first" | "second" | "both";
}

/** When a policy is due. `spreadMs`: the window in which its slots are spread; 0 for none. */
export type Schedule =
  | {
      readonly kind: "cron";
      readonly expressions: readonly string[];
      readonly timezone: string;
      readonly dst: DstRule;
      readonly spreadMs: number;
    }
  | { readonly kind: "every"; readonly everyMs: number; readonly spreadMs: number }
  | {
      readonly kind: "once";
      /** Local date and time with seconds, `2026-12-01T06:00:00`. */
      readonly at: string;
      readonly timezone: string;
      /** For a time that comes twice, `both` means the first: once is once. */
      readonly dst: DstRule;
      readonly spreadMs: number;
    };

/** What a policy follows: a slot of `policy` whose tasks all ended in one of `on`. */
export interface After {
  readonly policy: string;
  readonly on: readonly OutcomeStatus[];
  /** How long after that slot this one may begin. */
  readonly withinMs: number;
  /** The policy at the start of the chain: the slots are its schedule's, with its spread. */
  readonly root: { readonly name: string; readonly schedule: Schedule };
}

/** How a started run is followed. All other actions: until accepted. */
export interface Follow {
  readonly until: "accepted" | "settled" | "quiet";
  readonly deadlineMs: number;
  /** How long both lists must show nothing new or changed to settle without direct evidence. */
  readonly quietForMs: number;
  /** A run ends as unknown when activities or conflicts cannot be read for this long. */
  readonly unreadableForMs: number;
  /**
   * A run is blocked when an approval waits and nothing happens for this long; undefined: approvals
   * are not read.
   */
  readonly blockedAfterMs: number | undefined;
  /** Longest time until a started run shows up in the activities; undefined: not known. */
  readonly appearsWithinMs?: number;
  /** More new conflicts than this make the outcome `conflicts`; undefined: 0. */
  readonly conflictsMax: number | undefined;
}

/** Whether the lists are read before each run: it is followed, or its absence is to be shown. */
export function needsBaseline({ until, appearsWithinMs }: Follow): boolean {
  return until !== "accepted" || appearsWithinMs !== undefined;
}

/** Whether the approvals are read around each run: one that waits blocks it. */
export function readsApprovals({ until, blockedAfterMs }: Follow): boolean {
  return until !== "accepted" && blockedAfterMs !== undefined;
}

/**
 * One time of a calendar, up to `to`. Both are dates or local times in the policy's zone
 * (`2026-12-25`, `2026-12-25T10:00:00`), or instants with Z.
 */
export interface CalendarEvent {
  readonly from: string;
  readonly to: string;
  readonly name: string;
}

/** A calendar file. All policies that name it share one object. `hash`: of the text of the file. */
export interface EventCalendar {
  readonly name: string;
  readonly hash: string;
  readonly events: readonly CalendarEvent[];
}

/** When slots do not start: windows from a cron instant on, and local dates (`2026-12-25`). */
export interface ClosedTimes {
  readonly blackouts: readonly { readonly cron: string; readonly durationMs: number }[];
  readonly holidays: readonly string[];
  /** The calendars whose events are holidays, or blackouts; undefined: none. */
  readonly calendars?: readonly { readonly as: "holiday" | "blackout"; readonly calendar: EventCalendar }[];
}

/** What a policy reads: `policy` must have ended well so recently. */
interface Need {
  readonly policy: string;
  readonly withinMs: number;
}

/** By when a policy must have ended well. `at`: `06:00`; `on`: weekdays, as cron writes them. */
export type Expectation =
  | { readonly kind: "successBy"; readonly at: string; readonly on: string }
  | { readonly kind: "within"; readonly withinMs: number };

/** An expectation in words. */
export function describeExpectation(expect: Expectation): string {
  if (expect.kind === "within") return `within ${formatDuration(expect.withinMs)}`;
  return `by ${expect.at}${expect.on === "*" ? "" : ` on ${expect.on}`}`;
}

/** Which events of a policy notify one sink. */
export interface NotifyRule {
  readonly sink: string;
  /** Each outcome. */
  readonly every: boolean;
  /** `on: change`: also a poll's outcomes by `notifyOn`, while its policy's health is the same. */
  readonly change: boolean;
  /** Failures after this many slots in a row; undefined: none. */
  readonly failuresInRow: number | undefined;
  /** `judged`: outcomes `conflicts`; a number: more new conflicts than that; undefined: none. */
  readonly conflicts: "judged" | number | undefined;
  readonly blocked: boolean;
  readonly unknown: boolean;
  readonly missed: boolean;
  readonly drift: boolean;
  /** A run that is unusual, or goes on for unusually long. */
  readonly unusual: boolean;
  /** The end of what it was notified of. */
  readonly recovery: boolean;
  readonly stale: boolean;
  readonly late: boolean;
  readonly tokenExpiring: boolean;
}

/** Minutes of the local day, 0 to 1,439; a range that ends before it begins passes midnight. */
interface MuteTiming {
  readonly fromMinute: number;
  readonly toMinute: number;
  readonly timezone: string;
  readonly except: readonly Notice["kind"][];
}

/** A message once a day. `label`: a selector (model/label.ts), empty for all policies. */
export interface DigestSettings {
  readonly name: string;
  readonly schedule: Schedule;
  readonly timezone: string;
  readonly to: readonly string[];
  readonly label: string;
  /** The label whose values get a line each; undefined: none. */
  readonly by?: string;
}

/** Grouping and mute timing of notices, and digests. */
export interface NotificationSettings {
  readonly digests?: readonly DigestSettings[];
  readonly groupWaitMs: number;
  readonly muteTiming: MuteTiming | undefined;
  /** Where notices lead, with places to fill in (schema/notify.ts). */
  readonly link?: string;
}

/** One policy. Without a schedule and without `after` it runs by hand only; it never has both. */
export interface Policy {
  readonly name: string;
  readonly service: string;
  /** Names and values to choose policies by; undefined: none. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Who to call about it. */
  readonly owner?: string;
  readonly repository: string | undefined;
  readonly action: Action;
  readonly schedule: Schedule | undefined;
  readonly after?: After;
  /**
   * The zone of its closed times, deadlines and days: that of its schedule, of the start of its
   * chain, or of the defaults. Of its slots: `zoneOfSlots`.
   */
  readonly timezone: string;
  readonly closed: ClosedTimes;
  readonly catchUp: "latest" | "none" | "all";
  readonly catchUpWindowMs: number;
  readonly overlap: "skip" | "queue" | "allow";
  readonly follow: Follow;
  readonly onUnknown: "verify" | "retry" | "give-up";
  /** In quarantine for this long after so many failed slots in a row; undefined: never. */
  readonly quarantine?: { readonly after: number; readonly forMs: number } | undefined;
  /** Its slots are skipped while this input is not fresh; undefined: it needs none. */
  readonly needs?: Need;
  /** By when it must have ended well; undefined: no deadline. */
  readonly expect?: Expectation;
  /** When a run that ended well is unusual; undefined: never. */
  readonly unusual?: UnusualRule | undefined;
  /** One rule a sink; undefined: no sink. */
  readonly notify?: readonly NotifyRule[];
  /** Requested after each success while no sync job is bad. The URL may be a secret. */
  readonly heartbeat?: { readonly url: string };
  readonly where: { readonly file: string; readonly line: number };
}

/** A signed HTTP call for each notice. Paths are absolute; the URL may be a secret. */
export interface WebhookSettings {
  readonly kind: "webhook";
  readonly url: string;
  readonly secretFile: string | undefined;
  readonly previousSecretFile: string | undefined;
  readonly format: "cloudevents" | "slack" | "teams";
  readonly timeoutMs: number;
}

/** A line of JSON for each notice. The path is absolute. */
export interface FileSinkSettings {
  readonly kind: "file";
  readonly path: string;
  readonly bytesMax: number;
  /** Including the current one. */
  readonly filesMax: number;
}

/** A message for each notice by a mail server. Paths are absolute. */
export interface EmailSettings {
  readonly kind: "email";
  readonly host: string;
  readonly port: number;
  /** TLS after STARTTLS; else from the first byte. Nothing is sent without TLS. */
  readonly startTls: boolean;
  readonly from: string;
  readonly to: readonly string[];
  readonly user: string | undefined;
  readonly passwordFile: string | undefined;
  readonly tls: Pick<TlsSettings, "caFile" | "serverName">;
  readonly timeoutMs: number;
}

/** One sink. */
export interface SinkSettings {
  readonly name: string;
  readonly to: WebhookSettings | FileSinkSettings | EmailSettings;
  /** Counted from when a notice was handed over. */
  readonly giveUpAfterMs: number;
  /** How many notices may wait. */
  readonly queueMax: number;
  /** Lists whose new items it gets, while a policy or command reads them; default none. */
  readonly items?: readonly ListName[];
}

/** All policies of a file or folder, in the order of the files and their lines. */
export interface PolicySet {
  readonly services: ReadonlyMap<string, ServiceSettings>;
  readonly sinks: ReadonlyMap<string, SinkSettings>;
  readonly calendars?: ReadonlyMap<string, EventCalendar>;
  readonly policies: readonly Policy[];
  /** How a sync job without a policy is run by hand; its service and sync job are the task's. */
  readonly byHand: Policy;
  readonly notifications: NotificationSettings;
  /** 64 hex digits: changes only with a meaning, not with comments, order or places. */
  readonly contentHash: string;
  readonly files: readonly string[];
  /** Changes with any character of the policy files (read-policy-files.ts). */
  readonly textsHash?: string;
}

/** `07:00` on `1-5` as `0 7 * * 1-5`. */
export function dailyCron(at: string, on = "*"): string {
  const [hours, minutes] = at.split(":").map(Number);
  return `${minutes} ${hours} * * ${on}`;
}
