// The rules for one policy, or for `defaults`: which keys go together, and texts that other parts
// check (cron, CEL). They see only values that the schema accepts.
import { formatDuration, parseDuration } from "../../core/duration.ts";
import { policyDefaults } from "../defaults.ts";
import { type CalendarEvent, dailyCron, type ItemMapping, type Policy } from "../policy-set.ts";
import type { Path, ReportProblem } from "../problem.ts";
import type { DefaultsInput, PolicyDraft } from "../schema/policy-file.ts";
import { orList } from "../schema-problems.ts";
import { policyLimits } from "./policy-limits.ts";

/** The events of a calendar file, or what is wrong: lines from 1 on, 0 for the whole file. */
export type CalendarText =
  | {
      readonly events: readonly CalendarEvent[];
      /** The first event that is not of whole days. */
      readonly timed?: { readonly line: number; readonly name: string };
    }
  | {
      readonly problems: readonly {
        readonly line: number;
        readonly message: string;
        readonly hint?: string | undefined;
      }[];
    };

/** Checks of other parts. Each returns what is wrong with a text in one sentence, or undefined. */
export interface PolicyChecks {
  /** Checks a cron expression of 5 or 6 fields, in a time zone that exists. */
  readonly cron: (expression: string, timezone: string) => string | undefined;
  /**
   * Checks a CEL expression over one item of a list, or over a whole list (`count`, `items`, …).
   */
  readonly expression: (cel: string, scope: "item" | "list") => string | undefined;
  /** Checks the deadline of a policy against its slots. */
  readonly deadline: (
    policy: Policy,
  ) => { readonly key: string; readonly message: string; readonly hint: string } | undefined;
  /** Reads the text of a calendar file. */
  readonly calendar: (text: string) => Promise<CalendarText>;
  /** Evaluates a mapping's expression on one item of a sample: is the result of the right kind? */
  readonly onItem: (fact: keyof ItemMapping, cel: string, item: unknown) => string | undefined;
}

/** What the rules of one file need. */
export interface RuleContext {
  /** The merged `defaults` of all files. */
  readonly defaults: DefaultsInput;
  readonly checks: PolicyChecks;
  readonly report: ReportProblem;
}

type Rule = (policy: PolicyDraft, path: Path, context: RuleContext) => void;

/** Applies the rules to one policy. */
export function checkPolicy(policy: PolicyDraft, path: Path, context: RuleContext): void {
  for (const rule of policyRules) rule(policy, path, context);
}

/** Applies the rules to the `defaults` of a file. */
export function checkDefaults(defaults: DefaultsInput, context: RuleContext): void {
  blackoutRule(defaults, ["defaults"], context);
  notifyRule(defaults, ["defaults"], context);
}

const policyRules: readonly Rule[] = [
  actionRule,
  applyRule,
  followRule,
  scheduleRule,
  blackoutRule,
  catchUpRule,
  afterRule,
  slotsRule,
  expectRule,
  deleteRule,
  notifyRule,
];

/** Reports an object that has none, or several, of these keys. */
export function exactlyOne(subject: object, keys: readonly string[], path: Path, report: ReportProblem): void {
  const [first, ...more] = keys.filter((key) => Object.hasOwn(subject, key));
  if (first === undefined) report(path, `needs exactly one of ${orList(keys)}`, { place: "key" });
  for (const key of more) report([...path, key], `${first} and ${key} exclude each other`, { place: "key" });
}

function actionRule(policy: PolicyDraft, path: Path, { checks, report }: RuleContext): void {
  exactlyOne(policy, ["run", "activate", "poll", "apply", "delete"], path, report);
  if (policy.run !== undefined) exactlyOne(policy.run, ["syncJobs", "fromMasks"], [...path, "run"], report);
  for (const action of ["run", "activate"] as const) {
    for (const [index, id] of (policy[action]?.syncJobs ?? []).entries()) {
      if (policy[action]?.syncJobs?.indexOf(id) === index) continue;
      report([...path, action, "syncJobs", index], `sync job ${id} stands in the list twice`, {
        hint: "remove one of them",
      });
    }
  }
  for (const [key, scope] of [
    ["expect", "list"],
    ["offending", "item"],
  ] as const) {
    const text = policy.poll?.[key];
    const problem = text === undefined ? undefined : checks.expression(text, scope);
    if (problem !== undefined) report([...path, "poll", key], `poll.${key}: ${problem}`);
  }
}

