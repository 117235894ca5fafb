// `syncline doctor`: checks that everything works that the policies need. It asks Redis and every
// service, changes nothing, and says how to fix what it finds. For a laptop before the
// installation, and for a pod (`helm test`).

import { versions } from "node:process";
import { Command } from "commander";
import type { Policy, PolicySet, ServiceSettings } from "../../config/policy-set.ts";
import { systemClock, withDeadline } from "../../core/clock.ts";
import { formatDuration } from "../../core/duration.ts";
import { errorText, OutOfReachError, UsageError } from "../../core/errors.ts";
import { type EventLog, silentLog } from "../../core/event-log.ts";
import { NewerVersionError } from "../../core/newer-version.ts";
import { isRedisOutage } from "../../core/redis-outage.ts";
import { notedLengthMin } from "../../core/secrets.ts";
import { createSlotSource } from "../../schedule/slots.ts";
import type { SyncService } from "../../service/client.ts";
import { openStore, type RedisTarget, redisTimeMs, type Store } from "../../store/redis.ts";
import { findRedisFaults, type RedisFacts, readRedisFacts } from "../../store/redis-facts.ts";
import type { CommandIo } from "../command-io.ts";
import {
  configOption,
  durationOption,
  findService,
  loadPoliciesOrThrow,
  prefixOption,
  type RedisOptions,
  redisOption,
  redisTarget,
} from "../shared-options.ts";
import { readSinkStates } from "../sink-states.ts";
import { paint, showInstant, toTable } from "../table.ts";
import { checkNames, type Finding, type Level, withinLines } from "./finding.ts";
import { checkPresence } from "./presence-checks.ts";
import { checkService } from "./service-checks.ts";
import { checkSinks, judgeSinkStates } from "./sink-checks.ts";

const nextShownMax = 3;

const colour = { ok: "green", warning: "yellow", problem: "red" } as const satisfies Record<Level, string>;

const answerWithinMs = 5_000;

/** The same limit as in app/redis-guard.ts, which warns of it, too. */
const skewMsMax = 1_000;

/** Makes the client of a service: app/create-service.ts's `createService`. */
export type CreateService = (
  settings: ServiceSettings,
  options: { readonly variables: Readonly<Record<string, string | undefined>>; readonly log: EventLog },
) => SyncService;

interface DoctorOptions extends RedisOptions {
  readonly config: string;
  readonly service?: string;
  readonly within: number;
  readonly json?: true;
}

const servicesAtOnce = 4;

const help = `
Looks at Redis (version, eviction, append-only file, clock, replicas), at every service (DNS, TCP, TLS, token, identity), at every sync
job and mask that a policy names, at triggers, mappings, zones, next slots, pauses, breakers, at sinks and heartbeats (host, secret, file,
what waits; nothing is sent), and at who is alive. It only reads.
Each line is ok, a warning (it works, but) or a problem (it will not), with what to do about it.
Exit codes: 0 no problem (there may be warnings), 1 a problem, 2 wrong use or configuration.

Examples:
  $ syncline doctor --config policies/
  $ syncline doctor --config policies/ --service main --json | jq '.checks[] | select(.level != "ok")'`;

/** The command `doctor`. */
export function doctorCommand(io: CommandIo, createService: CreateService): Command {
  return new Command("doctor")
    .description("check everything that the policies need, and say what to do")
    .addOption(configOption())
    .addOption(redisOption())
    .addOption(prefixOption())
    .option("--service <name>", "only this service and its policies")
    .addOption(durationOption("--within <duration>", "how long all of it may take", "60s"))
    .option("--json", "print JSON")
    .addHelpText("after", help)
    .action(async (options: DoctorOptions) => {
      const redis = redisTarget(options, io);
      const set = narrow(await loadPoliciesOrThrow(options.config, io), options.service);
      const slots = nextSlots(set, systemClock.nowMs());
      const findings = [...checkPolicies(set, slots), ...(await ask(set, { redis, options, io, createService }))];
      io.progress?.("");
      io.out(options.json ? reportToJson(findings, slots) : reportToText(findings, io.colours));
      if (findings.some(({ level }) => level === "problem")) io.exitCode = 1;
    });
}

