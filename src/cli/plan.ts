// `syncline plan`: when each policy is due next, in its own zone and in UTC; with --to, all slots
// up to then as one time line (plan-time-line.ts). --dst shows what clock changes do, --peaks and
// --requests the load (plan-load.ts), --state declared objects.

import type { Command } from "commander";
import { chainOf, type Policy, type PolicySet, zoneOfSlots } from "../config/policy-set.ts";
import { formatDuration } from "../core/duration.ts";
import { UsageError } from "../core/errors.ts";
import { showInstant, toIso } from "../core/instant.ts";
import { readKnownAhead, readTimeLine } from "../queries/time-line.ts";
import { createClosedTimes, describeSkip } from "../schedule/closed-times.ts";
import { type DstDay, dstDays } from "../schedule/dst-days.ts";
import { createChainSource, createSlotSource, dueSlots } from "../schedule/slots.ts";
import { concurrencyIn, simulate } from "../simulate/simulation.ts";
import type { CommandIo, Screen } from "./command-io.ts";
import { cureOfDeleted, type DeletedTarget, findDeletedTargets, tellDeleted } from "./deleted-targets.ts";
import {
  type AssumptionOptions,
  isDurationGiven,
  type PoliciesAhead,
  readPoliciesAhead,
  toAssumptions,
  withAssumptionOptions,
} from "./look-ahead.ts";
import { findLoad, type LoadQuestion, loadToJson, peaksToText, requestsToText } from "./plan-load.ts";
import { timeLineToJson, timeLineToText } from "./plan-time-line.ts";
import {
  choosePolicies,
  countArgument,
  labelOption,
  loadPoliciesOrThrow,
  policiesAbout,
  redisCommand,
  redisTarget,
  refuseIgnoredOptions,
  type SetOptions,
  withStore,
} from "./shared-options.ts";
import { toTable, wideOption } from "./table.ts";
import { parseRange, timeForms, timezoneFor, timezoneOption } from "./time-argument.ts";

interface PlanOptions extends AssumptionOptions, SetOptions {
  readonly state?: string | true;
  readonly count?: number;
  readonly names: readonly string[];
  readonly service?: string;
  readonly label: readonly string[];
  readonly from: string;
  readonly to?: string;
  readonly timezone?: string;
  readonly dst?: true;
  readonly deleted?: true;
  readonly peaks?: number | true;
  readonly requests?: true;
  readonly pages: number;
}

const slotsByDefault = 3;
const rowsByDefault = 200;
const slotsShownMax = 10_000;
/** Slots that one time line looks at: about 40 MB. */
const slotsReadMax = 100_000;
const peaksByDefault = 5;

/** Options that --state does not use. */
const lookingAhead = [
  ...["count", "service", "label", "from", "to", "timezone", "dst", "deleted", "peaks", "requests", "pages"],
  ...["duration", "maskJobs", "failure", "requestTime", "seed"],
];

const help = `
Without --to: the next slots of each policy. With --to: one time line over all policies (one with more than 24 slots is one line), with what each slot starts, when it ends, and which runs of one sync job meet, and what overlap does then. It takes pauses, what runs now and durations from Redis: the median of the newest 20 good runs of each sync job, or what --duration says, or none. It names slots that end after the deadline of their policy.
--peaks and --requests look at what is due between --from and --to. Requests are an estimate: what it assumes is printed with it, and set with --duration, --mask-jobs, --request-time and --pages.
"about" is when a policy that follows another would begin for the next slot, if all goes well: as long after it as --duration says.
Times: ${timeForms}. With --json: an array of policies; with --to, --peaks or --requests an object.

--state reads the service and what Redis remembers, and changes nothing. Exit codes then: 0 nothing to do, 2 something differs (or wrong use, said on standard error), 1 an object is not there or cannot be read, 3 Redis or the service is out of reach.

Examples:
  $ syncline plan
  $ syncline plan --from 20:00 --to 06:00
  $ syncline plan contracts-nightly --count 20
  $ syncline plan --config policies/ --dst
  $ syncline plan --config policies/ --deleted
  $ syncline plan --config policies/ --peaks 10 --from 2026-12-01 --to +7d
  $ syncline plan --config policies/ --requests --duration 20m --pages 3
  $ syncline plan --state policies/`;

