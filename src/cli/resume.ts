// `syncline resume`: ends a pause. Skipped slots stay skipped; --catch-up starts the newest of them
// now.
import { Command } from "commander";
import type { Policy, PolicySet } from "../config/policy-set.ts";
import { UsageError } from "../core/errors.ts";
import { silentLog } from "../core/event-log.ts";
import { isAbout, isInForce, type Pause, type PauseSubject } from "../model/pause.ts";
import { Producer } from "../queue/producer.ts";
import { newestPaused } from "../schedule/plan-slots.ts";
import { tasksOf, toCaughtUp } from "../schedule/slot-tasks.ts";
import { Pauses } from "../store/pauses.ts";
import { Quarantines } from "../store/quarantines.ts";
import { openStore, type RedisTarget, readPresence, redisTimeMs, type Store } from "../store/redis.ts";
import { SlotLedger } from "../store/slot-ledger.ts";
import type { CommandIo } from "./command-io.ts";
import { showUntil } from "./pause.ts";
import {
  checkSubject,
  currentActor,
  type SubjectOptions,
  showSubject,
  subjectOf,
  withSubjectOptions,
} from "./pause-subject.ts";
import { recordChange } from "./record-change.ts";
import { tellMissingRoles } from "./service-words.ts";
import { loadPoliciesOrThrow, type RedisOptions, redisTarget } from "./shared-options.ts";
import { showInstant } from "./table.ts";

interface ResumeOptions extends RedisOptions, SubjectOptions {
  readonly catchUp?: true;
  readonly json?: true;
}

const help = `
Ends the pause, or the quarantine, of exactly that policy, that service, or the one of all. The slots in between stay skipped. With --catch-up a
policy is queued once now, for the newest slot that the pause skipped, if that lies within its catch-up window.

Examples:
  $ syncline resume contracts-nightly
  $ syncline resume --service main --catch-up --config policies/`;

/** The command `resume`. */
export function resumeCommand(io: CommandIo): Command {
  return withSubjectOptions(new Command("resume").description("end a pause, or the quarantine of a policy"))
    .argument("[policy]", "its name")
    .option("--catch-up", "queue what the pause skipped last; needs --config")
    .option("--json", "print JSON")
    .addHelpText("after", help)
    .action(async (policy: string | undefined, options: ResumeOptions) => {
      const subject = subjectOf(policy, options);
      if (options.catchUp && options.config === undefined)
        throw new UsageError("--catch-up starts policies, so it needs them: --config PATH");
      const set = options.config === undefined ? undefined : await loadPoliciesOrThrow(options.config, io);
      const redis = redisTarget(options, io);
      const store = await openStore(redis);
      try {
        await checkSubject(subject, { set, ledger: new SlotLedger(store) });
        await resume(subject, { set, redis, store, options, io });
      } finally {
        await store.close();
      }
    });
}

interface ResumeContext {
  readonly set: PolicySet | undefined;
  readonly redis: RedisTarget;
  readonly store: Store;
  readonly options: ResumeOptions;
  readonly io: CommandIo;
}

interface CaughtUp {
  readonly policy: string;
  readonly slotMs: number;
  readonly tasks: readonly string[];
}

async function resume(subject: PauseSubject, context: ResumeContext): Promise<void> {
  const { set, store, options, io } = context;
  const pauses = new Pauses(store);
  const quarantines = new Quarantines(store);
  const released = subject.scope === "policy" ? await quarantines.release(subject.name, currentActor()) : undefined;
  const ended = [...(await pauses.end(subject, currentActor())), ...(released === undefined ? [] : [released])];
  const nowMs = await redisTimeMs(store);
  const others = [...(await pauses.all()), ...(await quarantines.all())].filter((pause) => isInForce(pause, nowMs));
  const resumed = (set?.policies ?? []).filter(
    (policy) => isAbout(subject, policy) && !others.some((pause) => isAbout(pause, policy)),
  );
  const caughtUp = options.catchUp && ended.length > 0 ? await catchUp(resumed, context, nowMs) : [];
  if (ended.length > 0) {
    const done = { what: "resume", subject: showSubject(subject), reason: null, before: ended, after: { caughtUp } };
    await recordChange(store, io, done);
  }
  if (options.json) {
    io.out(JSON.stringify({ ended, caughtUp, stillPaused: others }));
    return;
  }
  io.out(ended.length === 0 ? `${showSubject(subject)}: not paused` : `${showSubject(subject)} resumed`);
  for (const { policy, slotMs, tasks } of caughtUp)
    io.out(`${policy}: queued for its slot ${showInstant(slotMs)}: ${tasks.join(", ")}`);
  if (options.catchUp && ended.length > 0 && caughtUp.length === 0)
    io.err("nothing to catch up inside the catch-up window");
  if (ended.length > 0) for (const line of tellMissingRoles(await readPresence(store))) io.err(line);
  for (const pause of others.filter((one) => mayCover(one, subject)))
    io.err(
      `still ${pause.cause === undefined ? "paused" : "in quarantine"}: ${showSubject(pause)} ${showUntil(pause)}: ${pause.note} (${pause.actor})`,
    );
}

async function catchUp(
  policies: readonly Policy[],
  { redis, store, io }: ResumeContext,
  nowMs: number,
): Promise<CaughtUp[]> {
  const ledger = new SlotLedger(store);
  const producer = new Producer(redis, silentLog);
  const caughtUp: CaughtUp[] = [];
  try {
    for (const policy of policies) {
      if (io.signal.aborted) break;
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
  } finally {
    await producer.close();
  }
  return caughtUp;
}

/**
 * Whether a pause may cover some of the subject. The service of a policy is not always known here.
 */
function mayCover(pause: Pause, subject: PauseSubject): boolean {
  return pause.scope !== "policy" || subject.scope !== "policy";
}