interface Context {
  readonly redis: RedisTarget;
  readonly options: DoctorOptions;
  readonly io: CommandIo;
  readonly createService: CreateService;
}

/** Asks Redis and the services in parallel, until all have answered or the time is up. */
async function ask(set: PolicySet, { redis, options, io, createService }: Context): Promise<readonly Finding[]> {
  const timeUp = new AbortController();
  const done = new AbortController();
  const findings: Finding[] = [];
  const signal = AbortSignal.any([timeUp.signal, io.signal]);
  const left = [...set.services.values()];
  const workOff = async () => {
    for (let settings = left.shift(); settings !== undefined && !signal.aborted; settings = left.shift())
      findings.push(...(await askService(settings, { set, io, createService, signal })));
  };
  const all = Promise.all([
    askRedis(set, redis),
    checkSinks(set, signal),
    ...Array.from({ length: servicesAtOnce }, workOff),
  ]);
  const timer = systemClock.sleep(options.within, AbortSignal.any([done.signal, io.signal])).then(() => {
    if (!done.signal.aborted) timeUp.abort();
  });
  const [redisFindings, sinkFindings] = await all.finally(() => done.abort());
  await timer;
  findings.push(...redisFindings, ...sinkFindings);
  if (signal.aborted) findings.push(cutShort(options.within, left.length));
  return findings;
}

async function askRedis(set: PolicySet, target: RedisTarget): Promise<readonly Finding[]> {
  const { findings, store } = await checkRedis(target);
  if (store === undefined) return findings;
  try {
    const sinks = judgeSinkStates(await readSinkStates(set, { target, store }), await redisTimeMs(store));
    return [...findings, ...(await checkPresence(set, store)), ...sinks];
  } catch (error) {
    if (!isRedisOutage(error) && !(error instanceof NewerVersionError)) throw error;
    const what = `what goes on cannot be read: ${errorText(error)}`;
    const cure = "look at the lines about Redis; a newer version of Syncline needs a newer doctor";
    return [...findings, { check: "replicas", subject: "", level: "problem", what, cure }];
  } finally {
    await store.close();
  }
}

async function askService(
  settings: ServiceSettings,
  { set, io, createService, signal }: Pick<Context, "io" | "createService"> & { set: PolicySet; signal: AbortSignal },
): Promise<readonly Finding[]> {
  let client: SyncService;
  let isTokenShort = false;
  const log: EventLog = {
    ...silentLog,
    warn: (event) => {
      if (event === "token.too-short") isTokenShort = true;
    },
  };
  try {
    client = createService(settings, { variables: io.settings.variables, log });
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    const cure = "set the variable that services.*.token.env names";
    return [{ check: "token", subject: settings.name, level: "problem", what: error.message, cure }];
  }
  try {
    const policies = set.policies.filter(({ service }) => service === settings.name);
    const progress = (text: string) => io.progress?.(text);
    const findings = await checkService({ settings, policies, client, signal, progress });
    return isTokenShort ? [...findings, shortToken(settings.name)] : findings;
  } finally {
    client.close();
  }
}

function shortToken(subject: string): Finding {
  return {
    check: "token",
    subject,
    level: "warning",
    what: `it has fewer than ${notedLengthMin} characters: as short as a word, it is not taken out of what is logged and printed`,
    cure: "use a real access token; a short one is for the sandbox",
  };
}

function cutShort(withinMs: number, servicesLeft: number): Finding {
  const rest = servicesLeft === 0 ? "" : `; ${servicesLeft} services were not asked at all`;
  const what = `stopped after ${formatDuration(withinMs)} at the latest: what was not read by then counts as a problem${rest}`;
  return {
    check: "doctor",
    subject: "",
    level: "problem",
    what,
    cure: "look at one service with --service, or take longer with --within",
  };
}

function narrow(set: PolicySet, service: string | undefined): PolicySet {
  if (service === undefined) return set;
  const settings = findService(set, service);
  return {
    ...set,
    services: new Map([[service, settings]]),
    policies: set.policies.filter((policy) => policy.service === service),
  };
}

/**
 * The result of checking Redis. Without a store nothing else can be checked; close it afterwards.
 */
interface RedisLook {
  readonly findings: readonly Finding[];
  readonly store: Store | undefined;
}

