// The checks of `syncline doctor` on what is known already: mappings, zones, calendars, next slots
// and chains of the policies; processes, owners, pauses, breakers, lists, deleted sync jobs and
// sinks. Pure.
import { versions } from "node:process";
import { type Policy, type PolicySet, zoneOfSlots } from "../../config/policy-set.ts";
import { formatDuration } from "../../core/duration.ts";
import { showInstant } from "../../core/instant.ts";
import { counted, someNames } from "../../core/plain-text.ts";
import { isAbout, type Pause, showSubject } from "../../model/pause.ts";
import { showFeed, showPresence } from "../../queries/service-words.ts";
import { isStuck } from "../../queries/sinks.ts";
import { describeRejected, type RunningConfig, type Status } from "../../queries/status.ts";
import { nextOpen } from "../../schedule/closed-times.ts";
import { createSlotSource } from "../../schedule/slots.ts";
import { foreignOwner, type Owners, type Presence } from "../../store/redis.ts";
import { cureOfDeleted, type DeletedTarget, tellDeleted } from "../deleted-targets.ts";
import { showUntil } from "../pause.ts";
import { lastEventWarning } from "../validate.ts";
import { type Finding, findingFor, withinLines } from "./finding.ts";

/** Judges the running installation for these services and policies. `isWhole`: for all. */
export function judgeStatus(
  { policies }: PolicySet,
  status: Status,
  { deleted, isWhole }: { readonly deleted: readonly DeletedTarget[]; readonly isWhole: boolean },
): readonly Finding[] {
  const feeds = status.feeds.map(({ feed, what, cure }) => findingFor("feeds", showFeed(feed)).warning(what, cure));
  const isOfNone = ({ scope, name, cause }: Pause) =>
    scope === "policy" && cause === undefined && policies.every((policy) => policy.name !== name);
  return [
    ...judgePresence(status.processes, status.config.kept !== undefined),
    ...judgeOwners(status.owners),
    ...judgeConfig(status.config),
    ...judgePauses(status.pauses.filter((pause) => policies.some((policy) => isAbout(pause, policy)))),
    ...withinLines(isWhole ? status.pauses.filter(isOfNone).map(judgeIdlePause) : []),
    ...judgeBreakers(status),
    ...withinLines(feeds),
    ...withinLines(deleted.map(judgeDeleted)),
    ...judgeSinks(status),
  ];
}

/** No process at all is no problem before the installation: `hasRun` says that one has run. */
export function judgePresence(processes: Presence, hasRun = false): readonly Finding[] {
  const { schedulers, workers } = processes;
  const { ok, warning, problem } = findingFor("replicas");
  if (schedulers + workers === 0)
    return [
      (hasRun ? problem : warning)(
        "no process of Syncline is alive on this Redis with this prefix",
        "start `syncline serve`, or check --prefix and --redis-url",
      ),
    ];
  const findings: Finding[] = [];
  if (schedulers === 0) {
    const cure =
      "start `syncline serve` with the role scheduler; what was due meanwhile is caught up as the policies say";
    findings.push(problem("no scheduler is alive: no slot is planned", cure));
  }
  if (workers === 0)
    findings.push(problem("no worker is alive: no planned slot starts", "start `syncline serve` with the role worker"));
  return findings.length > 0 ? findings : [ok(showPresence(processes))];
}

function judgeOwners({ holder, others }: Owners): readonly Finding[] {
  if (holder === undefined || others.length === 0) return [];
  const [what = "", cure = ""] = foreignOwner([holder, ...others]).split("; ");
  return [findingFor("replicas", "owner").problem(what, cure)];
}

function judgeConfig(config: RunningConfig): readonly Finding[] {
  const { problem } = findingFor("replicas", "config");
  const paths = [...new Set(config.replicas.flatMap(({ path }) => path ?? []))].join(" ");
  const cure = `correct the files; \`syncline validate ${paths}\` shows all problems`;
  const rejected = config.rejected.map((one) => problem(describeRejected(one, config), cure));
  if (!config.differs) return rejected;
  const what = "processes run different policies for more than 5 minutes; `syncline status` shows which";
  return [...rejected, problem(what, "let all read the same files, and restart those that run old ones")];
}

