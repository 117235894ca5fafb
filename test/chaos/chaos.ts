// `npm run chaos`: seeds of a chaos, as many as wanted, on a Redis of its own; and the replay of one.
//
//   npm run chaos -- --schedules 2000                 seeds 1 to 2000 of each kind, one kind after the other
//   npm run chaos -- --kind steps --schedules 40      kill -9 at each named step of a start
//   npm run chaos -- --kind starts --seed 17          only this one, with its story whatever comes out
import { parseArgs } from "node:util";
import { startPrivateRedis } from "../../scripts/redis.mjs";
import { warmUp } from "./replica.ts";
import { runScheduleChaos } from "./run-schedules.ts";
import { type ChaosResult, runSeeds } from "./run-seeds.ts";
import { runStartChaos, runStepChaos } from "./run-starts.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string" },
    first: { type: "string", default: "1" },
    schedules: { type: "string", default: "200" },
    kind: { type: "string" },
    "side-by-side": { type: "string", default: "8" },
  },
});
const runs = { schedules: runScheduleChaos, starts: runStartChaos, steps: runStepChaos };
const kinds = (["schedules", "starts", "steps"] as const).filter(
  (kind) => values.kind === undefined || values.kind === kind,
);
if (kinds.length === 0) throw new Error('--kind is "schedules", "starts" or "steps"; all without it');
const first = Number(values.seed ?? values.first);
const count = values.seed === undefined ? Number(values.schedules) : 1;
const sideBySide = Number(values["side-by-side"]);
if (![first, count, sideBySide].every((number) => Number.isInteger(number) && number > 0))
  throw new Error("--seed, --first, --schedules and --side-by-side are whole numbers from 1");

/** A seed that takes longer waits for something that nobody meant it to wait for. */
const slowMs = 30_000;

const say = (line: string) => process.stdout.write(`${line}\n`);
const teller =
  (kind: string) =>
  ({ seed, findings, story }: ChaosResult, tookMs: number) => {
    if (tookMs > slowMs) say(`seed ${seed} took ${Math.round(tookMs / 1_000)} s`);
    if (findings.length === 0 && values.seed === undefined) return;
    for (const line of story()) say(line);
    say(`seed ${seed}: ${findings.length} findings; again: npm run chaos -- --kind ${kind} --seed ${seed}`);
    for (const finding of findings.slice(0, 20)) say(`  ${finding}`);
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
    const { failed, counts } = await runSeeds({ ...common, runSeed: runs[kind], onResult: teller(kind) });
    const took = Math.round((performance.now() - startedAtMs) / 1_000);
    const sums = Object.entries(counts).map(([name, sum]) => `${sum} ${name}`);
    const ill = failed.map((seed) => ` ${seed}`);
    say(`${count} schedules of ${kind} in ${took} s: ${sums.join(", ")}; ${failed.length} failed${ill}`);
    if (failed.length > 0) process.exitCode = 1;
  }
} finally {
  await redis.stop();
}
