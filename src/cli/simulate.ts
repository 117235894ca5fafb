// `syncline simulate`: what policies would do between two times, by the real planner on a virtual
// clock. Needs no service, and with --config no Redis. For people before a change, and for CI with
// limits.
import { type Command, InvalidArgumentError } from "commander";
import type { Policy, PolicySet } from "../config/policy-set.ts";
import { nextTurn, systemClock } from "../core/clock.ts";
import { UsageError } from "../core/errors.ts";
import { counted, someNames } from "../core/plain-text.ts";
import type { Pause } from "../model/pause.ts";
import { readUsualMs } from "../queries/time-line.ts";
import type { Assumptions } from "../simulate/assumptions.ts";
import { LoadMeter } from "../simulate/load-meter.ts";
import { concurrencyIn, simulate } from "../simulate/simulation.ts";
import { SlotList } from "../simulate/slot-list.ts";
import { DeadlineMeter, Totals } from "../simulate/totals.ts";
import type { VirtualTime } from "../simulate/virtual-ticks.ts";
import { type CommandIo, RepeatableOption } from "./command-io.ts";
import {
  type AssumptionOptions,
  isDurationGiven,
  readPoliciesAhead,
  toAssumptions,
  withAssumptionOptions,
} from "./look-ahead.ts";
import { countArgument, findPolicy, policiesAbout, redisCommand, type SetOptions } from "./shared-options.ts";
import { findLimits, type LimitOptions, reportToJson, reportToText, type SimulationReport } from "./simulate-report.ts";
import {
  parseInterval,
  parseRange,
  type TimeContext,
  timeForms,
  timezoneFor,
  timezoneOption,
} from "./time-argument.ts";

interface SimulateOptions extends AssumptionOptions, LimitOptions, SetOptions {
  readonly usualDurations?: true;
  readonly from: string;
  readonly to: string;
  readonly timezone?: string;
  readonly outage: readonly string[];
  readonly pause: readonly string[];
  readonly problems: number;
  readonly list?: true;
}

const slotsMax = 1_000_000;
const listedMax = 200_000;
const intervalsMax = 1_000;
const eventsPerTurn = 5_000;
const busyMinutes = 3;

const help = `
The planner is the real one: schedules, clock changes, spread, blackouts, holidays and catch-up are as in \`serve\`. The service is assumed: how long runs and requests take. What overlaps is decided as in \`serve\`, per sync job and across policies.
Times: ${timeForms}.
In --to, +7d counts from --from; in --outage and --pause the first time counts from --from, the second one from the first.
Exit 1 when a limit (--max-…) is exceeded.

Examples:
  $ syncline simulate --config policies/ --to +30d --duration 20m --duration contracts-nightly=1h-3h
  $ syncline simulate --config policies/ --from 2027-03-27 --to +2d --timezone Europe/Vienna --list
  $ syncline simulate --config policies/ --outage +1d/+4h --max-missed 0
  $ syncline simulate --config policies/ --to +30d --max-overlaps 0 --max-peak 60 --json`;

/** The command `simulate`. */
export function simulateCommand(io: CommandIo): Command {
  const command = redisCommand("simulate", "set")
    .option("--from <time>", "where it begins; a slot at this very instant is not part of it", "now")
    .option("--to <time>", "where it ends", "+7d")
    .addOption(timezoneOption())
    .argument("[policies...]", "only these and those that they follow; overlaps with others are not seen then");
  return withAssumptionOptions(command)
    .option(
      "--usual-durations",
      "with --config, where --duration says nothing: the median of the newest 20 good runs of each of its sync jobs, from Redis; without --config always",
    )
    .addOption(again("--outage <from/to>", "no scheduler runs; may be given again"))
    .addOption(again("--pause <[policy=]from/to>", "a pause of a policy or of all; may be given again"))
    .option("--max-overlaps <count>", "most tasks that may come while their sync job is still running", limit)
    .option("--max-missed <count>", "most slots and tasks that may be missed", limit)
    .option("--max-skipped <count>", "most slots and tasks that may be skipped", limit)
    .option("--max-late <count>", "most deadlines that may be missed", limit)
    .option("--max-peak <count>", "most starts in one minute", limit)
    .option("--problems <count>", "how many problems are shown", countArgument(1_000), 20)
    .option("--list", "also every slot and what becomes of it")
    .option("--json", "print JSON, with all policies")
    .addHelpText("after", help)
    .action(async (names: readonly string[], options: SimulateOptions, chosen: Command) => {
      // CI names the files, and has no Redis.
      const asksRedis = options.usualDurations ?? chosen.getOptionValueSource("config") !== "cli";
      const { set, known } = await readPoliciesAhead(options, asksRedis ? readUsualMs : undefined, io);
      const policies = policiesAbout(set, names);
      const timezone = timezoneFor(options.timezone, policies);
      const time = toVirtualTime(options, set, timezone);
      const assumptions = toAssumptions(options, set, known?.usualMs);
      const report = await run(policies, { set, time, timezone, options, io, assumptions });
      if (report === undefined) {
        io.err("stopped before its end");
        io.exitCode = 1;
        return;
      }
      if (known !== undefined) io.err(usedDurations(known.usualMs, options));
      else if (options.duration.length === 0 && !options.json)
        io.err(
          "how long runs take is not known without Redis: --usual-durations asks it, --duration POLICY=20m says it",
        );
      io.out(options.json ? JSON.stringify({ v: 1, ...reportToJson(report) }) : reportToText(report, io));
      if (report.limits.some(({ isOver }) => isOver)) io.exitCode = 1;
    });
}

