// `syncline doctor`: checks that everything works that the policies need. It asks Redis and every
// service, changes nothing, and says how to fix what it finds.

import type { Command } from "commander";
import { createService } from "../../app/create-service.ts";
import { skewMsMax } from "../../app/redis-guard.ts";
import type { PolicySet, ServiceSettings } from "../../config/policy-set.ts";
import { fewAtATime } from "../../core/batcher.ts";
import { systemClock, withTimeLimit } from "../../core/clock.ts";
import { formatDuration } from "../../core/duration.ts";
import { errorText, OutOfReachError, UsageError } from "../../core/errors.ts";
import { type EventLog, silentLog } from "../../core/event-log.ts";
import { toIso } from "../../core/instant.ts";
import { NewerVersionError } from "../../core/newer-version.ts";
import { counted } from "../../core/plain-text.ts";
import { isRedisOutage } from "../../core/redis-outage.ts";
import { notedLengthMin } from "../../core/secrets.ts";
import { readStatus } from "../../queries/status.ts";
import type { SyncService } from "../../service/client.ts";
import { openStore, type RedisTarget, type Store } from "../../store/redis.ts";
import { findRedisFaults, type RedisFacts, readRedisFacts } from "../../store/redis-facts.ts";
import type { CommandIo } from "../command-io.ts";
import { findDeletedTargets } from "../deleted-targets.ts";
import {
  durationOption,
  findService,
  loadPoliciesOrThrow,
  policySetFor,
  redisCommand,
  redisTarget,
  type SetOptions,
  variableOption,
} from "../shared-options.ts";
import { oneLine, paint } from "../table.ts";
import { checkNames, type Finding, findingFor, type Level, worstFirst } from "./finding.ts";
import { checkPolicies, judgeStatus, type NextSlot, nextSlots } from "./installation-checks.ts";
import { checkSignIn, checkSinks } from "./outside-checks.ts";
import { checkService } from "./service-checks.ts";

const colour = { ok: "green", warning: "yellow", problem: "red" } as const satisfies Record<Level, string>;

const answerWithinMs = 5_000;

interface DoctorOptions extends SetOptions {
  readonly service?: string;
  readonly webAuth?: string;
  readonly within: number;
}

const servicesAtOnce = 4;

const help = `
Looks at Redis (version, eviction, append-only file, clock, replicas), at every service (DNS, TCP, TLS, token, identity), at the sync jobs and masks of policies (not of \`apply\`), at triggers, lists of runs, mappings, zones, calendars, next slots, pauses, breakers, at sinks and heartbeats (host, secret, file, what waits; nothing is sent), and at who is alive. It only reads.
Without --config it checks the policies that run; of addresses that may be secret, such as a token URL's query, Redis keeps the host only.
Tokens, certificates and files are looked for on this machine: run it where \`syncline serve\` runs, in a pod.
Each line is ok, a warning (it works, with a risk) or a problem (it will not work), and says what to do.
Exit codes: 0 no problem (there may be warnings), 1 a problem, 2 wrong use or configuration.

Examples:
  $ syncline doctor --config policies/
  $ syncline doctor --service main --json | jq '.checks[] | select(.level != "ok")'`;

/** The command `doctor`. */
export function doctorCommand(io: CommandIo): Command {
  return redisCommand("doctor", "set")
    .option("--service <name>", "only this service and its policies")
    .addOption(variableOption("--web-auth <file>", "also the identity provider of `serve --web-auth`"))
    .addOption(durationOption("--within <duration>", "how long all of it may take", "60s"))
    .option("--json", "print JSON")
    .addHelpText("after", help)
    .action(async (options: DoctorOptions) => {
      const target = redisTarget(options, io);
      const signIn = options.webAuth === undefined ? [] : await checkSignIn(options.webAuth, io.settings.variables);
      const redis = await checkRedis(target);
      const examined = await examine({ ...redis, target }, options, io).finally(() => redis.store?.close());
      const [findings, slots] = [[...examined.findings, ...signIn], examined.slots];
      io.progress?.("");
      io.out(options.json ? reportToJson(findings, slots) : reportToText(findings, io.colours));
      if (findings.some(({ level }) => level === "problem")) io.exitCode = 1;
    });
}

/** Redis as it was found. `store`: undefined when it cannot be used. */
interface CheckedRedis {
  readonly findings: readonly Finding[];
  readonly store: Store | undefined;
  readonly target: RedisTarget;
}

