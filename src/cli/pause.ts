// `syncline pause` and `resume`: the scheduler skips the slots of a policy, a service, a label or
// all. Slots skipped meanwhile stay skipped; `resume --catch-up` starts the newest of them.
import type { Command } from "commander";
import { pause, type ResumeResult, resume } from "../actions/pause.ts";
import type { PolicySet } from "../config/policy-set.ts";
import { UsageError } from "../core/errors.ts";
import { showBoth, showInstant } from "../core/instant.ts";
import { counted, someNames } from "../core/plain-text.ts";
import { selectorOf } from "../model/label.ts";
import { isAbout, isInForce, noteCharactersMax, type Pause, type PauseSubject, showSubject } from "../model/pause.ts";
import { findRunningSet } from "../queries/policy-set.ts";
import { describeMissingRoles } from "../queries/service-words.ts";
import { readPauses } from "../store/pauses.ts";
import { readPresence, redisTimeMs, type Store } from "../store/redis.ts";
import { byHand } from "./changes.ts";
import type { CommandIo, Screen } from "./command-io.ts";
import {
  labelOption,
  optionalConfigOption,
  policySetFor,
  type ReasonOption,
  type RedisOptions,
  reasonOption,
  redisCommand,
  redisTarget,
  refuseIgnoredOptions,
  withProducer,
  withStore,
} from "./shared-options.ts";
import { toTable, wideOption } from "./table.ts";
import { parseTime, timeForms, timezoneFor } from "./time-argument.ts";

/** The options that name a subject, apart from the policy's name. */
export interface SubjectOptions extends RedisOptions, ReasonOption {
  readonly service?: string;
  readonly label: readonly string[];
  readonly all?: true;
  readonly config?: string;
}

interface PauseOptions extends SubjectOptions {
  readonly until?: string;
  readonly list?: true;
}

const help = `
A slot that comes due while its policy is paused ends as skipped (paused), with the reason, and is not caught up. What came due before it goes on: tasks that are queued or running, and a late slot that is caught up. The pause ends with \`syncline resume\`, or by itself at --until: ${timeForms}.

Examples:
  $ syncline pause contracts-nightly --reason "migration of HR" --until 4h
  $ syncline pause contracts-nightly --reason "until the night shift" --until 22:00
  $ syncline pause --service main --reason "release 14" --until 2026-12-01T06:00:00+01:00
  $ syncline pause --label team=hr --reason "move of the file server" --until 06:00
  $ syncline pause --list`;

/** The command `pause`. */
export function pauseCommand(io: CommandIo): Command {
  return subjectCommand("pause")
    .description("skip the slots of a policy, a service, a label or all from now on")
    .addOption(reasonOption("why; stands in the record of every skipped slot", noteCharactersMax))
    .option("--until <when>", "when it ends by itself: 4h, 06:00 or another time, in the policy's zone")
    .option("--list", "print what is paused, and change nothing")
    .option("--json", "print JSON")
    .addOption(wideOption())
    .addHelpText("after", help)
    .action(async (policy: string | undefined, options: PauseOptions, chosen: Command) => {
      if (options.list) {
        refuseIgnoredOptions(chosen, ["service", "label", "all", "reason", "until"], "with --list");
        if (policy !== undefined)
          throw new UsageError("--list shows what is paused, of all policies: leave the name out");
        const pauses = await withStore(redisTarget(options, io), readInForce);
        if (options.json) io.out(JSON.stringify(pauses));
        else if (pauses.length === 0) io.err("nothing is paused");
        else io.out(pausesTable(pauses, io));
        return;
      }
      const subject = subjectOf(policy, options);
      if (options.reason === undefined)
        throw new UsageError("--reason is required: say why, for the people who find the slots skipped");
      await withSubject(options, io, async (store, set) => {
        const known = set ?? (await findRunningSet(store))?.set;
        const policies = known?.policies.filter((one) => isAbout(subject, one));
        const timezone = timezoneFor(undefined, policies);
        const now = { nowMs: await redisTimeMs(store), timezone, side: "future" } as const;
        const untilMs = options.until === undefined ? null : parseTime(options.until, "--until", now);
        const paused = await pause(subject, untilMs, { store, set, by: byHand(io, options) });
        if (options.json) return io.out(JSON.stringify(paused));
        io.out(`${showSubject(paused)} paused ${showUntil(paused, timezone)}: ${paused.note}`);
        if (subject.scope !== "label" || policies === undefined) return;
        const names = someNames(policies.map(({ name }) => name));
        io.out(
          `${counted(policies.length, "policy", "policies")} now: ${names}. One that gets the label later is paused, too`,
        );
      });
    });
}

async function readInForce(store: Store): Promise<readonly Pause[]> {
  const nowMs = await redisTimeMs(store);
  return (await readPauses(store)).filter((pause) => isInForce(pause, nowMs)).sort((a, b) => a.sinceMs - b.sinceMs);
}

function pausesTable(pauses: readonly Pause[], screen: Screen): string {
  const rows = pauses.map((pause) => [
    pause.cause === undefined ? showSubject(pause) : `${showSubject(pause)} (${pause.cause})`,
    showInstant(pause.sinceMs),
    pause.untilMs === null ? "resumed" : showInstant(pause.untilMs),
    pause.actor,
    pause.note,
  ]);
  return toTable(["paused", "since", "until", "by", "reason"], rows, screen, { leaveOut: ["since"] });
}

