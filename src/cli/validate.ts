// `syncline validate PATH…`: reports everything that is wrong with policy files, and warns of
// likely mistakes. Each path is a set of its own, as `syncline serve PATH` would load it. Starts
// nothing.
import { Command } from "commander";
import type { EventCalendar, Policy, PolicySet } from "../config/policy-set.ts";
import { formatProblem, type Problem } from "../config/problem.ts";
import { systemClock } from "../core/clock.ts";
import { formatDuration } from "../core/duration.ts";
import { UsageError } from "../core/errors.ts";
import { counted } from "../core/plain-text.ts";
import { latenessMaxMs } from "../schedule/plan-slots.ts";
import { createSlotSource } from "../schedule/slots.ts";
import type { CommandIo } from "./command-io.ts";
import { configVariable, loadPoliciesOf } from "./shared-options.ts";

/** A fixed "now", so that the same file gives the same warnings every day. */
const judgedFromMs = Date.UTC(2026, 0, 1);

const slotsLookedAtMax = 400;

/** The command `validate`. Exit code 2 when anything is wrong; warnings do not change it. */
export function validateCommand(io: CommandIo): Command {
  return new Command("validate")
    .argument(
      "[path...]",
      `policy files, or folders of *.yaml and *.yml files, each a set of its own; default: ${configVariable}`,
    )
    .option("--json", "print one JSON object")
    .action(async (named: string[], options: { readonly json?: boolean }) => {
      const paths = named.length > 0 ? named : [io.settings.variables[configVariable] ?? ""];
      if (paths[0] === "") throw new UsageError(`name a policy file or a folder, or set ${configVariable}`);
      const totals = await validateAll(paths, io);
      if (totals.problems.length > 0) io.exitCode = 2;
      if (options.json) printJson(totals, io);
      else printText(totals, io);
      if (paths.length > 1)
        io.err("each path was checked as a set of its own: name their folder to check them together, as serve does");
    });
}

type Totals = Awaited<ReturnType<typeof validateAll>>;

/** All problems, and the warnings of the paths without problems. */
async function validateAll(paths: readonly string[], io: CommandIo) {
  const problems: Problem[] = [];
  const warnings: PolicyWarning[] = [];
  const files = new Set<string>();
  let [policies, services] = [0, 0];
  for (const path of paths) {
    const loaded = await loadPoliciesOf(path, io);
    for (const file of loaded.ok ? loaded.set.files : loaded.files) files.add(file);
    if (loaded.ok) {
      policies += loaded.set.policies.length;
      services += loaded.set.services.size;
      warnings.push(...findWarnings(loaded.set, systemClock.nowMs()));
    } else problems.push(...loaded.problems);
  }
  return { problems, warnings, policies, services, files: files.size };
}

function printText({ problems, warnings, policies, services, files }: Totals, io: CommandIo): void {
  for (const { file, line, policy, message, hint } of warnings)
    io.out(`${file}:${line}: warning: ${policy}: ${message}\n  hint: ${hint}`);
  for (const problem of problems) io.out(formatProblem(problem, io.colours));
  const inFiles = `in ${counted(files, "file")}`;
  const warned = warnings.length === 0 ? "" : `, ${counted(warnings.length, "warning")}`;
  const found = `${counted(policies, "policy", "policies")}, ${counted(services, "service")}`;
  io.out(
    problems.length > 0
      ? `${counted(problems.length, "problem")}${warned} ${inFiles}`
      : `OK${warned}: ${found} ${inFiles}`,
  );
}

function printJson({ problems, warnings }: Totals, io: CommandIo): void {
  const listed = problems.map(({ file, line, column, message, hint }) => ({ file, line, column, message, hint }));
  io.out(JSON.stringify({ v: 1, ok: problems.length === 0, problems: listed, warnings }, undefined, 2));
}

/** A warning about one policy. `line`: where the policy begins, 1-based. */
interface PolicyWarning {
  readonly file: string;
  readonly line: number;
  readonly policy: string;
  readonly message: string;
  readonly hint: string;
}

type Said = Pick<PolicyWarning, "message" | "hint">;

/** Every warning, in the order of the policies. */
function findWarnings({ policies, services }: PolicySet, nowMs: number): PolicyWarning[] {
  const guessed = Map.groupBy(
    policies.filter((policy) => unmapped(policy, services).length > 0),
    ({ service, follow }) => `${service} ${follow.quietForMs}`,
  );
  const guessWarnings = new Map([...guessed.values()].map((alike) => [alike[0], guessWarning(alike, services)]));
  const users = policies.flatMap(({ closed, ...policy }) =>
    (closed.calendars ?? []).map((one) => ({ ...one, policy })),
  );
  const lastWarnings = new Map(
    [...Map.groupBy(users, ({ calendar }) => calendar)].map(([calendar, [first]]) => [
      first?.policy.name,
      lastEventWarning(calendar, nowMs),
    ]),
  );
  return policies.flatMap((policy) =>
    [
      ...[catchUpWarning(policy), onceWarning(policy, nowMs), guessWarnings.get(policy)],
      lastWarnings.get(policy.name),
    ].flatMap((found) => (found === undefined ? [] : [{ ...policy.where, policy: policy.name, ...found }])),
  );
}

