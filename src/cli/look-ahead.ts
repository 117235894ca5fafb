// What `plan` and `simulate` share: the policies to look ahead with, the options that say what to
// assume of the service, and the text that shows the assumptions.

import { type Command, InvalidArgumentError } from "commander";
import type { Policy, PolicySet } from "../config/policy-set.ts";
import { durationPattern, formatDuration, parseDuration } from "../core/duration.ts";
import { OutOfReachError } from "../core/errors.ts";
import type { KnownAhead } from "../queries/time-line.ts";
import type { Assumptions, DurationRange, PerPolicy } from "../simulate/assumptions.ts";
import { exactly } from "../simulate/assumptions.ts";
import type { Store } from "../store/redis.ts";
import { type CommandIo, RepeatableOption } from "./command-io.ts";
import {
  durationOption,
  findPolicy,
  isNamedByHand,
  loadPoliciesOf,
  loadPoliciesOrThrow,
  policySetFor,
  redisTarget,
  type SetOptions,
  withStore,
} from "./shared-options.ts";

/** One `[POLICY=]VALUE` from the command line. `policy` undefined: for all that are not named. */
interface PolicyValue<Value> {
  readonly policy: string | undefined;
  readonly value: Value;
}

/** The values of the options. */
export interface AssumptionOptions {
  readonly duration: readonly PolicyValue<DurationRange>[];
  readonly maskJobs: readonly PolicyValue<number>[];
  readonly failure: readonly PolicyValue<number>[];
  readonly requestTime: number;
  readonly seed: string;
}

const runMsByDefault = 600_000;
const maskJobsMax = 1_000;
const runMsMax = 31 * 86_400_000;

/** Adds the options. */
export function withAssumptionOptions(command: Command): Command {
  const duration = "how long a run takes, e.g. 20m, or drawn from 10m-30m; again for each policy";
  const jobs = "how many sync jobs a policy with fromMasks finds; again for each policy";
  const failing = "how many tasks fail, e.g. 5%, drawn; again for each policy";
  return command
    .addOption(
      new RepeatableOption("--duration <[policy=]duration>", duration)
        .default([], "10m")
        .argParser(collect(durationRange)),
    )
    .addOption(new RepeatableOption("--mask-jobs <[policy=]count>", jobs).default([], "1").argParser(collect(maskJobs)))
    .addOption(
      new RepeatableOption("--failure <[policy=]percent>", failing).default([], "0%").argParser(collect(percent)),
    )
    .addOption(durationOption("--request-time <duration>", "how long one request takes", "1s"))
    .option("--seed <text>", "seed of all random choices", "1");
}

/** Whether --duration says how long runs take that it does not name. */
export function isDurationGiven({ duration }: AssumptionOptions): boolean {
  return duration.some(({ policy }) => policy === undefined);
}

/**
 * Applies the options. `usualMs`: how long runs took, where --duration says nothing; `otherwiseMs`:
 * how long others take. @throws UsageError when an option names a policy that does not exist.
 */
export function toAssumptions(
  options: AssumptionOptions,
  set: PolicySet,
  usualMs: ReadonlyMap<string, number> = new Map(),
  otherwiseMs = runMsByDefault,
): Assumptions {
  const { otherwise, byPolicy } = perPolicy(options.duration, exactly(otherwiseMs), set);
  const usual = isDurationGiven(options) ? [] : [...usualMs].map(([name, ms]) => [name, exactly(ms)] as const);
  return {
    durations: { otherwise, byPolicy: new Map([...usual, ...byPolicy]) },
    maskJobs: perPolicy(options.maskJobs, 1, set),
    failures: perPolicy(options.failure, 0, set),
    requestMs: options.requestTime,
    seed: options.seed,
  };
}

/** The assumptions that matter for these policies, a sentence each. */
export function describeAssumptions(assumptions: Assumptions, policies: readonly Policy[]) {
  const { durations, maskJobs, failures, requestMs, seed } = assumptions;
  const hasRuns = policies.some(({ action }) => action.kind === "run");
  const isDrawn = [durations.otherwise, ...durations.byPolicy.values()].some((one) => one.leastMs !== one.mostMs);
  const isAnyFailing = failures.otherwise > 0 || failures.byPolicy.size > 0;
  const hasMasks = policies.some(({ action }) => "fromMasks" in action);
  return [
    ...(hasRuns ? [`a run takes ${several(durations, showRange)}${isDrawn ? ` (seed ${seed})` : ""}`] : []),
    `a request takes ${formatDuration(requestMs)}`,
    ...(hasMasks ? [`masks name ${several(maskJobs, String)} sync jobs of their policy alone`] : []),
    ...(isAnyFailing ? [`${several(failures, showPercent)} of the tasks fail (seed ${seed})`] : []),
  ];
}