/** The command `plan`. */
export function planCommand(io: CommandIo): Command {
  const command = redisCommand("plan", "set")
    .argument("[policies...]", "only these policies")
    .option(
      "-n, --count <count>",
      `how many slots per policy (default: ${slotsByDefault}), or with --to in all (default: ${rowsByDefault})`,
      countArgument(slotsShownMax),
    )
    .option("--service <name>", "only policies of this service")
    .addOption(labelOption())
    .option("--from <time>", "plan as of this time", "now")
    .option("--to <time>", "all slots up to this time as one time line; with --peaks and --requests their end (+24h)")
    .addOption(timezoneOption())
    .option("--dst", "also every date of the next 12 months on which a clock change affects a slot")
    .option("--deleted", "also the policies that name a sync job which Syncline has deleted; asks Redis")
    .option("--peaks [count]", "also the minutes with most starts due, and of which policies", countArgument(1_000))
    .option("--requests", "also how many requests each service gets a day")
    .option("--state [path]", "instead: what apply policies declare, what is live, and what was applied last")
    .option("--pages <count>", "how many pages of 100 items every list has", countArgument(10_000), 1);
  return withAssumptionOptions(command)
    .option("--json", "print JSON")
    .addOption(wideOption())
    .addHelpText("after", help)
    .action(async (names: readonly string[], given: Omit<PlanOptions, "names">, chosen: Command) => {
      const options = { ...given, names };
      refuseIgnoredOf(chosen, options);
      if (options.state !== undefined) {
        const set = await loadPoliciesOrThrow(pathOf(options), io);
        const session = { set, names, redis: redisTarget(options, io), io };
        // The client of the service is for this alone.
        const { showState } = await import("./declared-state.ts");
        return showState(session, { isJson: options.json === true });
      }
      const ahead = await readPoliciesAhead(options, isTimeLine(options) ? readKnownAhead : undefined, io);
      if (isTimeLine(options)) showTimeLine(options, ahead, io);
      else await showNext(options, ahead.set, io);
    });
}

function isTimeLine({ to, peaks, requests }: PlanOptions): boolean {
  return to !== undefined && peaks === undefined && requests === undefined;
}

function chooseAhead(options: PlanOptions, set: PolicySet) {
  const { names, service, label } = options;
  const policies = choosePolicies(set, { names, service, label });
  const timezone = timezoneFor(options.timezone, policies);
  const range = parseRange({ ...options, to: options.to ?? "+24h" }, { daysMax: 366, most: "a year", timezone });
  return { policies, timezone, range };
}

function showTimeLine(options: PlanOptions, { set, known }: PoliciesAhead, io: CommandIo): void {
  const { policies: shown, timezone, range } = chooseAhead(options, set);
  // A run of unknown length ends at once, so that it meets no other: what is not known is said.
  const assumptions = toAssumptions(options, set, known?.usualMs, 0);
  const line = readTimeLine({
    ...{ set, shown, range, assumptions, pauses: known?.pauses ?? [], running: known?.running ?? [] },
    ended: known?.ended,
    isDurationAssumed: isDurationGiven(options),
    rowsMax: slotsReadMax,
  });
  const told = { line, range, timezone, count: options.count ?? (options.json ? slotsReadMax : rowsByDefault) };
  io.out(options.json ? JSON.stringify(timeLineToJson(told)) : timeLineToText(told, io));
}

