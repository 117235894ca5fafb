// Which runs are unusual: at the limits, and over a year of outcomes whose drifts, steps, patterns
// and outliers are known beforehand.
import { describe, expect, it } from "vitest";
import {
  judgeRun,
  longFromMs,
  type RunFigures,
  runsKept,
  type UnusualRule,
  unusualWords,
} from "../../../src/model/unusual.ts";
import { createRandom, type SeededRandom } from "../../chaos/seeded-random.ts";

const minuteMs = 60_000;
const rule: UnusualRule = { factor: 3, floorMs: 10 * minuteMs, itemsFloor: 20, runs: 10 };
const unknown = { activities: undefined, conflicts: undefined };
const took = (minutes: number): RunFigures => ({ ...unknown, duration: minutes * minuteMs });
const items = (activities: number, conflicts: number): RunFigures => ({ duration: 1, activities, conflicts });
const many = (run: RunFigures, count = runsKept) => Array.from({ length: count }, () => run);
const found = (run: RunFigures, known: readonly RunFigures[]) => judgeRun(run, known, rule).map(({ what }) => what);

describe("an unusual run", () => {
  it("takes three times as long as usual, and ten minutes at least", () => {
    expect(found(took(36), many(took(12)))).toEqual(["duration"]);
    expect(found(took(35), many(took(12)))).toEqual([]);
    expect(found(took(9), many(took(1)))).toEqual([]);
    expect(found(took(10), many(took(1)))).toEqual(["duration"]);
  });

  it("takes a tenth of the usual time, where that is ten minutes or more", () => {
    expect(found(took(1), many(took(10)))).toEqual(["duration"]);
    expect(found(took(0.5), many(took(9)))).toEqual([]);
  });

  it("leaves far more or fewer activities or conflicts", () => {
    expect(found(items(12, 0), many(items(120, 0)))).toEqual(["activities"]);
    expect(found(items(120, 20), many(items(120, 0)))).toEqual(["conflicts"]);
    expect(found(items(360, 19), many(items(120, 0)))).toEqual(["activities"]);
    expect(found({ ...unknown, duration: 1 }, many(items(120, 0)))).toEqual([]);
  });

  it("is not told before ten runs are known, nor when two of the newest were alike", () => {
    expect(found(took(60), many(took(12), 9))).toEqual([]);
    expect(found(took(60), [...many(took(12), 18), took(58)])).toEqual(["duration"]);
    expect(found(took(60), [...many(took(12), 18), took(58), took(58)])).toEqual([]);
  });

  it("says in words what it was and what is usual", () => {
    const findings = judgeRun(
      { duration: 47 * minuteMs, activities: 2, conflicts: 1 },
      many({ ...items(120, 0), duration: 12 * minuteMs }),
      rule,
    );
    expect(unusualWords(findings)).toBe("took 47m, usually 12m; 2 activities, usually 120");
  });

  it("is known while it goes on: from the first instant at which it would be told", () => {
    for (const known of [many(took(12)), many(took(1)), [5, 9, 12, 30, 6, 14, 11, 8, 20, 13].map(took)]) {
      const fromMs = longFromMs(known, rule) ?? Number.NaN;
      expect(judgeRun({ ...unknown, duration: fromMs }, known, rule)).toHaveLength(1);
      expect(judgeRun({ ...unknown, duration: fromMs * 0.99 }, known, rule)).toHaveLength(0);
    }
    expect(longFromMs(many(took(12), 9), rule)).toBeUndefined();
  });
});

/** One run of the year: what it left, and whether it is one that should be told. */
interface Seeded {
  readonly run: RunFigures;
  readonly isOdd: boolean;
}

/** A normal draw, by the sum of twelve even ones. */
function normal(random: SeededRandom): number {
  const draws = Array.from({ length: 12 }, () => random.integer(0, 1_000_000) / 1_000_000);
  return draws.reduce((sum, draw) => sum + draw, -6);
}

/** `far`: so many times the usual is odd for this sync job. */
type Shape = (index: number, far: number) => number;

/** How the usual of a sync job moves over the year. */
const shapes: Readonly<Record<string, Shape>> = {
  steady: () => 1,
  "doubles in a year": (index) => 2 ** (index / 365),
  "jumps in July": (index, far) => (index < 182 ? 1 : far),
  "long on Sundays": (index) => (index % 7 === 6 ? 5 : 1),
  "grows for a month, then falls": (index) => 1 + (index % 30) / 30,
};

/** A year of nightly runs that differ by `spread`. Of 100 runs one is far beyond all usual ones. */
function year(random: SeededRandom, shape: Shape, spread: number): Seeded[] {
  const far = Math.max(8, Math.exp(8 * spread));
  const levels = Array.from({ length: 365 }, (_, index) => shape(index, far));
  return levels.map((level, index) => {
    const isOutlier = random.chance(0.01);
    const around = levels.slice(Math.max(0, index - 7), index + 1);
    const [most, least] = [Math.max(...around) * far, Math.min(...around) / (2 * far)];
    const odd = random.pick(["duration", "activities"] as const);
    const draw = (what: typeof odd, usual: number) =>
      usual *
      (isOutlier && what === odd ? random.pick([most, most, least]) : level * Math.exp(spread * normal(random)));
    const run = { duration: draw("duration", 20 * minuteMs), activities: Math.round(draw("activities", 400)) };
    // The second run after a jump is as unlike the 20 before it as the first.
    const isJump = level / (levels[index - 2] ?? level) >= 6;
    return { run: { ...run, conflicts: 0 }, isOdd: isOutlier || isJump };
  });
}

describe("a year of 240 sync jobs", () => {
  it("has 95 of 100 odd runs told, and no more than 1 of 1,000 others", () => {
    const random = createRandom(20_261_123);
    const rows: Record<string, { odd: number; told: number; others: number; falselyTold: number }> = {};
    for (const [name, shape] of Object.entries(shapes)) {
      for (const spread of [0.05, 0.15, 0.3, 0.5]) {
        const row = { odd: 0, told: 0, others: 0, falselyTold: 0 };
        for (let job = 0; job < 12; job += 1) {
          let known: RunFigures[] = [];
          for (const { run, isOdd } of year(random, shape, spread)) {
            const isTold = judgeRun(run, known, rule).length > 0;
            if (known.length >= rule.runs) {
              row[isOdd ? "odd" : "others"] += 1;
              if (isTold) row[isOdd ? "told" : "falselyTold"] += 1;
            }
            known = [...known, run].slice(-runsKept);
          }
        }
        rows[`${name}, spread ${spread}`] = row;
      }
    }
    const lines = Object.entries(rows).map(
      ([name, row]) =>
        `${name.padEnd(44)}${Object.values(row)
          .map((count) => String(count).padStart(8))
          .join("")}`,
    );
    process.stdout.write(`${"".padEnd(44)}     odd    told  others  falsely told\n${lines.join("\n")}\n`);
    const sum = (column: keyof (typeof rows)[string]) => Object.values(rows).reduce((all, row) => all + row[column], 0);
    expect(sum("told") / sum("odd")).toBeGreaterThanOrEqual(0.95);
    expect(sum("falselyTold") / sum("others")).toBeLessThanOrEqual(0.001);
  });
});