function judgePauses(pauses: readonly Pause[]): readonly Finding[] {
  if (pauses.length === 0) return [findingFor("pauses").ok("none of these policies is paused or in quarantine")];
  const findings = pauses.map((pause) => {
    const how = pause.cause === undefined ? `paused by ${pause.actor}` : "in quarantine";
    const argument = {
      policy: pause.name,
      service: `--service ${pause.name}`,
      label: `--label ${pause.name.replaceAll(",", " --label ")}`,
      all: "--all",
    }[pause.scope];
    const cure = `its slots are skipped; \`syncline resume ${argument}\` ends that`;
    return findingFor("pauses", showSubject(pause)).warning(`${how} ${showUntil(pause)}: ${pause.note}`, cure);
  });
  return withinLines(findings);
}

/** Of a policy that was renamed, or removed. */
function judgeIdlePause(pause: Pause): Finding {
  const what = `paused by ${pause.actor} ${showUntil(pause)}, and not one of these policies: ${pause.note}`;
  const cure = `if it was renamed, pause it under its new name; if it is gone, \`syncline resume ${pause.name}\` ends this one`;
  return findingFor("pauses", showSubject(pause)).warning(what, cure);
}

function judgeBreakers({ services }: Status): readonly Finding[] {
  const findings = services.flatMap(({ service, breaker, lastFailure, throttledUntilMs }) => {
    const { warning } = findingFor("breakers", service);
    const what = `its breaker is open (${lastFailure ?? "unknown"}): tasks sleep until it answers a probe`;
    const cure = "the line `service` says what is wrong with it; `syncline status` when it is asked again";
    const open = breaker === "open" ? [warning(what, cure)] : [];
    if (throttledUntilMs === undefined) return open;
    const asked = `it throttles until ${showInstant(throttledUntilMs)}`;
    return [...open, warning(asked, "lower limits.requestsPerSecond, or spread the policies")];
  });
  if (findings.length > 0) return withinLines(findings);
  return [findingFor("breakers").ok("all closed, no service throttles")];
}

function judgeDeleted(target: DeletedTarget): Finding {
  const { name, where } = target.policy;
  const what = `${tellDeleted(target)} (${where.file}:${where.line})`;
  return findingFor("deleted", name).warning(what, cureOfDeleted(target));
}

function judgeSinks({ sinks, nowMs }: Status): readonly Finding[] {
  return sinks.flatMap((state) => {
    const { sink, waiting, failed, dropped, oldestMs = nowMs } = state;
    const { warning } = findingFor("sinks", sink);
    const findings: Finding[] = [];
    if (isStuck(state, nowMs)) {
      const minutes = formatDuration(Math.floor((nowMs - oldestMs) / 60_000) * 60_000);
      const cure = "the log says why: sink.failing; docs/runbooks/sink-stuck.md";
      findings.push(warning(`${waiting} notices wait, the first for ${minutes}`, cure));
    }
    if (failed > 0) {
      const cure = `\`syncline failed list\` shows them, \`syncline failed replay --sink ${sink} --yes\` sends them again`;
      findings.push(warning(`${failed} notices are in its failed list`, cure));
    }
    if (dropped > 0) {
      const what = `${dropped} notices were dropped since it is known: its queue was full`;
      findings.push(warning(what, "docs/runbooks/sink-dropping.md; what they told stands in the history"));
    }
    return findings;
  });
}

const shownMax = 3;
const firstOf = (names: readonly string[]) => someNames(names, undefined, shownMax);

/** A policy's next slot that no closed time skips; undefined: none is in sight. */
export interface NextSlot {
  readonly policy: string;
  readonly slotMs: number | undefined;
}

/** The next slot of every policy that has a schedule, soonest first. */
export function nextSlots({ policies }: PolicySet, nowMs: number): readonly NextSlot[] {
  return policies
    .filter(({ schedule }) => schedule !== undefined)
    .map((policy) => ({ policy: policy.name, slotMs: nextOpen(policy, createSlotSource(policy), nowMs) }))
    .sort((a, b) => (a.slotMs ?? Number.POSITIVE_INFINITY) - (b.slotMs ?? Number.POSITIVE_INFINITY));
}