/** A command about one policy, one service, one label, or all. */
export function subjectCommand(name: string): Command {
  return redisCommand(name)
    .argument("[policy]", "its name")
    .option("--service <name>", "every policy of this service")
    .addOption(labelOption("every policy with this label, also one that gets it later; all of several must match"))
    .option("--all", "every policy")
    .addOption(optionalConfigOption("policy file or folder that has the name"));
}

/** The one subject that was named. @throws UsageError when there is none, or more than one. */
export function subjectOf(policy: string | undefined, { service, label, all }: SubjectOptions): PauseSubject {
  const subjects: PauseSubject[] = [];
  if (policy !== undefined) subjects.push({ scope: "policy", name: policy });
  if (service !== undefined) subjects.push({ scope: "service", name: service });
  if (label.length > 0) subjects.push({ scope: "label", name: selectorOf(label) });
  if (all === true) subjects.push({ scope: "all", name: "" });
  const [subject] = subjects;
  if (subject === undefined) throw new UsageError("name one of POLICY, --service NAME, --label NAME=VALUE and --all");
  if (subjects.length > 1)
    throw new UsageError(
      `${subjects.map(({ scope, name }) => (scope === "policy" ? name : `--${scope}`)).join(" and ")} are given: leave all but one out`,
    );
  return subject;
}

/** Runs `use` with Redis and the policies, if given. */
export async function withSubject(
  options: SubjectOptions,
  io: CommandIo,
  use: (store: Store, set: PolicySet | undefined) => Promise<void>,
): Promise<void> {
  await withStore(redisTarget(options, io), async (store) => {
    // Only policies say who has a label.
    const needsSet = options.config !== undefined || options.label.length > 0;
    if (needsSet) return use(store, await policySetFor(options, store, io));
    // The set that runs knows its services, as schedulers know their policies.
    return use(store, options.service === undefined ? undefined : (await findRunningSet(store))?.set);
  });
}

/** `until 2026-11-21 10:00:00Z`, or what else ends it. */
export function showUntil({ untilMs }: Pick<Pause, "untilMs">, timezone = "UTC"): string {
  return untilMs === null ? "until it is resumed" : `until ${showBoth(untilMs, timezone)}`;
}

interface ResumeOptions extends SubjectOptions {
  readonly catchUp?: true;
}

const resumeHelp = `
Ends the pause, or the quarantine, of exactly that policy, service or label, or the one of all. The slots in between stay skipped. With --catch-up a policy is queued once now, for the newest slot that the pause skipped, if that lies within its catch-up window.

Examples:
  $ syncline resume contracts-nightly
  $ syncline resume --service main --catch-up`;

/** The command `resume`. */
export function resumeCommand(io: CommandIo): Command {
  return subjectCommand("resume")
    .description("end a pause, or the quarantine of a policy")
    .option("--catch-up", "queue what the pause skipped last")
    .addOption(reasonOption())
    .option("--json", "print JSON")
    .addHelpText("after", resumeHelp)
    .action(async (policy: string | undefined, options: ResumeOptions) => {
      const subject = subjectOf(policy, options);
      await withSubject(options, io, async (store, set) => {
        const parts = { store, set, by: byHand(io, options) };
        const policies = options.catchUp ? (set ?? (await policySetFor(options, store, io))).policies : [];
        const resumed = await withProducer(redisTarget(options, io), (producer) => {
          const wish = options.catchUp ? { policies, producer, signal: io.signal } : undefined;
          return resume(subject, wish, parts);
        });
        const { left, ...done } = resumed;
        if (left.length > 0) {
          // All of them: the same command again finds no pause, and names none.
          const names = left.join(", ");
          io.err(
            `not caught up: stopped, Redis did not answer, or no scheduler has recorded the last slot yet: ${names}`,
          );
          io.err("run by hand those whose last slot the pause skipped: `syncline explain POLICY` tells");
          io.exitCode = 1;
        }
        if (options.json) return io.out(JSON.stringify({ v: 1, ...done, left }));
        show(subject, { ...resumed, isCatchingUp: options.catchUp === true }, io);
        if (resumed.ended.length > 0) for (const line of describeMissingRoles(await readPresence(store))) io.err(line);
      });
    });
}

function show(
  subject: PauseSubject,
  { ended, caughtUp, left, stillPaused, isCatchingUp }: ResumeResult & { readonly isCatchingUp: boolean },
  io: CommandIo,
): void {
  io.out(ended.length === 0 ? `${showSubject(subject)}: not paused now` : `${showSubject(subject)} resumed`);
  for (const { policy, slotMs, tasks } of caughtUp)
    io.out(`${policy}: queued for its slot ${showInstant(slotMs)}: ${tasks.join(", ")}`);
  if (isCatchingUp && caughtUp.length === 0 && left.length === 0)
    io.err(
      ended.length === 0
        ? "nothing is caught up: only the resume that ends a pause does so; `syncline explain POLICY` tells what it skipped"
        : "nothing to catch up inside the catch-up window, or something has started since",
    );
  // After a resume of one policy, pauses of other policies are left out. Those of services, labels
  // and all are told: whether they cover this policy is not always known here.
  for (const pause of stillPaused.filter(({ scope }) => scope !== "policy" || subject.scope !== "policy"))
    io.err(
      `still ${pause.cause === undefined ? "paused" : "in quarantine"}: ${showSubject(pause)} ${showUntil(pause)}: ${pause.note} (${pause.actor})`,
    );
}
