// `npm run chaos:sigterm -- --rounds 1000 --seed 7 --side-by-side 6`: SIGTERMs at seeded instants
// against a private Redis; exit 1 when anything is wrong.
import { Command } from "commander";
import { startPrivateRedis } from "../../scripts/redis.mjs";
import { checkSigterm } from "../support/sigterm-check.ts";

const { rounds, seed, sideBySide } = new Command("npm run chaos:sigterm --")
  .description("Sends SIGTERM to busy processes at seeded instants, and looks for what got lost.")
  .option("--rounds <count>", "how many", Number, 1_000)
  .option("--seed <seed>", "what the instants are made of", Number, 1)
  .option("--side-by-side <count>", "how many processes at a time", Number, 6)
  .parse()
  .opts<Readonly<Record<"rounds" | "seed" | "sideBySide", number>>>();
const redis = await startPrivateRedis();
try {
  const onRound = (round: number) => {
    if (round % 50 === 0) process.stderr.write(`${round} of ${rounds}\n`);
  };
  const report = await checkSigterm({
    redis: { url: redis.url, prefix: "{sigterm}" },
    rounds,
    seed,
    lanes: sideBySide,
    onRound,
  });
  process.stdout.write(`${JSON.stringify({ rounds, seed, ...report }, null, 2)}\n`);
  process.exitCode = report.wrong.length === 0 ? 0 : 1;
} finally {
  await redis.stop();
}