/**
 * Connects to Redis and checks it. An unreachable Redis is a finding.
 * @throws UsageError when the address is invalid.
 */
async function checkRedis(target: RedisTarget): Promise<RedisLook> {
  let store: Store | undefined;
  try {
    store = await openStore(target);
    const late = () => new OutOfReachError(`Redis did not answer within ${answerWithinMs / 1_000} s`);
    const facts = await withDeadline(readRedisFacts(store), answerWithinMs, late);
    return { findings: judge(facts), store };
  } catch (error) {
    await store?.close();
    if (store === undefined && !(error instanceof OutOfReachError)) throw error;
    const what = errorText(error);
    const cure = "check REDIS_URL or --redis-url, passwords and network policies; docs/running.md";
    return { findings: [{ check: "redis", subject: "", level: "problem", what, cure }], store: undefined };
  }
}

function judge(facts: RedisFacts): readonly Finding[] {
  const faults = findRedisFaults(facts);
  const findings: Finding[] = faults.map(({ level, about, what, cure }) => ({
    check: "redis",
    subject: about,
    level,
    what,
    cure,
  }));
  const { clockAheadMs, version, evictionPolicy, appendOnly, replicas } = facts;
  if (Math.abs(clockAheadMs) > skewMsMax) {
    const side = clockAheadMs > 0 ? "ahead of" : "behind";
    const what = `this machine's clock is ${(Math.abs(clockAheadMs) / 1_000).toFixed(1)} s ${side} that of Redis`;
    const cure = "set the clocks by NTP; slots follow the clock of Redis, tokens and certificates that of this machine";
    findings.push({ check: "redis", subject: "clock", level: "warning", what, cure });
  }
  if (faults.some(({ level }) => level === "problem")) return findings;
  const parts = [
    `version ${version ?? "unknown"}`,
    ...(evictionPolicy === undefined ? [] : [evictionPolicy]),
    ...(appendOnly === true ? ["append-only file"] : []),
    replicas === 0 ? "no replicas: a start waits for none" : `${replicas} in step: a start waits for them`,
  ];
  return [{ check: "redis", subject: "", level: "ok", what: parts.join(", ") }, ...findings];
}

/** Findings in the order of the checks; within one check as found. */
function sortFindings(findings: readonly Finding[]): readonly Finding[] {
  return findings.toSorted((a, b) => checkNames.indexOf(a.check) - checkNames.indexOf(b.check));
}

/** The report for machines. `ok`: no problem was found; warnings do not count. */
function reportToJson(findings: readonly Finding[], slots: readonly NextSlot[]): string {
  const { problem: problems, warning: warnings, ok: fine } = countLevels(findings);
  const nextSlots = slots.map(({ policy, slotMs }) => ({
    policy,
    slot: slotMs === undefined ? null : new Date(slotMs).toISOString(),
  }));
  return JSON.stringify({ ok: problems === 0, problems, warnings, fine, checks: sortFindings(findings), nextSlots });
}

/** The report for people. */
function reportToText(findings: readonly Finding[], colours: boolean): string {
  const sorted = sortFindings(findings);
  const rows = sorted.flatMap(({ check, subject, level, what, cure }) => [
    [paint(colour[level], level, colours), check, subject, oneLine(what)],
    ...(cure === undefined ? [] : [["", "", "", `→ ${oneLine(cure)}`]]),
  ]);
  const { problem, warning, ok } = countLevels(findings);
  const sum = `${plural(problem, "problem")}, ${plural(warning, "warning")}, ${ok} fine`;
  return `${toTable(["", "check", "about", "finding"], rows, colours)}\n\n${sum}`;
}

function countLevels(findings: readonly Finding[]): Record<Level, number> {
  const count = (wanted: Level) => findings.filter(({ level }) => level === wanted).length;
  return { problem: count("problem"), warning: count("warning"), ok: count("ok") };
}

function plural(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}

/**
 * Texts of services and files may hold line breaks and control characters, which could rewrite the
 * screen.
 */
function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]+/gu, " ");
}

/** A policy's next slot; undefined: its schedule has none any more. */
interface NextSlot {
  readonly policy: string;
  readonly slotMs: number | undefined;
}

