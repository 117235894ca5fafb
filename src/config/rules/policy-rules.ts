// The rules for one file: which keys go together, and texts that other parts check (cron, CEL).
// They skip values that are missing or of the wrong kind: the schema reports those. Called by
// load-policies.ts.
import { formatDuration } from "../../core/duration.ts";
import { policyDefaults } from "../defaults.ts";
import { isTimezone } from "../schema/primitives.ts";
import { labelOf } from "../schema-problems.ts";
import type { YamlView } from "../yaml/view.ts";
import type { Path, Place } from "../yaml/yaml-file.ts";
import { checkDeclared } from "./declared-rules.ts";
import { checkTls, problemOfTokenUrl, problemOfUrl } from "./login-rules.ts";
import { checkNotifications, checkNotify } from "./notify-rules.ts";
import type { PolicyChecks } from "./policy-checks.ts";
import { policyLimits } from "./policy-limits.ts";
import { checkSink } from "./sink-rules.ts";

/** Reports a problem about the value (or key) at a path. */
export type Report = (
  path: Path,
  message: string,
  options?: { readonly hint?: string | undefined; readonly place?: Place },
) => void;

/** What the rules of one file need. */
export interface RuleContext {
  /** The values of the file. */
  readonly file: YamlView;
  /** The merged `defaults` of all files. */
  readonly defaults: YamlView;
  readonly checks: PolicyChecks;
  readonly report: Report;
}

/** Applies the rules of one file. */
export function checkRules(context: RuleContext): void {
  for (const [, service] of context.file.at("services").entries()) {
    for (const rule of serviceRules) rule(service, context);
  }
  for (const [, sink] of context.file.at("sinks").entries()) {
    if (sink.isObject) exactlyOne(sink, ["webhook", "file"], context.report);
    checkSink(sink, context);
  }
  blackoutRule(context.file.at("defaults"), context);
  checkNotify(context.file.at("defaults"), context.report);
  checkNotifications(context.file.at("notifications"), context.report);
  for (const policy of context.file.at("policies").items()) {
    for (const rule of policyRules) rule(policy, context);
  }
}

type Rule = (subject: YamlView, context: RuleContext) => void;

const actions = ["run", "activate", "poll", "apply", "delete"];

function exactlyOne(subject: YamlView, keys: readonly string[], report: Report): void {
  const present = keys.filter((key) => subject.at(key).isPresent);
  const list = keys.join(", ").replace(/, ([^,]*)$/, " or $1");
  if (present.length === 0) report(subject.path, `needs exactly one of ${list}`, { place: "key" });
  for (const key of present.slice(1)) {
    report([...subject.path, key], `${present[0]} and ${key} exclude each other`, {
      place: "key",
    });
  }
}

const serviceRules: readonly Rule[] = [
  (service, { report }) => {
    const problem = problemOfUrl(service.at("baseUrl").text());
    if (problem !== undefined) report(service.at("baseUrl").path, `${labelOf(service.at("baseUrl").path)}: ${problem}`);
  },
  (service, { report }) => {
    const token = service.at("token");
    if (token.isObject) exactlyOne(token, ["file", "env", "oauth2"], report);
    const url = token.at("oauth2").at("tokenUrl");
    const problem = problemOfTokenUrl(url.text(), token.at("oauth2").at("allowHttp").value === true);
    if (problem !== undefined) report(url.path, `${labelOf(url.path)}: ${problem}`);
  },
  checkTls,
  (service, { report, checks }) => {
    for (const [, item] of service.at("mapping").entries()) {
      for (const [key, expression] of item.entries()) {
        if (key !== "sample") checkExpression(expression, "item", { checks, report });
      }
    }
  },
];

const policyRules: readonly Rule[] = [
  (policy, { report }) => {
    if (policy.isObject) exactlyOne(policy, actions, report);
  },
  (policy, { report }) => {
    const run = policy.at("run");
    if (run.isObject) exactlyOne(run, ["syncJobs", "fromMasks"], report);
  },
  (policy, { report }) => {
    for (const action of ["run", "activate"]) noDoubles(policy.at(action).at("syncJobs"), report);
  },
  (policy, { report, checks }) => {
    checkExpression(policy.at("poll").at("expect"), "list", { checks, report });
    checkExpression(policy.at("poll").at("offending"), "item", { checks, report });
  },
  checkDeclared,
  followRule,
  scheduleRule,
  cronRule,
  blackoutRule,
  catchUpRule,
  afterRule,
  deleteRule,
  (policy, { report }) => checkNotify(policy, report),
];

function noDoubles(list: YamlView, report: Report): void {
  const seen = new Set<number>();
  for (const item of list.items()) {
    const id = item.number();
    if (id === undefined) continue;
    if (seen.has(id)) report(item.path, `sync job ${id} stands in the list twice`, { hint: "remove one of them" });
    seen.add(id);
  }
}

function followRule(policy: YamlView, { defaults, report }: RuleContext): void {
  const follow = policy.at("follow");
  if (!follow.isPresent) return;
  const other = ["poll", "activate", "apply", "delete"].find((action) => policy.at(action).isPresent);
  if (other !== undefined && !policy.at("run").isPresent) {
    report(follow.path, `there is nothing to follow after ${other}`, { place: "key", hint: "remove follow" });
    return;
  }
  const until = follow.at("until").text() ?? defaults.at("follow").at("until").text() ?? policyDefaults.followUntil;
  if (until !== "accepted") return;
  for (const key of ["conflictsMax", "quietFor", "unreadableFor", "blockedAfter"]) {
    const { isPresent, path } = follow.at(key);
    const hint = `set follow.until to settled, or remove ${key}`;
    if (isPresent) report(path, `follow.${key} needs following: until is accepted`, { place: "key", hint });
  }
}

