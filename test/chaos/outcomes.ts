// `npm run chaos:outcomes -- --sets 20 --seed 7`: about 5,000 outcomes a set against a private
// Redis; exit 1 when anything that is told of them is not true.
import { Command } from "commander";
import { startPrivateRedis } from "../../scripts/redis.mjs";
import { outcomeLimitsDefault } from "../../src/config/settings.ts";
import { tryOutcomes } from "./outcomes-trial.ts";

const { sets, audits, seed } = new Command("npm run chaos:outcomes --")
  .description("Records many outcomes, and holds what is told of them against what was recorded.")
  .option("--sets <count>", "five policies each", Number, 20)
  .option("--audits <count>", "while more is recorded", Number, 14)
  .option("--seed <seed>", "what the outcomes are made of", Number, 1)
  .parse()
  .opts<Readonly<Record<"sets" | "audits" | "seed", number>>>();
const redis = await startPrivateRedis();
try {
  const limits = { ...outcomeLimitsDefault, forMs: 20 * 86_400_000 };
  const target = { url: redis.url, prefix: "{outcomes}" };
  const report = await tryOutcomes({ redis: target, sets, slots: 1_100, audits, samples: 100, seed, limits });
  process.stdout.write(`${JSON.stringify({ sets, seed, ...report }, null, 2)}\n`);
  process.exitCode = report.untrue.length === 0 ? 0 : 1;
} finally {
  await redis.stop();
}
