// `npm run trial:faults -- --seed 7`: every kind of fault over seven slots, against a private
// Redis; exit 1 when anything that is told of them is not true.
import { Command } from "commander";
import { startPrivateRedis } from "../../scripts/redis.mjs";
import { faultKinds } from "./fault-kinds.ts";
import type { FaultTrialReport } from "./fault-ledgers.ts";
import { tryFaults } from "./fault-trial.ts";
import { warmUp } from "./replica.ts";

interface Options {
  readonly seed: number;
  readonly slots: number;
  readonly every: number;
  readonly only?: readonly string[];
  readonly crashes?: true;
}

const names = Object.keys(faultKinds);
const {
  seed,
  slots,
  every,
  only,
  crashes = false,
} = new Command("npm run trial:faults --")
  .description(
    "Meets starts and reads with every kind of fault, and holds what is told of them against what truly happened.",
  )
  .option("--seed <seed>", "what the faults are made of", Number, 1)
  .option("--slots <count>", "of each policy", Number, 7)
  .option("--every <seconds>", "between two slots", Number, 5)
  .option("--only <kinds...>", `of ${names.join(", ")}`)
  .option("--crashes", "kill -9 of the worker at seeded instants")
  .parse()
  .opts<Options>();

const kinds = only ?? names;
const unknown = kinds.filter((kind) => !names.includes(kind));
if (unknown.length > 0) throw new Error(`no such kind: ${unknown.join(", ")}; there are ${names.join(", ")}`);
const redis = await startPrivateRedis();
try {
  await warmUp();
  const report = await tryFaults({
    redisUrl: redis.url,
    seed,
    kinds,
    slots,
    everyMs: every * 1_000,
    crashes,
    recoversAfterMs: 75_000,
  });
  process.stdout.write(`${tableText(report.table)}\n${JSON.stringify(report.looked)}\n`);
  for (const finding of report.findings) process.stdout.write(`${finding}\n`);
  process.stdout.write(`seed ${seed}${crashes ? " with crashes" : ""}: ${report.findings.length} findings\n`);
  process.exitCode = report.findings.length === 0 ? 0 : 1;
} finally {
  await redis.stop();
}

/** Kind × status. */
function tableText(table: FaultTrialReport["table"]): string {
  const statuses = [...new Set(Object.values(table).flatMap((row) => Object.keys(row)))].toSorted();
  const wide = (text: string, width = 11) => text.padStart(width);
  const rows = Object.entries(table).map(([kind, row]) =>
    [kind.padEnd(22), ...statuses.map((status) => wide(String(row[status] ?? ".")))].join(" "),
  );
  const sums = statuses.map((status) =>
    wide(String(Object.values(table).reduce((sum, row) => sum + (row[status] ?? 0), 0))),
  );
  return [
    [" ".repeat(22), ...statuses.map((one) => wide(one))].join(" "),
    ...rows,
    ["sum".padEnd(22), ...sums].join(" "),
  ].join("\n");
}
