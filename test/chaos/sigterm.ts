// `npm run chaos:sigterm -- --rounds 1000 --seed 7 --side-by-side 6`: SIGTERMs at seeded instants against a private Redis; exit 1 when anything is wrong.
import { parseArgs } from "node:util";
import { startPrivateRedis } from "../../scripts/redis.mjs";
import { checkSigterm } from "../support/sigterm-check.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "1000" },
    seed: { type: "string", default: "1" },
    "side-by-side": { type: "string", default: "6" },
  },
});
const [rounds, seed, lanes] = [Number(values.rounds), Number(values.seed), Number(values["side-by-side"])];
const redis = await startPrivateRedis();
try {
  const onRound = (round: number) => {
    if (round % 50 === 0) process.stderr.write(`${round} of ${rounds}\n`);
  };
  const report = await checkSigterm({ redis: { url: redis.url, prefix: "{sigterm}" }, rounds, seed, lanes, onRound });
  process.stdout.write(`${JSON.stringify({ rounds, seed, ...report }, null, 2)}\n`);
  process.exitCode = report.wrong.length === 0 ? 0 : 1;
} finally {
  await redis.stop();
}