async function showNext(options: PlanOptions, set: PolicySet, io: CommandIo): Promise<void> {
  const { policies, timezone, range } = chooseAhead(options, set);
  const wanted = { peaks: options.peaks !== undefined, requests: options.requests === true };
  const question = {
    ...{ set, range, timezone, assumptions: toAssumptions(options, set), pages: options.pages },
    policies: options.names.length === 0 ? policies : policiesAbout(set, options.names),
    peaks: typeof options.peaks === "number" ? options.peaks : peaksByDefault,
    requests: wanted.requests,
  };
  const deleted = options.deleted
    ? await withStore(redisTarget(options, io), (store) => findDeletedTargets({ policies }, store))
    : undefined;
  const byName = new Map(set.policies.map((policy) => [policy.name, policy]));
  const plans = policies.map((policy) => ({
    policy,
    slots: nextSlots(policy, range.fromMs, options.count ?? slotsByDefault),
    ...(policy.after === undefined ? {} : { expectedMs: expectedMs(chainOf(policy, byName), question) }),
    ...(deleted === undefined ? {} : { deleted: deleted.filter((target) => target.policy === policy) }),
    ...(options.dst ? { dstDays: comingDstDays(policy, range.fromMs) } : {}),
  }));
  const load = wanted.peaks || wanted.requests ? findLoad(question) : undefined;
  if (options.json) {
    const slots = plans.map(toJson);
    io.out(JSON.stringify(load === undefined ? slots : { v: 1, policies: slots, ...loadToJson(load, wanted) }));
    return;
  }
  io.out(toText(plans, io));
  for (const { policy, deleted: targets = [] } of plans)
    for (const target of targets) io.out(`${policy.name} ${tellDeleted(target)}: ${cureOfDeleted(target)}`);
  if (load !== undefined && wanted.peaks) io.out(`\n${peaksToText(load, io)}`);
  if (load !== undefined && wanted.requests) io.out(`\n${requestsToText(load, io)}`);
}

function refuseIgnoredOf(chosen: Command, options: PlanOptions): void {
  const { state, requests } = options;
  if (state === undefined && isTimeLine(options)) refuseIgnoredOptions(chosen, ["dst", "deleted"], "with --to");
  if (state !== undefined) refuseIgnoredOptions(chosen, lookingAhead, "with --state");
  if (typeof state === "string") refuseIgnoredOptions(chosen, ["config"], "with a path after --state");
  if (requests !== true) refuseIgnoredOptions(chosen, ["pages"], "without --requests");
}

function pathOf({ config, state }: PlanOptions): string {
  const path = typeof state === "string" ? state : config;
  if (path === undefined) throw new UsageError("say which policies: --config PATH, or SYNCLINE_CONFIG");
  return path;
}

/** When the last of a chain, here its first, begins for the next slot, if all goes well. */
function expectedMs(
  chain: readonly Policy[],
  { set, range: { fromMs }, assumptions }: LoadQuestion,
): number | undefined {
  const [policy] = chain;
  const slotMs = policy && createChainSource(policy)?.next(fromMs);
  if (slotMs === undefined) return undefined;
  const time = { fromMs: slotMs - 1, toMs: slotMs, outages: [], pauses: [] };
  const options = { time, assumptions, concurrencyOf: concurrencyIn(set), slotsMax: 1_000 };
  for (const event of simulate(chain, options)) {
    if (event.event !== "planned" || event.policy !== policy) continue;
    return event.plans[0]?.state === "started" ? event.nowMs : undefined;
  }
  return undefined;
}

interface PolicyPlan {
  /** Of a follower; undefined when it would not start. */
  readonly expectedMs?: number | undefined;
  readonly policy: Policy;
  readonly slots: readonly number[];
  readonly dstDays?: readonly DstDay[];
  /** With --deleted: the deleted sync jobs that it names. */
  readonly deleted?: readonly DeletedTarget[];
}

function nextSlots(policy: Policy, fromMs: number, most: number): readonly number[] {
  const source = createSlotSource(policy);
  return source === undefined ? [] : dueSlots(source, fromMs, Number.POSITIVE_INFINITY, most);
}

function toJson({ policy, slots, dstDays, expectedMs, deleted }: PolicyPlan): object {
  const closedAt = createClosedTimes(policy);
  const closed = slots.flatMap((slotMs) => {
    const why = closedAt(slotMs);
    return why === undefined ? [] : [{ slot: toIso(slotMs), why: describeSkip(why) }];
  });
  return {
    policy: policy.name,
    kind: policy.action.kind,
    service: policy.service,
    repository: policy.repository ?? null,
    timezone: zoneOfSlots(policy),
    ...(policy.after === undefined
      ? {}
      : {
          after: { policy: policy.after.policy, on: policy.after.on, withinMs: policy.after.withinMs },
          expected: toIso(expectedMs),
        }),
    slots: slots.map(toIso),
    closed: closed.length === 0 ? undefined : closed,
    dstDays: dstDays === undefined ? undefined : dstDaysToJson(dstDays),
    deleted: deleted?.map(({ syncJob, atMs, by }) => ({ syncJob, at: toIso(atMs), by })),
  };
}

