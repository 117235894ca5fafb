// `npm run chaos`: seeds of a chaos, as many as wanted, on a Redis of its own; and the replay of
// one.
//
//   npm run chaos -- --schedules 2000                 seeds 1 to 2000 of each kind, one kind after the other
//   npm run chaos -- --kind steps --schedules 40      kill -9 at each named step of a start
//   npm run chaos -- --kind answers --schedules 30   odd answers of a service, 100 starts a seed, beside a healthy one
//   npm run chaos -- --kind starts --seed 17          only this one, with its story whatever comes out
import { Command, InvalidArgumentError, Option } from "commander";
import { startPrivateRedis } from "../../scripts/redis.mjs";
import { warmUp } from "./replica.ts";
import { runAnswerChaos, tellHealthy } from "./run-answers.ts";
import { runScheduleChaos } from "./run-schedules.ts";
import { type ChaosResult, runSeeds } from "./run-seeds.ts";
import { runStartChaos, runStepChaos } from "./run-starts.ts";
import { unknownShare } from "./unknown-share.ts";

interface Options {
  readonly kind?: Kind;
  readonly schedules: number;
  readonly first: number;
  readonly seed?: number;
  readonly sideBySide: number;
}

const runs = { schedules: runScheduleChaos, starts: runStartChaos, steps: runStepChaos, answers: runAnswerChaos };
type Kind = keyof typeof runs;
const allKinds = ["schedules", "starts", "steps", "answers"] as const satisfies readonly Kind[];

const program = new Command("npm run chaos --")
  .description(
    "Lets processes, Redis and the service fail in every seeded way, and holds the outcomes against what really happened.",
  )
  .addOption(new Option("--kind <kind>", "only this kind of chaos").choices(allKinds))
  .option("--schedules <count>", "how many seeds of each kind", wholeNumber, 200)
  .option("--first <seed>", "the first of them", wholeNumber, 1)
  .option("--seed <seed>", "only this one, with its story whatever comes out", wholeNumber)
  .option("--side-by-side <count>", "how many storms at a time", wholeNumber, 4)
  .addHelpText("after", "\nExits with 1 when anything was found, with 2 on wrong use. Progress goes to standard error.")
  // 1 says that something was found.
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2))
  .parse();
const { kind: onlyKind, schedules, first: firstGiven, seed: onlySeed, sideBySide } = program.opts<Options>();
const kinds = allKinds.filter((kind) => onlyKind === undefined || onlyKind === kind);
const first = onlySeed ?? firstGiven;
const count = onlySeed === undefined ? schedules : 1;

function wholeNumber(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError("It must be a whole number from 1.");
  return Number(text);
}

/** A seed that takes longer waits for something that nobody meant it to wait for. */
const slowMs = 30_000;

/** After so many seeds it says how far it is. */
const tellEvery = 100;

const say = (line: string) => process.stdout.write(`${line}\n`);
const notifier = (kind: Kind) => {
  let done = 0;
  return ({ seed, findings, story }: ChaosResult, tookMs: number) => {
    done += 1;
    if (done % tellEvery === 0 && done < count) process.stderr.write(`${kind}: ${done} of ${count}\n`);
    if (tookMs > slowMs) say(`seed ${seed} took ${Math.round(tookMs / 1_000)} s`);
    if (findings.length === 0 && onlySeed === undefined) return;
    for (const line of story()) say(line);
    say(`seed ${seed}: ${findings.length} findings; again: npm run chaos -- --kind ${kind} --seed ${seed}`);
    for (const finding of findings.slice(0, 20)) say(`  ${finding}`);
  };
};

// Ended by hand, it takes its replicas with it, also those that are stopped.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));
const redis = await startPrivateRedis();
try {
  await warmUp();
  const seeds = Array.from({ length: count }, (_, index) => first + index);
  for (const kind of kinds) {
    const startedAtMs = performance.now();
    const common = { seeds, redisUrl: redis.url, sideBySide };
    const { failed, counts } = await runSeeds({ ...common, runSeed: runs[kind], onResult: notifier(kind) });
    const took = Math.round((performance.now() - startedAtMs) / 1_000);
    const sums = Object.entries(counts).map(([name, sum]) => `${sum} ${name}`);
    const ill = failed.map((seed) => ` ${seed}`);
    say(`${count} schedules of ${kind} in ${took} s: ${sums.join(", ")}; ${failed.length} failed${ill}`);
    if (kind === "answers") say(`  ${tellHealthy()}`);
    if (counts["tasks under crash"]) say(`  ${unknownShare(counts)}`);
    if (failed.length > 0) process.exitCode = 1;
  }
} finally {
  await redis.stop();
}