/** Checks the policies and all that they need; without Redis and a file only Redis is judged. */
async function examine(redis: CheckedRedis, options: DoctorOptions, io: CommandIo) {
  const { store } = redis;
  const { config, service } = options;
  if (store === undefined && config === undefined) return { findings: redis.findings, slots: [] };
  const whole = store === undefined ? loadPoliciesOrThrow(config ?? "", io) : policySetFor(options, store, io);
  const set = narrow(await whole, service);
  const nowMs = systemClock.nowMs();
  const slots = nextSlots(set, nowMs);
  return { findings: [...checkPolicies(set, slots, nowMs), ...(await ask(set, redis, options, io))], slots };
}

/** Asks Redis and the services in parallel, until all have answered or the time is up. */
async function ask(
  set: PolicySet,
  redis: CheckedRedis,
  { within: withinMs, service }: DoctorOptions,
  io: CommandIo,
): Promise<readonly Finding[]> {
  const timeUp = new AbortController();
  const done = new AbortController();
  const findings: Finding[] = [];
  const signal = AbortSignal.any([timeUp.signal, io.signal]);
  let left = set.services.size;
  const askOne = async (settings: ServiceSettings) => {
    left -= 1;
    findings.push(...(await askService(settings, set, signal, io)));
  };
  const all = Promise.all([
    askStatus(set, redis, service === undefined),
    checkSinks(set, signal),
    fewAtATime(set.services.values(), servicesAtOnce, askOne, signal),
  ]);
  const timer = systemClock.sleep(withinMs, AbortSignal.any([done.signal, io.signal])).then(() => {
    if (!done.signal.aborted) timeUp.abort();
  });
  const [redisFindings, sinkFindings] = await all.finally(() => done.abort());
  await timer;
  const isTold = ({ check, subject }: Finding) =>
    check === "feeds" && findings.some((one) => one.check === check && one.subject === subject);
  findings.push(...redisFindings.filter((one) => !isTold(one)), ...sinkFindings);
  if (signal.aborted) findings.push(cutShort(withinMs, left));
  return findings;
}

async function askStatus(
  set: PolicySet,
  { findings, store, target }: CheckedRedis,
  isWhole: boolean,
): Promise<readonly Finding[]> {
  if (store === undefined) return findings;
  try {
    const status = await readStatus(set, store, target);
    return [...findings, ...judgeStatus(set, status, { deleted: await findDeletedTargets(set, store), isWhole })];
  } catch (error) {
    if (!isRedisOutage(error) && !(error instanceof NewerVersionError)) throw error;
    const what = `what goes on cannot be read: ${errorText(error)}`;
    const cure = "look at the lines about Redis; a newer version of Syncline needs a newer doctor";
    return [...findings, findingFor("replicas").problem(what, cure)];
  }
}

async function askService(
  settings: ServiceSettings,
  set: PolicySet,
  signal: AbortSignal,
  io: CommandIo,
): Promise<readonly Finding[]> {
  const { warning, problem } = findingFor("token", settings.name);
  const notes: Finding[] = [];
  const warn: EventLog["warn"] = (event) => {
    if (event !== "token.too-short") return;
    const what = `it has fewer than ${notedLengthMin} characters: as short as a word, it is not taken out of what is logged and printed`;
    notes.push(warning(what, "use a real access token; a short one is for the sandbox"));
  };
  let client: SyncService;
  try {
    client = createService(settings, { variables: io.settings.variables, log: { ...silentLog, warn } });
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return [problem(error.message, "set the variable that services.*.token.env names")];
  }
  try {
    const policies = set.policies.filter(({ service }) => service === settings.name);
    const progress = (text: string) => io.progress?.(text);
    const findings = await checkService({ settings, policies, client, signal, progress });
    return [...findings, ...notes.slice(0, 1)];
  } finally {
    client.close();
  }
}

