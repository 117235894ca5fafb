// `syncline resume`: ends a pause. Skipped slots stay skipped; --catch-up starts the newest of them
// now.
import type { Command } from "commander";
import type { Policy, PolicySet } from "../config/policy-set.ts";
import { UsageError } from "../core/errors.ts";
import { showInstant } from "../core/instant.ts";
import { isAbout, isInForce, type Pause, type PauseSubject } from "../model/pause.ts";
import { describeMissingRoles } from "../queries/service-words.ts";
import type { Producer } from "../queue/producer.ts";
import { newestPaused } from "../schedule/plan-slots.ts";
import { tasksOf, toCaughtUp } from "../schedule/slot-tasks.ts";
import { Pauses } from "../store/pauses.ts";
import { Quarantines } from "../store/quarantines.ts";
import { readPresence, redisTimeMs, type Store } from "../store/redis.ts";
import { SlotLedger } from "../store/slot-ledger.ts";
import { currentActor, recordChange } from "./changes.ts";
import type { CommandIo } from "./command-io.ts";
import { withProducer } from "./connections.ts";
import { type SubjectOptions, showSubject, showUntil, subjectCommand, subjectOf, withSubject } from "./pause.ts";
import { redisTarget } from "./shared-options.ts";

interface ResumeOptions extends SubjectOptions {
  readonly catchUp?: true;
}

const help = `
Ends the pause, or the quarantine, of exactly that policy, that service, or the one of all. The slots in between stay skipped. With --catch-up a
policy is queued once now, for the newest slot that the pause skipped, if that lies within its catch-up window.

Examples:
  $ syncline resume contracts-nightly
  $ syncline resume --service main --catch-up --config policies/`;

/** The command `resume`. */
export function resumeCommand(io: CommandIo): Command {
  return subjectCommand("resume")
    .description("end a pause, or the quarantine of a policy")
    .option("--catch-up", "queue what the pause skipped last; needs --config")
    .option("--json", "print JSON")
    .addHelpText("after", help)
    .action(async (policy: string | undefined, options: ResumeOptions) => {
      const subject = subjectOf(policy, options);
      if (options.catchUp && options.config === undefined)
        throw new UsageError("--catch-up starts policies, so it needs them: --config PATH");
      await withSubject(subject, options, io, async (store, set) => {
        const resumed = await resume(subject, store, options.catchUp ? set : undefined, options, io);
        if (options.json) {
          const { ended, caughtUp, stillPaused } = resumed;
          io.out(JSON.stringify({ ended, caughtUp, stillPaused }));
          return;
        }
        show(subject, { ...resumed, isCatchingUp: options.catchUp === true }, io);
        if (resumed.ended.length > 0) for (const line of describeMissingRoles(await readPresence(store))) io.err(line);
      });
    });
}

interface CaughtUp {
  readonly policy: string;
  readonly slotMs: number;
  readonly tasks: readonly string[];
}

interface Resumed {
  readonly ended: readonly Pause[];
  readonly caughtUp: readonly CaughtUp[];
  readonly stillPaused: readonly Pause[];
}

/** With policies, those that the pause kept back are caught up. */
async function resume(
  subject: PauseSubject,
  store: Store,
  set: PolicySet | undefined,
  options: ResumeOptions,
  io: CommandIo,
): Promise<Resumed> {
  const pauses = new Pauses(store);
  const quarantines = new Quarantines(store);
  const released = subject.scope === "policy" ? await quarantines.release(subject.name, currentActor()) : undefined;
  const ended = [...(await pauses.end(subject, currentActor())), ...(released === undefined ? [] : [released])];
  const nowMs = await redisTimeMs(store);
  const all = [...(await pauses.all()), ...(await quarantines.all())];
  const stillPaused = all.filter((pause) => isInForce(pause, nowMs));
  if (ended.length === 0) return { ended, caughtUp: [], stillPaused };
  const resumed = (set?.policies ?? []).filter(
    (policy) => isAbout(subject, policy) && !stillPaused.some((pause) => isAbout(pause, policy)),
  );
  const caughtUp = await withProducer(redisTarget(options, io), (producer) =>
    catchUp(resumed, nowMs, new SlotLedger(store), producer, io.signal),
  );
  await recordChange(store, io, { what: "resume", subject: showSubject(subject), before: ended, after: { caughtUp } });
  return { ended, caughtUp, stillPaused };
}

async function catchUp(
  policies: readonly Policy[],
  nowMs: number,
  ledger: SlotLedger,
  producer: Producer,
  signal: AbortSignal,
): Promise<CaughtUp[]> {
  const caughtUp: CaughtUp[] = [];
  for (const policy of policies) {
    if (signal.aborted) break;
    const skipped = newestPaused(policy, (await ledger.holdings(policy.name)).records, nowMs);
    if (skipped === undefined) continue;
    const tasks = tasksOf(policy, { slotMs: skipped.slotMs, origin: "schedule", covers: [] });
    const step = { policy: policy.name, newWatermarkMs: nowMs, tasks };
    const record = toCaughtUp(policy, skipped, `${skipped.note ?? ""}; resumed by ${currentActor()}`);
    if (!(await ledger.startSkipped(policy.name, record, step))) continue;
    await producer.enqueue(tasks);
    await ledger.confirmQueued([step]);
    caughtUp.push({ policy: policy.name, slotMs: skipped.slotMs, tasks: tasks.map(({ id }) => id) });
  }
  return caughtUp;
}

function show(
  subject: PauseSubject,
  { ended, caughtUp, stillPaused, isCatchingUp }: Resumed & { readonly isCatchingUp: boolean },
  io: CommandIo,
): void {
  io.out(ended.length === 0 ? `${showSubject(subject)}: not paused` : `${showSubject(subject)} resumed`);
  for (const { policy, slotMs, tasks } of caughtUp)
    io.out(`${policy}: queued for its slot ${showInstant(slotMs)}: ${tasks.join(", ")}`);
  if (isCatchingUp && ended.length > 0 && caughtUp.length === 0)
    io.err("nothing to catch up inside the catch-up window");
  // The service of a policy is not always known here, so a pause of a service may cover it.
  for (const pause of stillPaused.filter(({ scope }) => scope !== "policy" || subject.scope !== "policy"))
    io.err(
      `still ${pause.cause === undefined ? "paused" : "in quarantine"}: ${showSubject(pause)} ${showUntil(pause)}: ${pause.note} (${pause.actor})`,
    );
}