function showPercent(part: number): string {
  return `${Number((part * 100).toFixed(2))}%`;
}

function percent(text: string): number {
  const value = Number(/^(\d{1,3}(?:\.\d{1,2})?)%$/.exec(text)?.[1] ?? Number.NaN);
  if (Number.isNaN(value) || value > 100) throw new InvalidArgumentError("write a percentage such as 5%, up to 100%");
  return value / 100;
}

function several<Value>({ otherwise, byPolicy }: PerPolicy<Value>, show: (value: Value) => string): string {
  const named = [...byPolicy].slice(0, 10).map(([policy, value]) => `${policy} ${show(value)}`);
  const more = byPolicy.size > named.length ? [`and ${byPolicy.size - named.length} more`] : [];
  return named.length === 0 ? show(otherwise) : `${show(otherwise)} (${[...named, ...more].join(", ")})`;
}

/** `10m`, or `10m-30m`. */
export function showRange({ leastMs, mostMs }: DurationRange): string {
  return leastMs === mostMs ? formatDuration(leastMs) : `${formatDuration(leastMs)}-${formatDuration(mostMs)}`;
}

function perPolicy<Value>(named: readonly PolicyValue<Value>[], byDefault: Value, set: PolicySet): PerPolicy<Value> {
  const byPolicy = new Map<string, Value>();
  for (const { policy, value } of named) if (policy !== undefined) byPolicy.set(findPolicy(set, policy).name, value);
  return { otherwise: named.findLast(({ policy }) => policy === undefined)?.value ?? byDefault, byPolicy };
}

/** Parses a repeatable `[POLICY=]VALUE`. */
function collect<Value>(read: (text: string) => Value) {
  return (text: string, before: readonly PolicyValue<Value>[]): readonly PolicyValue<Value>[] => {
    const [first = "", second, ...more] = text.split("=");
    if (more.length > 0) throw new InvalidArgumentError("write VALUE or POLICY=VALUE");
    const policy = second === undefined ? undefined : first;
    if (before.some((one) => one.policy === policy))
      throw new InvalidArgumentError(`it is given twice for ${policy ?? "all policies"}: one value is possible`);
    return [...before, { policy, value: read(second ?? first) }];
  };
}

function durationRange(text: string): DurationRange {
  const [leastMs = Number.NaN, mostMs = leastMs, ...more] = text.split("-").map(toMs);
  if (more.length > 0 || Number.isNaN(leastMs) || Number.isNaN(mostMs))
    throw new InvalidArgumentError("write a duration such as 20m, or two such as 10m-30m");
  if (leastMs > mostMs || mostMs > runMsMax)
    throw new InvalidArgumentError("write the shorter one first, and at most 31d");
  return { leastMs, mostMs };
}

function toMs(text: string): number {
  return durationPattern.test(text) ? parseDuration(text) : Number.NaN;
}

function maskJobs(text: string): number {
  const count = Number(text);
  if (!/^\d{1,4}$/.test(text) || count > maskJobsMax)
    throw new InvalidArgumentError(`write a whole number up to ${maskJobsMax}`);
  return count;
}

/** What a command asks Redis for. */
type AskedAhead = Partial<KnownAhead> & Pick<KnownAhead, "usualMs">;

/** The policies. `known`: undefined when Redis is not asked, or does not answer. */
export interface PoliciesAhead {
  readonly set: PolicySet;
  readonly known: AskedAhead | undefined;
}

/**
 * Reads them, and what `readKnown` asks Redis for; undefined: nothing. Without Redis, the files of
 * --config are enough: what is not known then is said.
 * @throws UsageError for files with problems; OutOfReachError without files and Redis.
 */
export async function readPoliciesAhead(
  options: SetOptions,
  readKnown: ((store: Store, set: PolicySet) => Promise<AskedAhead>) | undefined,
  io: CommandIo,
): Promise<PoliciesAhead> {
  const { config } = options;
  if (config !== undefined && readKnown === undefined) {
    if (isNamedByHand(config, io)) return { set: await loadPoliciesOrThrow(config, io), known: undefined };
    const loaded = await loadPoliciesOf(config, io);
    if (loaded.ok) return { set: loaded.set, known: undefined };
  }
  try {
    return await withStore(redisTarget(options, io), async (store) => {
      const set = await policySetFor(options, store, io);
      return { set, known: await readKnown?.(store, set) };
    });
  } catch (error) {
    if (!(error instanceof OutOfReachError)) throw error;
    if (config === undefined) throw new OutOfReachError(`${error.message} Or name policy files with --config.`);
    io.err(`${error.message} Neither pauses nor usual durations are known.`);
    return { set: await loadPoliciesOrThrow(config, io), known: undefined };
  }
}
