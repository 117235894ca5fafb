// `npm run oracle`: compares the calendar with an independent oracle (test/support) in every IANA
// time zone at every clock shift from 2020 to 2037. Takes some minutes. `--seed N` repeats the
// marks of an earlier run, `--zones A,B` narrows it down.
import { parseArgs } from "node:util";
import { clockShifts } from "../test/support/dst-oracle.ts";
import {
  allRules,
  type DeadlineCase,
  deadlineTimes,
  findDeadlineMismatch,
  findMismatch,
  fixedExpressions,
  type OracleCase,
  subDailyExpressions,
} from "../test/support/oracle-check.ts";

const { values } = parseArgs({ options: { seed: { type: "string" }, zones: { type: "string" } } });
const seed = Number(values.seed ?? Date.now() % 1_000_000);
const zones = values.zones?.split(",") ?? Intl.supportedValuesOf("timeZone");
const mismatchesShownMax = 20;
const startedMs = Date.now();
let state = seed;
let shifts = 0;
let checks = 0;
let mismatches = 0;

console.log(`seed ${seed}, ${zones.length} zones, time zone database ${process.versions["tz"]}`);
for (const timezone of zones) {
  for (const aroundMs of clockShifts(timezone, Date.UTC(2020, 0, 1), Date.UTC(2038, 0, 1))) {
    shifts += 1;
    for (const { expression, rule } of variants())
      check({ timezone, aroundMs, expression, rule, marksSeconds: marks() }, findMismatch);
    for (const deadline of deadlines()) check({ timezone, aroundMs, ...deadline }, findDeadlineMismatch);
  }
}
const seconds = Math.round((Date.now() - startedMs) / 1_000);
const expressions = fixedExpressions.length + subDailyExpressions.length;
console.log(
  `${checks} checks (${shifts} shifts, ${expressions} expressions) in ${seconds} s: ${mismatches} mismatches`,
);
if (mismatches > 0 || checks === 0) process.exitCode = 1;

/**
 * Fixed wall times under all six rules; sub-daily ones under the default and one that must not
 * matter.
 */
function* variants(): Generator<Pick<OracleCase, "expression" | "rule">> {
  for (const expression of fixedExpressions) for (const rule of allRules) yield { expression, rule };
  for (const expression of subDailyExpressions) {
    yield { expression, rule: { gap: "next", overlap: "first" } };
    yield { expression, rule: { gap: "skip", overlap: "second" } };
  }
}

/** Every time of day, over nightly, hourly and weekly slots, each under both overlap rules. */
function* deadlines(): Generator<Omit<DeadlineCase, "timezone" | "aroundMs">> {
  for (const successBy of deadlineTimes)
    for (const expression of ["30 0 * * *", "0 * * * *", "15 2 * * 0"])
      for (const overlap of ["first", "second"] as const)
        yield { successBy, on: "*", expression, rule: { gap: "skip", overlap } };
}

function check<Asked>(asked: Asked, find: (asked: Asked) => string | undefined): void {
  checks += 1;
  const mismatch = find(asked);
  if (mismatch === undefined) return;
  mismatches += 1;
  if (mismatches <= mismatchesShownMax) console.log(`seed ${seed}: ${mismatch} in ${JSON.stringify(asked)}`);
}

/** Two instants within four hours of the shift, by a small linear congruential generator. */
function marks(): number[] {
  return [0, 1].map(() => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (state % 28_801) - 14_400;
  });
}