/**
 * A policy declares at least one object, each with a field, and no more than one slot can apply.
 */
function applyRule({ apply }: PolicyDraft, path: Path, { report }: RuleContext): void {
  if (apply === undefined) return;
  const at = [...path, "apply"];
  const objects = Object.entries(apply).flatMap(([kind, byId]) =>
    Object.entries(byId).map(([id, fields]) => ({ at: [...at, kind, id], fields })),
  );
  if (objects.length === 0) report(at, "apply declares nothing", { hint: "name at least one object by its id" });
  if (objects.length > policyLimits.objectsMax) {
    const message = `apply declares ${objects.length} objects; ${policyLimits.objectsMax} a policy is the most`;
    report(at, message, { hint: "split it into several policies", place: "key" });
  }
  for (const { at, fields } of objects) {
    const hint = "say which fields it shall have, or remove it";
    if (Object.keys(fields).length === 0) report(at, "no field is declared here", { hint });
  }
}

function followRule(policy: PolicyDraft, path: Path, { defaults, report }: RuleContext): void {
  const { follow, run } = policy;
  if (follow === undefined) return;
  const at = [...path, "follow"];
  const other = (["poll", "activate", "apply", "delete"] as const).find((action) => policy[action] !== undefined);
  if (other !== undefined && run === undefined) {
    report(at, `there is nothing to follow after ${other}`, { place: "key", hint: "remove follow" });
    return;
  }
  if ((follow.until ?? defaults.follow?.until) !== "accepted") return;
  for (const key of ["conflictsMax", "quietFor", "unreadableFor", "blockedAfter"] as const) {
    const hint = `set follow.until to settled, or remove ${key}`;
    if (follow[key] === undefined) continue;
    report([...at, key], `follow.${key} needs following: until is accepted`, { place: "key", hint });
  }
}

function scheduleRule({ schedule }: PolicyDraft, path: Path, { defaults, checks, report }: RuleContext): void {
  if (schedule === undefined) return;
  const at = [...path, "schedule"];
  const { cron = [], every, spread = "0s" } = schedule;
  exactlyOne(schedule, ["cron", "every", "once"], at, report);
  const timezone = schedule.timezone ?? defaults.timezone ?? policyDefaults.timezone;
  const check = (text: string, place: Path) => reportCron(checks.cron(text, timezone), "schedule.cron", place, report);
  if (typeof cron === "string") check(cron, [...at, "cron"]);
  else for (const [index, text] of cron.entries()) check(text, [...at, "cron", index]);
  if (every === undefined) return;
  const everyMs = parseDuration(every);
  if (parseDuration(spread) > everyMs)
    report([...at, "spread"], `schedule.spread is longer than the interval (${formatDuration(everyMs)})`);
  for (const key of ["timezone", "dst"] as const) {
    const hint = "an interval is elapsed time: it knows no clock change";
    if (schedule[key] === undefined) continue;
    report([...at, key], `schedule.${key} goes with cron and once only`, { place: "key", hint });
  }
}

function blackoutRule(
  subject: Pick<PolicyDraft, "blackout" | "schedule">,
  path: Path,
  { defaults, checks, report }: RuleContext,
): void {
  const timezone = subject.schedule?.timezone ?? defaults.timezone ?? policyDefaults.timezone;
  for (const [index, window] of (subject.blackout ?? []).entries()) {
    if (typeof window === "string") continue;
    const at = [...path, "blackout", index, "cron"];
    reportCron(checks.cron(window.cron, timezone), "blackout.cron", at, report);
  }
}

function reportCron(problem: string | undefined, label: string, path: Path, report: ReportProblem): void {
  const hint = "five fields: minute hour day month weekday; six: second first";
  if (problem !== undefined) report(path, `${label}: ${problem}`, { hint });
}