function scheduleRule(policy: YamlView, { report }: RuleContext): void {
  const schedule = policy.at("schedule");
  if (!schedule.isObject) return;
  exactlyOne(schedule, ["cron", "every", "once"], report);
  const everyMs = schedule.at("every").durationMs();
  if (everyMs === undefined) return;
  const spreadMs = schedule.at("spread").durationMs() ?? 0;
  if (spreadMs > everyMs) {
    report(schedule.at("spread").path, `schedule.spread is longer than the interval (${formatDuration(everyMs)})`);
  }
  for (const key of ["timezone", "dst"]) {
    if (schedule.at(key).isPresent) {
      const hint = "an interval is elapsed time: it knows no clock change";
      report(schedule.at(key).path, `schedule.${key} goes with cron and once only`, { place: "key", hint });
    }
  }
}

function cronRule(policy: YamlView, { defaults, checks, report }: RuleContext): void {
  const schedule = policy.at("schedule");
  const cron = schedule.at("cron");
  if (!cron.isPresent) return;
  const timezone = timezoneOf(policy, defaults);
  for (const expression of [cron, ...cron.items()])
    checkCron(expression, { label: "schedule.cron", timezone, checks, report });
}

/** For a policy, or for `defaults`. */
function blackoutRule(subject: YamlView, { defaults, checks, report }: RuleContext): void {
  const timezone = timezoneOf(subject, defaults);
  for (const window of subject.at("blackout").items())
    checkCron(window.at("cron"), { label: "blackout.cron", timezone, checks, report });
}

function timezoneOf(policy: YamlView, defaults: YamlView): string {
  const named =
    policy.at("schedule").at("timezone").text() ?? defaults.at("timezone").text() ?? policyDefaults.timezone;
  return isTimezone(named) ? named : policyDefaults.timezone;
}

interface CronCheck extends Pick<RuleContext, "checks" | "report"> {
  readonly label: string;
  readonly timezone: string;
}

function checkCron(expression: YamlView, { label, timezone, checks, report }: CronCheck): void {
  const text = expression.text();
  const problem = text === undefined ? undefined : checks.cron(text, timezone);
  if (problem === undefined) return;
  report(expression.path, `${label}: ${problem}`, {
    hint: "five fields: minute hour day month weekday; six: second first",
  });
}

function catchUpRule(policy: YamlView, { defaults, report }: RuleContext): void {
  const everyMs = policy.at("schedule").at("every").durationMs();
  const catchUp = policy.at("catchUp").text() ?? defaults.at("catchUp").text();
  const window = policy.at("catchUpWindow").isPresent ? policy.at("catchUpWindow") : defaults.at("catchUpWindow");
  const windowMs = window.durationMs();
  if (catchUp !== "all" || everyMs === undefined || everyMs === 0 || windowMs === undefined) return;
  const slots = Math.floor(windowMs / everyMs);
  if (slots > policyLimits.catchUpSlotsMax) {
    const at = policy.at("catchUpWindow").isPresent ? window.path : policy.at("schedule").at("every").path;
    const message = `catchUp: all could start ${slots} slots at once; ${policyLimits.catchUpSlotsMax} is the most`;
    report(at, message, { hint: "shorten catchUpWindow, or use catchUp: latest" });
  }
}

function afterRule(policy: YamlView, { report }: RuleContext): void {
  if (!policy.at("after").isPresent) return;
  const hints = {
    schedule: "a policy that follows another has the slots of that one: remove one of them",
    catchUp: "say with after.within how late it may begin",
    catchUpWindow: "say with after.within how late it may begin",
  };
  for (const [key, hint] of Object.entries(hints)) {
    const { isPresent, path } = policy.at(key);
    if (isPresent) report(path, `after and ${key} exclude each other`, { place: "key", hint });
  }
}

/** A deleted sync job cannot be deleted again, and one that runs must not be. */
function deleteRule(policy: YamlView, { report }: RuleContext): void {
  if (!policy.at("delete").isPresent) return;
  for (const key of ["cron", "every"]) {
    const { isPresent, path } = policy.at("schedule").at(key);
    const hint = "write schedule: { once: 2026-12-01T06:00 }, or no schedule to start it with `syncline run`";
    if (isPresent) report(path, `delete and schedule.${key} exclude each other`, { place: "key", hint });
  }
  const overlap = policy.at("overlap");
  if (overlap.text() !== "allow") return;
  report(overlap.path, "overlap: allow does not go with delete", { hint: "use skip, or queue to wait for the run" });
}

function checkExpression(
  expression: YamlView,
  scope: "item" | "list",
  { checks, report }: Pick<RuleContext, "checks" | "report">,
): void {
  const text = expression.text();
  const problem = text === undefined || text === "" ? undefined : checks.expression(text, scope);
  if (problem !== undefined) report(expression.path, `${labelOf(expression.path)}: ${problem}`);
}
