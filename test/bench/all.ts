// `npm run bench`: all benchmarks of starts, one after another: starts.ts, neighbours.ts,
// in-flight.ts. Not part of `npm test`. `--quick` makes them short: the figures are then only good
// for seeing that everything works.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { Command } from "commander";

const { quick: isQuick = false } = new Command("npm run bench --")
  .description(
    "Measures starts, neighbours of a hanging service and runs in flight, beside a bare worker; about ten minutes.",
  )
  .option("--quick", "short rounds, which only show that it works")
  .parse()
  .opts<{ readonly quick?: boolean }>();

const benchmarks: readonly (readonly [file: string, full: readonly string[], quick: readonly string[]])[] = [
  [
    "starts.ts",
    ["--answer-after", "0,5,10,25,50,100", "--rounds", "7"],
    ["--answer-after", "0,10", "--starts", "100", "--rounds", "2"],
  ],
  ["starts.ts", ["--until", "settled", "--rounds", "3"], ["--until", "settled", "--starts", "50", "--rounds", "1"]],
  ["neighbours.ts", [], ["--starts", "50"]],
  ["in-flight.ts", ["--seconds", "30"], ["--runs", "200", "--seconds", "5"]],
];

for (const [file, full, quick] of benchmarks) {
  const args = isQuick ? quick : full;
  process.stdout.write(`\n# ${[file, ...args].join(" ")}\n`);
  const child = spawn(process.execPath, [fileURLToPath(new URL(file, import.meta.url)), ...args], { stdio: "inherit" });
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`${file} ended with ${code}`);
}
