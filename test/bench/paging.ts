// `npm run matrix`: lists of 50 pages, walked in every way of paging that the sandbox and SAP CAP
// know, on a Redis of its own. Says what a walk asked for beyond its measure, and what was not told
// exactly once. `npm run test:long` walks a share of it.
//
//   npm run matrix                      40 cells of the sandbox, drawn by seed 1
//   npm run matrix -- --seed 7 --cells 100
//   npm run matrix -- --all             every cell, those of SAP CAP, too
//   npm run matrix -- --only "guid tokens, opaque.*pages of 7"
import { Command, InvalidArgumentError } from "commander";
import { startPrivateRedis } from "../../scripts/redis.mjs";
import { openStore } from "../../src/store/redis.ts";
import { createRandom } from "../chaos/seeded-random.ts";
import { allCapCells, allCells, nameOf, nameOfCap, walkCap, walkSandbox } from "../support/paging-matrix.ts";

const wholeNumber = (text: string) => {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It must be a whole number from 1.");
};
const pattern = (text: string) => {
  try {
    return new RegExp(text);
  } catch {
    throw new InvalidArgumentError("It must be a regular expression.");
  }
};
const { all, seed, cells, only } = new Command("npm run matrix --")
  .description("Walks lists of 50 pages in every way of paging, and holds the requests and what was told.")
  .option("--all", "every cell of the sandbox and of SAP CAP", false)
  .option("--seed <seed>", "which cells are drawn", wholeNumber, 1)
  .option("--cells <count>", "how many are drawn", wholeNumber, 40)
  .option("--only <pattern>", "all those whose name fits this regular expression", pattern)
  .addHelpText("after", "\nExits with 1 when anything was found, with 2 on wrong use.")
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2))
  .parse()
  .opts<{ readonly all: boolean; readonly seed: number; readonly cells: number; readonly only?: RegExp }>();

const server = await startPrivateRedis();
const store = await openStore({ url: server.url, prefix: "matrix" });
const everything = [
  ...allCells.map((cell) => ({ name: nameOf(cell), walk: () => walkSandbox(cell, store) })),
  ...allCapCells.map((cell) => ({ name: nameOfCap(cell), walk: () => walkCap(cell, store) })),
];
const chosen = choose();
let failed = 0;
let walks = 0;
const say = (line: string) => process.stdout.write(`${line}\n`);
for (const [index, { name, walk }] of chosen.entries()) {
  const { findings, requests } = await walk();
  walks += requests.length;
  if (findings.length > 0) {
    failed += 1;
    say(`${name}\n  ${requests.join("; ")}`);
    for (const finding of findings) say(`  ${finding}`);
  }
  if ((index + 1) % 50 === 0) process.stderr.write(`${index + 1} of ${chosen.length} cells\n`);
}
say(`${chosen.length} cells, ${walks} walks: ${failed} cells with findings`);
await store.close();
await server.stop();
process.exit(failed > 0 ? 1 : 0);

function choose(): typeof everything {
  if (only !== undefined) return everything.filter(({ name }) => only.test(name));
  if (all) return everything;
  const random = createRandom(seed);
  const left = everything.slice(0, allCells.length);
  return Array.from({ length: Math.min(cells, left.length) }, () =>
    left.splice(random.integer(0, left.length - 1), 1),
  ).flat();
}
