// `syncline plan`: when each policy comes due next, in its own zone and in UTC, and with --dst on which dates of the next
// 12 months a clock change affects it. Needs no Redis and no service.
import { Command } from "commander";
import type { Policy } from "../config/policy-set.ts";
import { systemClock } from "../core/clock.ts";
import { formatDuration } from "../core/duration.ts";
import { UsageError } from "../core/errors.ts";
import type { DstDay } from "../schedule/dst-days.ts";
import { createSlotSource } from "../schedule/slots.ts";
import type { CommandIo } from "./command-io.ts";
import { comingDstDays, dstDaysToJson, dstDaysToText } from "./plan-dst.ts";
import { configOption, countArgument, loadPoliciesOrThrow } from "./shared-options.ts";
import { showInstant, toTable } from "./table.ts";

interface PlanOptions {
  readonly config: string;
  readonly count: number;
  readonly policy?: string;
  readonly from?: string;
  readonly dst?: true;
  readonly json?: true;
}

/** Makes the command. */
export function planCommand(io: CommandIo): Command {
  return new Command("plan")
    .description("the next slots of each policy")
    .addOption(configOption())
    .option("-n, --count <count>", "how many slots per policy", countArgument(1_000), 3)
    .option("--policy <name>", "only this policy")
    .option("--from <instant>", "plan as of this instant, e.g. 2026-12-01T00:00:00Z (default: now)")
    .option("--dst", "also every date of the next 12 months on which a clock change affects a slot")
    .option("--json", "print a JSON array")
    .addHelpText(
      "after",
      "\nExamples:\n  $ syncline plan --config policies/\n  $ syncline plan --config policies/ --policy contracts-nightly --count 20\n  $ syncline plan --config policies/ --dst",
    )
    .action(async (options: PlanOptions) => {
      const set = await loadPoliciesOrThrow(options.config, io);
      const policies = set.policies.filter(({ name }) => options.policy === undefined || name === options.policy);
      if (policies.length === 0 && options.policy !== undefined)
        throw new UsageError(`there is no policy ${options.policy}`);
      const fromMs = options.from === undefined ? systemClock.nowMs() : Date.parse(options.from);
      if (Number.isNaN(fromMs))
        throw new UsageError(`--from ${options.from} is not an instant: write it like 2026-12-01T00:00:00Z`);
      const plans = policies.map((policy) => ({
        policy,
        slots: nextSlots(policy, fromMs, options.count),
        ...(options.dst ? { dstDays: comingDstDays(policy, fromMs) } : {}),
      }));
      io.out(options.json ? JSON.stringify(plans.map(toJson)) : toText(plans, io.colours));
    });
}

interface PolicyPlan {
  readonly policy: Policy;
  readonly slots: readonly number[];
  readonly dstDays?: readonly DstDay[];
}

function nextSlots(policy: Policy, fromMs: number, count: number): number[] {
  const source = createSlotSource(policy);
  const slots: number[] = [];
  let slot = source?.next(fromMs);
  while (slot !== undefined && slots.length < count) {
    slots.push(slot);
    slot = source?.next(slot);
  }
  return slots;
}

function toJson({ policy, slots, dstDays }: PolicyPlan): object {
  return {
    policy: policy.name,
    kind: policy.action.kind,
    service: policy.service,
    repository: policy.repository ?? null,
    timezone: zoneOf(policy),
    ...(policy.after === undefined ? {} : { after: afterToJson(policy.after) }),
    slots: slots.map((slotMs) => new Date(slotMs).toISOString()),
    ...(dstDays === undefined ? {} : { dstDays: dstDaysToJson(dstDays) }),
  };
}

function afterToJson({ policy, on, withinMs }: NonNullable<Policy["after"]>): object {
  return { policy, on, withinMs };
}

function toText(plans: readonly PolicyPlan[], colours: boolean): string {
  const rows = plans.flatMap(({ policy, slots }) => {
    if (slots.length === 0) return [[policy.name, policy.action.kind, whenElse(policy), ""]];
    return slots.map((slotMs, index) => [
      index === 0 ? policy.name : "",
      index === 0 ? policy.action.kind : "",
      showInstant(slotMs, zoneOf(policy)),
      showInstant(slotMs),
    ]);
  });
  const slots = toTable(["policy", "kind", "local", "utc"], rows, colours);
  const affected = plans.flatMap(({ policy, dstDays }) => (dstDays === undefined ? [] : [{ policy, dstDays }]));
  return affected.length === 0 ? slots : `${slots}\n\n${dstDaysToText(affected, colours)}`;
}

/** When a policy without a schedule starts. */
function whenElse({ after }: Policy): string {
  if (after === undefined) return "only by hand";
  return `after ${after.policy} (${after.on.join(", ")}), within ${formatDuration(after.withinMs)} of its slot`;
}

function zoneOf({ schedule }: Policy): string {
  return schedule?.kind === "cron" ? schedule.timezone : "UTC";
}