/** Checks the policies by themselves. */
export function checkPolicies(set: PolicySet, slots: readonly NextSlot[], nowMs: number): readonly Finding[] {
  return [
    ...checkMappings(set),
    checkZones(set),
    ...checkCalendars(set, nowMs),
    ...checkSlots(slots),
    ...checkChains(set),
  ];
}

/** Loading refuses unknown zones. This shows which version of the zone rules Node has. */
function checkZones({ policies }: PolicySet): Finding {
  const zones = policies.map(zoneOfSlots);
  const rules = `known to this Node, by the rules of tzdata ${versions["tz"] ?? "(no version)"}`;
  return findingFor("zones").ok(`${firstOf([...new Set(zones)].sort())}: ${rules}`);
}

function checkCalendars({ policies }: PolicySet, nowMs: number): readonly Finding[] {
  const used = new Set(policies.flatMap(({ closed }) => (closed.calendars ?? []).map(({ calendar }) => calendar)));
  if (used.size === 0) return [];
  const passed = [...used].flatMap((calendar) => {
    const found = lastEventWarning(calendar, nowMs);
    return found === undefined ? [] : [findingFor("calendars", calendar.name).warning(found.message, found.hint)];
  });
  if (passed.length > 0) return withinLines(passed);
  return [findingFor("calendars").ok(`events are to come in ${firstOf([...used].map(({ name }) => name))}`)];
}

function checkSlots(slots: readonly NextSlot[]): readonly Finding[] {
  const cure = "change the schedule, or remove the policy; `syncline plan` shows what a schedule gives";
  const never = slots
    .filter(({ slotMs }) => slotMs === undefined)
    .map(({ policy }) =>
      findingFor("next slots", policy).warning("its schedule has no slot any more that would start", cure),
    );
  const coming = slots.flatMap(({ policy, slotMs }) =>
    slotMs === undefined ? [] : [`${policy} ${showInstant(slotMs)}`],
  );
  const next = `${coming.length} scheduled; next ${coming.slice(0, shownMax).join(", ")}`;
  const what = coming.length === 0 ? "no policy has a schedule: all run by hand" : next;
  return [findingFor("next slots").ok(what), ...withinLines(never)];
}

function checkChains({ policies }: PolicySet): readonly Finding[] {
  const chained = policies.flatMap(({ name, after }) => (after === undefined ? [] : [`${name} after ${after.policy}`]));
  return chained.length === 0 ? [] : [findingFor("chains").ok(firstOf(chained))];
}

/** Without a mapping of how activities end, runs are settled by a list that grows quiet. */
function checkMappings({ services, policies }: PolicySet): readonly Finding[] {
  const findings = [...services.values()].flatMap(({ name: service, mapping }): Finding[] => {
    const followed = policies.filter((policy) => policy.service === service && isFollowed(policy));
    if (followed.length === 0) return [];
    const activity = mapping.activities;
    const missing = (["id", "syncJobId", "finished", "succeeded"] as const).filter(
      (field) => activity?.[field] === undefined,
    );
    const { ok, warning } = findingFor("mapping", service);
    if (missing.length === 0) return [ok("shows the sync job of an activity, and how it ended")];
    const whose = `${counted(followed.length, "policy", "policies")} (${firstOf(followed.map(({ name }) => name))})`;
    const then = missing.every((field) => field === "succeeded")
      ? `each finished run of ${whose} counts as succeeded`
      : `the outcomes of ${whose} are inferred from a list that grows quiet`;
    const what = `no ${missing.join(", ")} for activities: ${then}`;
    const cure = `look at items with \`syncline api GetActivities\`, and write services.${service}.mapping.activity`;
    return [warning(what, cure)];
  });
  return withinLines(findings);
}

function isFollowed({ action, follow }: Policy): boolean {
  return action.kind === "run" && follow.until !== "accepted";
}