/** Tells of a calendar that closes nothing any more: public ones end with a year. */
export function lastEventWarning({ name, events }: EventCalendar, nowMs: number): Said | undefined {
  const last = events.reduce((latest, { to }) => (to > latest ? to : latest), "");
  if (last > new Date(nowMs).toISOString().slice(0, 10)) return undefined;
  return {
    message: last === "" ? `calendar ${name} has no event` : `the last event of calendar ${name} ended ${last}`,
    hint: "put a newer file in its place: nothing is skipped by this one",
  };
}

/** What the mapping does not say of how the runs of a policy end; empty: all that is needed. */
function unmapped({ action, follow, service }: Policy, services: PolicySet["services"]): readonly string[] {
  if (action.kind !== "run" || follow.until !== "settled") return [];
  const activity = services.get(service)?.mapping.activities;
  const ends = (["id", "syncJobId", "finished"] as const).filter((field) => activity?.[field] === undefined);
  return ends.length > 0 || activity?.succeeded !== undefined ? ends : ["succeeded"];
}

/** One warning for all policies of a service with this quiet time. */
function guessWarning([policy, ...more]: readonly Policy[], services: PolicySet["services"]): Said | undefined {
  if (policy === undefined) return undefined;
  const missing = unmapped(policy, services);
  const runs = `its runs${more.length === 0 ? "" : ` (and those of ${more.length} more)`}`;
  const why = `since services.${policy.service}.mapping.activity does not say ${missing.join(", ")}`;
  const propose = "let `syncline discover` propose a mapping";
  if (missing.includes("succeeded"))
    return { message: `${runs} count as succeeded when they finish, ${why}`, hint: propose };
  const quietFor = formatDuration(policy.follow.quietForMs);
  return {
    message: `${runs} settle only when the activities grew and then stayed quiet for ${quietFor}, ${why}`,
    hint: `${propose}, or set follow.quietFor to more than the pauses of a run at work`,
  };
}

/** A time before the scheduler first sees the policy is not caught up. */
function onceWarning(policy: Policy, nowMs: number): Said | undefined {
  const { schedule } = policy;
  if (schedule?.kind !== "once") return undefined;
  const slotMs = createSlotSource(policy)?.next(Number.MIN_SAFE_INTEGER);
  const { at, timezone } = schedule;
  if (slotMs === undefined)
    return {
      message: `schedule.once is never due: clocks in ${timezone} leave ${at} out, and dst.gap is skip`,
      hint: "name a time that the clocks show, or set dst.gap: next",
    };
  if (slotMs > nowMs) return undefined;
  return {
    message: `schedule.once is over: ${at} in ${timezone} was ${new Date(slotMs).toISOString()}; a policy that is new now never starts by it`,
    hint: "name a later time, or start it by hand with `syncline run`; a policy that has done its work can be removed",
  };
}

function catchUpWarning(policy: Policy): Said | undefined {
  const { catchUp, overlap, action, schedule } = policy;
  if (catchUp !== "all" || schedule === undefined || schedule.kind === "once") return undefined;
  if (!hasRoomForTwo(policy))
    return {
      message: `catchUp: all starts the newest late slot only, since no two lie inside the ${formatDuration(latenessMaxMs(policy))} in which a late slot starts`,
      hint: "set catchUpWindow to the longest outage that is to be made up for, or leave catchUp out",
    };
  if (overlap !== "skip" || action.kind !== "run") return undefined;
  return {
    message: "catchUp: all starts late slots at the same time, and overlap: skip then skips all but one of them",
    hint: "set overlap: queue to run them one after another, or leave catchUp out to run one for all",
  };
}

/** Whether two late slots can lie inside the catch-up window at the same time. */
function hasRoomForTwo(policy: Policy): boolean {
  const source = createSlotSource(policy);
  let slotMs = source?.next(judgedFromMs);
  for (let looked = 0; looked < slotsLookedAtMax && slotMs !== undefined; looked += 1) {
    const nextMs = source?.next(slotMs);
    // When the newer slot comes due, both are inside if the window is longer than their distance;
    // if equal, it depends on milliseconds.
    if (nextMs !== undefined && nextMs - slotMs < latenessMaxMs(policy)) return true;
    slotMs = nextMs;
  }
  return false;
}