function toText(plans: readonly PolicyPlan[], screen: Screen): string {
  const rows = plans.flatMap(({ policy, slots, expectedMs }) => {
    const about = expectedMs === undefined ? "" : `about ${showInstant(expectedMs)}`;
    const closedAt = createClosedTimes(policy);
    if (slots.length === 0) return [[policy.name, policy.action.kind, whenElse(policy), about]];
    return slots.map((slotMs, index) => {
      const closed = closedAt(slotMs);
      const name = index === 0 ? [policy.name, policy.action.kind] : ["", ""];
      const times = [showInstant(slotMs, zoneOfSlots(policy)), showInstant(slotMs)];
      return [...name, ...times, ...(closed === undefined ? [] : [`skipped: ${describeSkip(closed)}`])];
    });
  });
  const columns = ["policy", "kind", "local", "utc"];
  const slots = toTable(rows.some((row) => row.length > columns.length) ? [...columns, "note"] : columns, rows, screen);
  const affected = plans.flatMap(({ policy, dstDays }) => (dstDays === undefined ? [] : [{ policy, dstDays }]));
  return affected.length === 0 ? slots : `${slots}\n\n${dstDaysToText(affected, screen)}`;
}

function whenElse({ after, schedule }: Policy): string {
  if (schedule?.kind === "once") return `never: its one time (${schedule.at}) is over, or the clocks leave it out`;
  if (after === undefined) return schedule === undefined ? "only by hand" : "never again";
  return `after ${after.policy} (${after.on.join(", ")}), within ${formatDuration(after.withinMs)} of its slot`;
}

/** The dates of the 12 months after an instant on which a clock change affects a policy's slots. */
export function comingDstDays(policy: Policy, fromMs: number): DstDay[] {
  const until = new Date(fromMs);
  until.setUTCFullYear(until.getUTCFullYear() + 1);
  return dstDays(policy, fromMs, until.getTime());
}

/** Affected dates for machines. Local times carry no zone; slots are UTC. */
export function dstDaysToJson(days: readonly DstDay[]): object[] {
  return days.map(({ date, expression, kind, shift, walls, slots }) => ({
    date,
    expression,
    kind,
    shiftAt: toIso(shift.atMs),
    wouldBe: { count: walls.length, first: localText(walls[0]), last: localText(walls.at(-1)) },
    is: { count: slots.length, first: toIso(slots[0]), last: toIso(slots.at(-1)) },
  }));
}

/** Affected dates for people: the expected and the actual time, local and UTC. */
export function dstDaysToText(
  plans: readonly { readonly policy: Policy; readonly dstDays: readonly DstDay[] }[],
  screen: Screen,
): string {
  const rows = plans.flatMap(({ policy, dstDays }) => {
    const zone = policy.timezone;
    return dstDays.map(({ date, shift, kind, walls, slots }) => [
      policy.name,
      date,
      `${clock(shift.atMs + shift.beforeMs)} → ${clock(shift.atMs + shift.afterMs)}`,
      `${several(walls, clock)}${kind === "overlap" ? " twice" : ""}`,
      slots.length === 0 ? "dropped" : several(slots, (slotMs) => showInstant(slotMs, zone)),
      several(slots, (slotMs) => showInstant(slotMs)),
    ]);
  });
  if (rows.length === 0) return "No clock change of the next 12 months affects a slot.";
  return toTable(["policy", "date", "clocks", "would be", "is (local)", "is (utc)"], rows, screen);
}

/** One, two, or the first and the last of many. */
function several(instants: readonly number[], show: (instantMs: number) => string): string {
  if (instants.length <= 2) return instants.map(show).join(", ");
  return `${show(instants[0] ?? 0)} … ${show(instants.at(-1) ?? 0)} (${instants.length})`;
}

/** `02:30`, with seconds only where there are some. */
function clock(wallMs: number): string {
  const text = new Date(wallMs).toISOString().slice(11, 19);
  return text.endsWith(":00") ? text.slice(0, 5) : text;
}

function localText(wallMs: number | undefined): string | null {
  return toIso(wallMs)?.slice(0, 19) ?? null;
}
