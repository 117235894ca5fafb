// `syncline pause`: the scheduler skips the slots of a policy, of a service or of all, with a note
// that says why.
import { Command, InvalidArgumentError } from "commander";
import { durationPattern, parseDuration } from "../core/duration.ts";
import { UsageError } from "../core/errors.ts";
import { isInForce, noteCharactersMax, type Pause } from "../model/pause.ts";
import { Pauses, pausesMax } from "../store/pauses.ts";
import { Quarantines } from "../store/quarantines.ts";
import { openStore, redisTimeMs, type Store } from "../store/redis.ts";
import { SlotLedger } from "../store/slot-ledger.ts";
import type { CommandIo } from "./command-io.ts";
import {
  checkSubject,
  currentActor,
  type SubjectOptions,
  showSubject,
  subjectOf,
  withSubjectOptions,
} from "./pause-subject.ts";
import { recordChange } from "./record-change.ts";
import { loadPoliciesOrThrow, parseInstant, type RedisOptions, redisTarget, refuseIdle } from "./shared-options.ts";
import { showInstant, toTable } from "./table.ts";

type Until = { readonly kind: "instant" | "duration"; readonly ms: number };

interface PauseOptions extends RedisOptions, SubjectOptions {
  readonly note?: string;
  readonly until?: Until;
  readonly list?: true;
  readonly json?: true;
}

const help = `
A slot that comes due while its policy is paused ends as skipped (paused), with the note, and is not caught up. Tasks that
are queued or running go on. The pause ends with \`syncline resume\`, or by itself at --until.

Examples:
  $ syncline pause contracts-nightly --note "migration of HR" --until 4h
  $ syncline pause --service main --note "release 14" --until 2026-12-01T06:00:00+01:00
  $ syncline pause --list`;

/** The command `pause`. */
export function pauseCommand(io: CommandIo): Command {
  return withSubjectOptions(
    new Command("pause").description("skip the slots of a policy, a service or all from now on"),
  )
    .argument("[policy]", "its name")
    .option("--note <text>", "why; stands in the record of every skipped slot", noteArgument)
    .option("--until <when>", "when it ends by itself: an instant, or a duration such as 4h", untilArgument)
    .option("--list", "print what is paused, and change nothing")
    .option("--json", "print JSON")
    .addHelpText("after", help)
    .action(async (policy: string | undefined, options: PauseOptions, chosen: Command) => {
      if (options.list) {
        refuseIdle(chosen, ["service", "all", "note", "until"], "with --list");
        if (policy !== undefined)
          throw new UsageError("--list shows what is paused, of all policies: leave the name out");
        return listPauses(options, io);
      }
      const subject = subjectOf(policy, options);
      if (options.note === undefined)
        throw new UsageError("--note is required: say why, for the people who find the slots skipped");
      const set = options.config === undefined ? undefined : await loadPoliciesOrThrow(options.config, io);
      await withStore({ options, io }, async (store) => {
        await checkSubject(subject, { set, ledger: new SlotLedger(store) });
        const nowMs = await redisTimeMs(store);
        const untilMs = toInstant(options.until, nowMs);
        const wish = { ...subject, note: options.note ?? "", actor: currentActor(), untilMs };
        const pauses = new Pauses(store);
        const before = (await pauses.all()).filter(
          (one) => isInForce(one, nowMs) && showSubject(one) === showSubject(subject),
        );
        const pause = await pauses.set(wish);
        if (pause === undefined)
          throw new UsageError(`${pausesMax} pauses are in force, which is the most: pause a service, or all`);
        const done = { what: "pause", subject: showSubject(pause), reason: pause.note, before, after: pause };
        await recordChange(store, io, done);
        io.out(
          options.json ? JSON.stringify(pause) : `${showSubject(pause)} paused ${showUntil(pause)}: ${pause.note}`,
        );
      });
    });
}

/** `until 2026-11-21 10:00:00Z`, or what else ends it. */
export function showUntil({ untilMs }: Pick<Pause, "untilMs">): string {
  return untilMs === null ? "until it is resumed" : `until ${showInstant(untilMs)}`;
}

async function listPauses(options: PauseOptions, io: CommandIo): Promise<void> {
  await withStore({ options, io }, async (store) => {
    const nowMs = await redisTimeMs(store);
    const inForce = [...(await new Pauses(store).all()), ...(await new Quarantines(store).all())]
      .filter((pause) => isInForce(pause, nowMs))
      .sort((a, b) => a.sinceMs - b.sinceMs);
    if (options.json) io.out(JSON.stringify(inForce));
    else if (inForce.length === 0) io.err("nothing is paused");
    else {
      const rows = inForce.map((pause) => [
        pause.cause === undefined ? showSubject(pause) : `${showSubject(pause)} (${pause.cause})`,
        showInstant(pause.sinceMs),
        pause.untilMs === null ? "resumed" : showInstant(pause.untilMs),
        pause.actor,
        pause.note,
      ]);
      io.out(toTable(["paused", "since", "until", "by", "note"], rows, io.colours));
    }
  });
}

async function withStore(
  { options, io }: { options: RedisOptions; io: CommandIo },
  use: (store: Store) => Promise<void>,
): Promise<void> {
  const store = await openStore(redisTarget(options, io));
  try {
    await use(store);
  } finally {
    await store.close();
  }
}

function toInstant(until: Until | undefined, nowMs: number): number | null {
  if (until === undefined) return null;
  const untilMs = until.kind === "duration" ? nowMs + until.ms : until.ms;
  if (untilMs <= nowMs) throw new UsageError("--until has passed already");
  return untilMs;
}

function untilArgument(text: string): Until {
  // Accepts a leading plus, as other commands do.
  const duration = text.replace(/^\+/, "");
  if (durationPattern.test(duration)) return { kind: "duration", ms: parseDuration(duration) };
  const ms = parseInstant(text);
  if (ms === undefined)
    throw new InvalidArgumentError("write a duration such as 4h, or an instant such as 2026-12-01T06:00:00Z");
  return { kind: "instant", ms };
}

function noteArgument(text: string): string {
  if (text.trim() === "" || text.length > noteCharactersMax)
    throw new InvalidArgumentError(`write 1 to ${noteCharactersMax} characters`);
  return text;
}