function catchUpRule(policy: PolicyDraft, path: Path, { defaults, report }: RuleContext): void {
  const every = policy.schedule?.every;
  const window = policy.catchUpWindow ?? defaults.catchUpWindow;
  if ((policy.catchUp ?? defaults.catchUp) !== "all" || every === undefined || window === undefined) return;
  const slots = Math.floor(parseDuration(window) / parseDuration(every));
  if (slots <= policyLimits.catchUpSlotsMax) return;
  const at = policy.catchUpWindow === undefined ? ["schedule", "every"] : ["catchUpWindow"];
  const message = `catchUp: all could start ${slots} slots at once; ${policyLimits.catchUpSlotsMax} is the most`;
  report([...path, ...at], message, { hint: "shorten catchUpWindow, or use catchUp: latest" });
}

function afterRule(policy: PolicyDraft, path: Path, { report }: RuleContext): void {
  if (policy.after === undefined) return;
  const hints = {
    schedule: "a policy that follows another has the slots of that one: remove one of them",
    catchUp: "say with after.within how late it may begin",
    catchUpWindow: "say with after.within how late it may begin",
  };
  for (const [key, hint] of Object.entries(hints)) {
    if (Object.hasOwn(policy, key))
      report([...path, key], `after and ${key} exclude each other`, { place: "key", hint });
  }
}

/** What depends on slots says nothing of a policy without any. */
function slotsRule(policy: PolicyDraft, path: Path, { report }: RuleContext): void {
  if (policy.schedule !== undefined || policy.after !== undefined) return;
  for (const key of ["expect", "needs"] as const) {
    const hint = `give it a schedule, or remove ${key}`;
    if (policy[key] === undefined) continue;
    report([...path, key], `${key} does nothing here: without a schedule no slot is ever due`, { place: "key", hint });
  }
}

function expectRule({ expect }: PolicyDraft, path: Path, { checks, report }: RuleContext): void {
  if (expect === undefined) return;
  const at = [...path, "expect"];
  exactlyOne(expect, ["successBy", "within"], at, report);
  if (expect.on !== undefined) {
    reportCron(checks.cron(dailyCron("00:00", expect.on), policyDefaults.timezone), "expect.on", [...at, "on"], report);
    if (expect.successBy === undefined)
      report([...at, "on"], "expect.on goes with successBy only", {
        place: "key",
        hint: "within counts from each slot",
      });
  }
}

/** A deleted sync job cannot be deleted again, and one that runs must not be. */
function deleteRule(policy: PolicyDraft, path: Path, { report }: RuleContext): void {
  if (policy.delete === undefined) return;
  for (const key of ["cron", "every"] as const) {
    const hint = "write schedule: { once: 2026-12-01T06:00 }, or no schedule to start it with `syncline run`";
    if (policy.schedule?.[key] === undefined) continue;
    report([...path, "schedule", key], `delete and schedule.${key} exclude each other`, { place: "key", hint });
  }
  if (policy.overlap !== "allow") return;
  const hint = "use skip, or queue to wait for the run";
  report([...path, "overlap"], "overlap: allow does not go with delete", { hint });
}

function notifyRule(
  { notify = [], heartbeat }: Pick<PolicyDraft, "notify" | "heartbeat">,
  path: Path,
  { report }: RuleContext,
): void {
  const names = notify.map((item) => (typeof item === "string" ? item : item.sink));
  for (const [index, name] of names.entries()) {
    const hint = "put its rules into one item: { sink, on: [...] }";
    if (names.indexOf(name) === index) continue;
    report(sinkPath(notify, index, path), `the sink "${name}" stands in the list twice`, { hint });
  }
  const problem = heartbeat && problemOfUrl(heartbeat.url, "https://beats.example.com/ping/contracts");
  if (problem !== undefined) report([...path, "heartbeat", "url"], `heartbeat.url: ${problem}`);
}

/** The path of a sink's name in a `notify`, in either notation. */
export function sinkPath(notify: NonNullable<PolicyDraft["notify"]>, index: number, path: Path): Path {
  return [...path, "notify", index, ...(typeof notify[index] === "string" ? [] : ["sink"])];
}

/** What is wrong with a URL of the web. Never quotes it: it may be a secret. */
export function problemOfUrl(text: string, example: string, insteadOfCredentials = ""): string | undefined {
  if (!URL.canParse(text)) return `this is no URL, such as ${example}`;
  const { protocol, username, password } = new URL(text);
  if (protocol !== "https:" && protocol !== "http:") return "must start with https:// or http://";
  return username !== "" || password !== "" ? `must not hold credentials${insteadOfCredentials}` : undefined;
}