/** The next slot of every policy that has a schedule, soonest first. */
function nextSlots({ policies }: PolicySet, nowMs: number): readonly NextSlot[] {
  return policies
    .filter(({ schedule }) => schedule !== undefined)
    .map((policy) => ({ policy: policy.name, slotMs: createSlotSource(policy)?.next(nowMs) }))
    .sort((a, b) => (a.slotMs ?? Number.POSITIVE_INFINITY) - (b.slotMs ?? Number.POSITIVE_INFINITY));
}

/** Checks the policies by themselves. */
function checkPolicies(set: PolicySet, slots: readonly NextSlot[]): readonly Finding[] {
  return [...checkMappings(set), checkZones(set), ...checkSlots(slots), ...checkChains(set)];
}

/** Loading refuses unknown zones. This shows which version of the zone rules Node has. */
function checkZones({ policies }: PolicySet): Finding {
  const zones = new Set(
    policies.flatMap(({ schedule }) =>
      schedule === undefined || schedule.kind === "every" ? ["UTC"] : [schedule.timezone],
    ),
  );
  const shown = [...zones].toSorted().slice(0, nextShownMax).join(", ");
  const more = zones.size > nextShownMax ? ` and ${zones.size - nextShownMax} more` : "";
  const what = `${shown}${more}: known to this Node, by the rules of tzdata ${versions["tz"] ?? "(no version)"}`;
  return { check: "zones", subject: "", level: "ok", what };
}

function checkSlots(slots: readonly NextSlot[]): readonly Finding[] {
  const never = slots.filter(({ slotMs }) => slotMs === undefined);
  const findings = never.map(
    ({ policy }): Finding => ({
      check: "next slots",
      subject: policy,
      level: "warning",
      what: "its schedule has no slot any more",
      cure: "change the schedule, or remove the policy; `syncline plan` shows what a schedule gives",
    }),
  );
  const coming = slots.filter(({ slotMs }) => slotMs !== undefined);
  const shown = coming.slice(0, nextShownMax).map(({ policy, slotMs = 0 }) => `${policy} ${showInstant(slotMs)}`);
  const what =
    coming.length === 0
      ? "no policy has a schedule: all run by hand"
      : `${coming.length} scheduled; next ${shown.join(", ")}`;
  return [{ check: "next slots", subject: "", level: "ok", what }, ...withinLines(findings)];
}

function checkChains({ policies }: PolicySet): readonly Finding[] {
  const followers = policies.filter(({ after }) => after !== undefined);
  if (followers.length === 0) return [];
  const shown = followers.slice(0, nextShownMax).map(({ name, after }) => `${name} after ${after?.policy}`);
  const more = followers.length > nextShownMax ? ` and ${followers.length - nextShownMax} more` : "";
  return [{ check: "chains", subject: "", level: "ok", what: `${shown.join(", ")}${more}` }];
}

/**
 * Policies whose runs are settled by a list that grows quiet, because the mapping does not say what
 * a finished activity looks like.
 */
function checkMappings({ services, policies }: PolicySet): readonly Finding[] {
  const findings = [...services.values()].flatMap((service): Finding[] => {
    const followed = policies.filter((policy) => policy.service === service.name && isFollowed(policy));
    if (followed.length === 0) return [];
    const activity = service.mapping.get("activities");
    const missing = (["syncJobId", "finished", "succeeded"] as const).filter(
      (field) => activity?.[field] === undefined,
    );
    const base = { check: "mapping", subject: service.name } as const;
    if (missing.length === 0)
      return [{ ...base, level: "ok", what: "shows the sync job of an activity, and how it ended" }];
    const names = followed
      .slice(0, nextShownMax)
      .map(({ name }) => name)
      .join(", ");
    const whose = `${followed.length} ${followed.length === 1 ? "policy" : "policies"} (${names}${followed.length > nextShownMax ? ", …" : ""})`;
    return [
      {
        ...base,
        level: "warning",
        what: `no ${missing.join(", ")} for activities: the outcomes of ${whose} are inferred from a list that grows quiet`,
        cure: `look at items with \`syncline api GetActivities\`, and write services.${service.name}.mapping.activity`,
      },
    ];
  });
  return withinLines(findings);
}

function isFollowed({ action, follow }: Policy): boolean {
  return action.kind === "run" && follow.until !== "accepted";
}