function cutShort(withinMs: number, servicesLeft: number): Finding {
  const rest = servicesLeft === 0 ? "" : `; ${servicesLeft} services were not asked at all`;
  const what = `stopped after ${formatDuration(withinMs)} at the latest: what was not read by then counts as a problem${rest}`;
  return findingFor("doctor").problem(what, "look at one service with --service, or take longer with --within");
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

/** Checks Redis; close the store afterwards. Without a store nothing else can be checked. */
async function checkRedis(target: RedisTarget): Promise<Omit<CheckedRedis, "target">> {
  let store: Store | undefined;
  try {
    store = await openStore(target);
    const late = () => new OutOfReachError(`Redis did not answer within ${answerWithinMs / 1_000} s`);
    const facts = await withTimeLimit(readRedisFacts(store), answerWithinMs, late);
    return { findings: judgeFacts(facts), store };
  } catch (error) {
    await store?.close();
    if (store === undefined && !(error instanceof OutOfReachError)) throw error;
    const cure = "check REDIS_URL or --redis-url, passwords and network policies; docs/running.md";
    return { findings: [findingFor("redis").problem(errorText(error), cure)], store: undefined };
  }
}

function judgeFacts(facts: RedisFacts): readonly Finding[] {
  const faults = findRedisFaults(facts);
  const findings = faults.map(({ level, about, what, cure }) => findingFor("redis", about)[level](what, cure));
  const { clockAheadMs, version, evictionPolicy, appendOnly, replicas } = facts;
  if (Math.abs(clockAheadMs) > skewMsMax) {
    const side = clockAheadMs > 0 ? "ahead of" : "behind";
    const what = `this machine's clock is ${(Math.abs(clockAheadMs) / 1_000).toFixed(1)} s ${side} that of Redis`;
    const cure = "set the clocks by NTP; slots follow the clock of Redis, tokens and certificates that of this machine";
    findings.push(findingFor("redis", "clock").warning(what, cure));
  }
  if (faults.some(({ level }) => level === "problem")) return findings;
  const parts = [
    `version ${version ?? "unknown"}`,
    ...(evictionPolicy === undefined ? [] : [evictionPolicy]),
    ...(appendOnly === true ? ["append-only file"] : []),
    replicas === 0 ? "no replicas: a start waits for none" : `${replicas} in step: a start waits for them`,
  ];
  return [findingFor("redis").ok(parts.join(", ")), ...findings];
}

function sortFindings(findings: readonly Finding[]): readonly Finding[] {
  return findings.toSorted((a, b) => checkNames.indexOf(a.check) - checkNames.indexOf(b.check));
}

/** The report for machines. `ok`: no problem was found; warnings do not count. */
function reportToJson(findings: readonly Finding[], slots: readonly NextSlot[]): string {
  const { problem: problems, warning: warnings, ok: fine } = countLevels(findings);
  const nextSlots = slots.map(({ policy, slotMs }) => ({ policy, slot: toIso(slotMs) }));
  return JSON.stringify({
    v: 1,
    ok: problems === 0,
    problems,
    warnings,
    fine,
    checks: sortFindings(findings),
    nextSlots,
  });
}

/** Warnings that can wait until the service is reached and takes the token. */
const canWait: ReadonlySet<Finding["check"]> = new Set(["token", "mapping", "breakers", "feeds"]);

/** The report for people: what is wrong first; what can wait for a cause is only counted there. */
function reportToText(findings: readonly Finding[], colours: boolean): string {
  const causes = findings.filter(
    ({ level, check }) => level === "problem" && (check === "service" || check === "token"),
  );
  const causeOf = ({ level, check, subject }: Finding) =>
    level === "warning" && canWait.has(check)
      ? causes.find((cause) => subject.split(/, | of /).includes(cause.subject))
      : undefined;
  const explained = Map.groupBy(findings, causeOf);
  const ordered = worstFirst(sortFindings(explained.get(undefined) ?? []));
  const lines = ordered.flatMap((finding) => {
    const { check, subject, level, what, cure } = finding;
    const about = `${check}${subject === "" ? "" : ` ${subject}`}`;
    const more = Map.groupBy(explained.get(finding) ?? [], (one) => one.check);
    const counts = [...more].map(([name, { length }]) => `${length} about ${name}`);
    return [
      `${paint(colour[level], level.padEnd(7), colours)}  ${about}: ${oneLine(what)}`,
      ...(cure === undefined ? [] : [`  → ${oneLine(cure)}`]),
      ...(counts.length === 0
        ? []
        : [`  left out until this is mended (--json shows them): warnings, ${counts.join(", ")}`]),
    ];
  });
  const { problem, warning, ok } = countLevels(findings);
  return [...lines, "", `${counted(problem, "problem")}, ${counted(warning, "warning")}, ${ok} fine`].join("\n");
}

function countLevels(findings: readonly Finding[]): Record<Level, number> {
  const count = (wanted: Level) => findings.filter(({ level }) => level === wanted).length;
  return { problem: count("problem"), warning: count("warning"), ok: count("ok") };
}
