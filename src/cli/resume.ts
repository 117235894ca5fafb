// `syncline resume`: ends a pause. Skipped slots stay skipped; --catch-up starts the newest of them
// now.
import type { Command } from "commander";
import { type Resumed, resume } from "../actions/pause.ts";
import { showInstant } from "../core/instant.ts";
import { type PauseSubject, showSubject } from "../model/pause.ts";
import { describeMissingRoles } from "../queries/service-words.ts";
import { readPresence } from "../store/redis.ts";
import { byHand } from "./changes.ts";
import type { CommandIo } from "./command-io.ts";
import { withProducer } from "./connections.ts";
import { type SubjectOptions, showUntil, subjectCommand, subjectOf, withSubject } from "./pause.ts";
import { policySetFor, reasonOption, redisTarget } from "./shared-options.ts";

interface ResumeOptions extends SubjectOptions {
  readonly catchUp?: true;
}

const help = `
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
    .addHelpText("after", help)
    .action(async (policy: string | undefined, options: ResumeOptions) => {
      const subject = subjectOf(policy, options);
      await withSubject(options, io, async (store, set) => {
        const parts = { store, set, by: byHand(io, options) };
        const policies = options.catchUp ? (set ?? (await policySetFor(options, store, io))).policies : [];
        const resumed = await withProducer(redisTarget(options, io), (producer) => {
          const wish = options.catchUp ? { policies, producer, signal: io.signal } : undefined;
          return resume(subject, wish, parts);
        });
        if (options.json) {
          const { ended, caughtUp, stillPaused } = resumed;
          io.out(JSON.stringify({ v: 1, ended, caughtUp, stillPaused }));
          return;
        }
        show(subject, { ...resumed, isCatchingUp: options.catchUp === true }, io);
        if (resumed.ended.length > 0) for (const line of describeMissingRoles(await readPresence(store))) io.err(line);
      });
    });
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
