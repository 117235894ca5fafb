// `npm run bench`: all benchmarks, one after another, then one table of their figures beside those
// of their peers, with whether the goals hold, and what is better or worse than the recorded run.
// A full run is recorded in docs/dev. `--quick` makes them short: the figures are then only good
// for seeing that everything works. Not part of `npm test`.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Command, Option } from "commander";
import { type Figure, figuresVariable } from "./figures.ts";

/** The arguments of a full and of a quick run, by the file of the benchmark. */
const benchmarks: Readonly<Record<string, readonly (readonly [full: string, quick: string])[]>> = {
  schedule: [["", "500 1000"]],
  starts: [
    ["--answer-after 0,10,100 --rounds 7 --starts 1000", "--answer-after 0,10 --starts 100 --rounds 2"],
    ["--only syncline --until settled --rounds 3", "--only syncline --until settled --starts 50 --rounds 1"],
  ],
  neighbours: [["", "--starts 50"]],
  "in-flight": [["--seconds 60", "--runs 200 --seconds 5"]],
  commands: [["", "--policies 500 --days 10 --only plan,status,validate"]],
  feeds: [
    ["--items 100000 --rounds 2", "--items 2000"],
    ["--items 30000 --rounds 2 --answer-after 5", "--items 1000 --answer-after 5"],
  ],
  sinks: [["", "--notices 300"]],
  web: [["--rounds 3", "--policies 200 --days 10 --rounds 1 --only /policies"]],
  "web-viewers": [["", "--policies 200 --seconds 2 --blocks 1"]],
};
/** A change of less than this may be chance. */
const noise = 0.1;
const [table, record] = ["benchmarks.md", "benchmarks.json"].map((name) =>
  fileURLToPath(new URL(`../../docs/dev/${name}`, import.meta.url)),
) as [string, string];

const { quick: isQuick = false, only = Object.keys(benchmarks) } = new Command("npm run bench --")
  .description("Measures everything beside its peers; half an hour. A full run is recorded in docs/dev.")
  .option("--quick", "short rounds, which only show that it works; records nothing")
  .addOption(new Option("--only <names...>", "only these; records nothing").choices(Object.keys(benchmarks)))
  .parse()
  .opts<{ readonly quick?: boolean; readonly only?: readonly string[] }>();

const folder = mkdtempSync(join(tmpdir(), "syncline-bench-"));
const file = join(folder, "figures");
writeFileSync(file, "");
for (const name of only) for (const [full, quick] of benchmarks[name] ?? []) await run(name, isQuick ? quick : full);
const figures = readFigures(readFileSync(file, "utf8").split("\n"));
rmSync(folder, { recursive: true });
const last: { readonly about: string; readonly figures: readonly Figure[] } | undefined = existsSync(record)
  ? JSON.parse(readFileSync(record, "utf8"))
  : undefined;
const rows = toRows(figures);
process.stdout.write(`\n${rows.join("\n")}\n\n${compare(figures).join("\n")}\n`);
const isFull = !isQuick && only.length === Object.keys(benchmarks).length;
if (isFull && process.exitCode === undefined) recordRun();

async function run(name: string, args: string): Promise<void> {
  process.stdout.write(`\n# ${name}.ts ${args}\n`);
  const script = fileURLToPath(new URL(`${name}.ts`, import.meta.url));
  const child = spawn(process.execPath, [script, ...args.split(" ").filter((word) => word !== "")], {
    stdio: "inherit",
    env: { ...process.env, [figuresVariable]: file },
  });
  const [code] = await once(child, "close");
  if (code === 0) return;
  // One that fails must not cost the figures of the others.
  process.stdout.write(`${name}.ts ended with ${code}\n`);
  process.exitCode = 1;
}

