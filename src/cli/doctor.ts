// `syncline doctor`: does everything work that the policies need? Asks Redis and every service, changes nothing, and says what to
// do about what it finds. For a laptop before the installation, and for a pod (`helm test`).
import { Command } from "commander";
import type { PolicySet, ServiceSettings } from "../config/policy-set.ts";
import { systemClock } from "../core/clock.ts";
import { formatDuration } from "../core/duration.ts";
import { errorText, UsageError } from "../core/errors.ts";
import { type EventLog, silentLog } from "../core/event-log.ts";
import { NewerVersionError } from "../core/newer-version.ts";
import type { SyncService } from "../service/client.ts";
import { isRedisOutage, type RedisTarget, redisTimeMs } from "../store/redis.ts";
import type { CommandIo } from "./command-io.ts";
import type { Finding } from "./doctor/finding.ts";
import { checkPolicies, nextSlots } from "./doctor/policy-checks.ts";
import { checkPresence } from "./doctor/presence-checks.ts";
import { checkRedis } from "./doctor/redis-checks.ts";
import { reportToJson, reportToText } from "./doctor/report.ts";
import { checkService } from "./doctor/service-checks.ts";
import { checkSinks, judgeSinkStates } from "./doctor/sink-checks.ts";
import {
  configOption,
  durationOption,
  loadPoliciesOrThrow,
  prefixOption,
  type RedisOptions,
  redisOption,
  redisTarget,
} from "./shared-options.ts";
import { readSinkStates } from "./sink-states.ts";

/** Makes the client of a service; program.ts passes app/create-service.ts's `createService`. */
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

/** Makes the command. */
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

/** Asks Redis and the services, side by side, until all have answered or the time is up. */
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
  try {
    client = createService(settings, { variables: io.settings.variables, log: silentLog });
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    const cure = "set the variable that services.*.token.env names";
    return [{ check: "token", subject: settings.name, level: "problem", what: error.message, cure }];
  }
  try {
    const policies = set.policies.filter(({ service }) => service === settings.name);
    const progress = (text: string) => io.progress?.(text);
    return await checkService({ settings, policies, client, signal, progress });
  } finally {
    client.close();
  }
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
  const settings = set.services.get(service);
  if (settings === undefined)
    throw new UsageError(`there is no service ${service}; there are: ${[...set.services.keys()].join(", ")}`);
  return {
    ...set,
    services: new Map([[service, settings]]),
    policies: set.policies.filter((policy) => policy.service === service),
  };
}