/** Says which durations the simulation has; `usualMs`: those that Redis knows. */
function usedDurations(usualMs: ReadonlyMap<string, number>, options: AssumptionOptions): string {
  if (isDurationGiven(options)) return "durations of all policies: as --duration says";
  const named = options.duration.map(({ policy = "" }) => policy);
  const usual = usualMs.size - named.filter((name) => usualMs.has(name)).length;
  const given = named.length === 0 ? "" : `; of ${someNames(named)}: as --duration says`;
  return `durations of ${counted(usual, "policy", "policies")}: the median of the last good runs${given}`;
}

interface SimulationContext {
  readonly set: PolicySet;
  readonly time: VirtualTime;
  readonly timezone: string;
  readonly assumptions: Assumptions;
  readonly options: SimulateOptions;
  readonly io: CommandIo;
}

async function run(policies: readonly Policy[], context: SimulationContext): Promise<SimulationReport | undefined> {
  const { set, time, timezone, assumptions, options, io } = context;
  const beganMs = systemClock.monotonicMs();
  const totals = new Totals(policies, options.problems);
  const deadlines = new DeadlineMeter(policies);
  const all = new LoadMeter(busyMinutes);
  const meters = new Map(policies.map(({ service }) => [service, new LoadMeter(busyMinutes)]));
  const list = options.list ? new SlotList(listedMax) : undefined;
  const concurrencyOf = concurrencyIn(set);
  let events = 0;
  for (const event of simulate(policies, { time, assumptions, concurrencyOf, slotsMax })) {
    totals.add(event);
    deadlines.add(event);
    all.add(event);
    meters.get(event.policy.service)?.add(event);
    list?.add(event);
    events += 1;
    if (events % eventsPerTurn !== 0) continue;
    const atMs = event.event === "planned" ? event.nowMs : event.atMs;
    io.progress?.(`simulated up to ${new Date(atMs).toISOString().slice(0, 16)}Z: ${totals.all.slots} slots`);
    await nextTurn();
    if (io.signal.aborted) break;
  }
  io.progress?.("");
  if (io.signal.aborted) return undefined;
  deadlines.judge(time, totals);
  const load = all.load();
  const byService = [...meters].map(([service, meter]) => [service, meter.load()] as const);
  const loads = new Map(byService.filter(([, { starts }]) => starts > 0));
  const limits = findLimits(options, totals.all, load.busiest[0]?.starts ?? 0);
  const tookMs = systemClock.monotonicMs() - beganMs;
  return { policies, time, timezone, assumptions, totals, load, loads, limits, rows: list?.rows, tookMs };
}

function toVirtualTime(options: SimulateOptions, set: PolicySet, timezone: string): VirtualTime {
  const { fromMs, toMs, context } = parseRange(options, { daysMax: 2 * 366, most: "two years", timezone });
  if (options.outage.length + options.pause.length > intervalsMax)
    throw new UsageError(`at most ${intervalsMax} outages and pauses`);
  const outages = options.outage.map((text) => parseInterval(text, "--outage", context));
  if (outages.some((outage) => outage.toMs > toMs))
    throw new UsageError(
      "an outage ends after --to, so the simulation cannot show what is caught up afterwards: choose a later --to",
    );
  return { fromMs, toMs, outages, pauses: options.pause.map((text) => toPause(text, context, set)) };
}

function toPause(text: string, context: TimeContext, set: PolicySet): Pause {
  const [first = "", second] = text.split("=", 2);
  const { fromMs, toMs } = parseInterval(second ?? first, "--pause", context);
  const subject =
    second === undefined
      ? ({ scope: "all", name: "" } as const)
      : ({ scope: "policy", name: findPolicy(set, first).name } as const);
  return { v: 1, ...subject, note: "--pause", actor: "simulate", sinceMs: fromMs, untilMs: toMs, endedBy: null };
}

function again(flags: string, description: string): RepeatableOption {
  const collect = (text: string, before: readonly string[]) => [...before, text];
  return new RepeatableOption(flags, description).default([], "none").argParser(collect);
}

function limit(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError("write a whole number from 0 on");
  return Number(text);
}