/** The figures of a run; of those that several rounds told, the median. */
function readFigures(lines: readonly string[]): readonly Figure[] {
  const all: readonly Figure[] = lines.filter((line) => line !== "").map((line) => JSON.parse(line));
  return [...Map.groupBy(all, ({ what, by }) => `${what}/${by}`).values()].flatMap((its) => {
    const sorted = its.toSorted((a, b) => a.value - b.value);
    return sorted[Math.floor((sorted.length - 1) / 2)] ?? [];
  });
}

/** The table: a row for each thing that was measured. */
function toRows(all: readonly Figure[]): string[] {
  const cells = [...Map.groupBy(all, ({ what }) => what)].map(([what, its]) => {
    const own = its.find(({ by }) => by === "syncline");
    const peers = its.filter((figure) => figure !== own).map(({ by, value }) => `${by} ${show(value)}`);
    const before = own === undefined ? undefined : recorded(own)?.value;
    const { text, holds } = own === undefined ? { text: "", holds: "" } : judge(own, its);
    const shown = [own?.value, before].map((value) => (value === undefined ? "" : show(value)));
    return [`${what}, ${its[0]?.unit}`, shown[0], peers.join(" · "), text, holds, shown[1]];
  });
  const heading = ["", "Syncline", "peers", "goal", "holds", "recorded"];
  return [heading, ["---", "--:", "---", "---", "---", "--:"], ...cells].map((row) => `| ${row.join(" | ")} |`);
}

function judge({ goal, wants, value }: Figure, its: readonly Figure[]): { text: string; holds: string } {
  if (goal === undefined) return { text: "", holds: "" };
  const side = wants === "more" ? "≥" : "≤";
  if (typeof goal === "number") return { text: `${side} ${goal}`, holds: answer(wants, value, goal) };
  const peer = its.find(({ by }) => by === goal.of)?.value ?? Number.NaN;
  const ratio = `${(value / peer).toFixed(2)} ${side} ${goal.times} × ${goal.of}`;
  return { text: ratio, holds: answer(wants, value, goal.times * peer) };
}

function answer(wants: Figure["wants"], value: number, limit: number): string {
  return (wants === "more" ? value >= limit : value <= limit) ? "yes" : "**no**";
}

function recorded({ what, by }: Figure): Figure | undefined {
  return last?.figures.find((figure) => figure.what === what && figure.by === by);
}

/** What changed against the recorded run, worse first. */
function compare(all: readonly Figure[]): string[] {
  if (last === undefined) return ["No run is recorded yet."];
  const changes = all.flatMap((figure) => {
    const before = recorded(figure)?.value;
    if (figure.by !== "syncline" || before === undefined || before === 0) return [];
    const grown = figure.value / before;
    if (Math.abs(grown - 1) < noise) return [];
    const isBetter = grown > 1 === (figure.wants === "more");
    return [{ isBetter, line: `  ${figure.what}: ${show(before)} → ${show(figure.value)} ${figure.unit}` }];
  });
  const part = (isBetter: boolean) => changes.filter((one) => one.isBetter === isBetter).map(({ line }) => line);
  const told = (title: string, lines: readonly string[]) => [
    lines.length === 0 ? `${title}: nothing` : title,
    ...lines,
  ];
  return [...told(`Worse than on ${last.about}`, part(false)), ...told("Better", part(true))];
}

function recordRun(): void {
  const about = `${new Date().toISOString().slice(0, 10)}, ${availableParallelism()} cores, Node ${process.versions.node}`;
  writeFileSync(record, `${JSON.stringify({ about, figures }, undefined, 2)}\n`);
  const text = readFileSync(table, "utf8");
  const filled = text.replace(/(<!-- figures -->\n).*?(<!-- end -->)/s, (_, open: string, close: string) =>
    [open, `\nMeasured ${about}.\n\n`, `${rows.join("\n")}\n\n`, close].join(""),
  );
  writeFileSync(table, filled);
}

function show(value: number): string {
  return value.toLocaleString("en", { maximumSignificantDigits: Math.abs(value) < 1_000 ? 3 : 5 });
}
