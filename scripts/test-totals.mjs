// Turns vitest's JSON reports into the one line that ends a CI run, and into its exit code. Called
// by .ci/run. Names what failed, since a log may be cut to its end. Prints the true numbers also
// when tests failed; a file that could not be loaded counts as one failed test, and so does a run
// without any. Fails when tests against Redis were skipped or did not run: green without them would
// say too much.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

/**
 * Counts a report: { passed, failed, skipped, complaints }. `complaints` are reasons to fail beside
 * failed tests.
 */
export function countTests(report) {
  const totals = { passed: 0, failed: 0, skipped: 0, complaints: [] };
  const redis = { passed: 0, failed: 0, skipped: 0 };
  for (const file of report.testResults) {
    const counts = countFile(file);
    for (const name of ["passed", "failed", "skipped"]) {
      totals[name] += counts[name];
      if (file.name.replaceAll("\\", "/").includes("/test/redis/")) redis[name] += counts[name];
    }
  }
  if (totals.passed + totals.failed + totals.skipped === 0) totals.failed = 1;
  if (redis.passed + redis.failed === 0) totals.complaints.push("no test ran against Redis");
  if (redis.skipped > 0) totals.complaints.push(`${redis.skipped} tests against Redis were skipped`);
  if (report.success !== true && totals.failed === 0) totals.complaints.push("the run failed outside of its tests");
  return totals;
}

function countFile({ status, assertionResults }) {
  const having = (...wanted) => assertionResults.filter((test) => wanted.includes(test.status)).length;
  const counts = { passed: having("passed"), failed: having("failed") };
  if (status === "failed" && counts.failed === 0) counts.failed = 1;
  return { ...counts, skipped: assertionResults.length - having("passed", "failed") };
}

const [namedMax, messageCharactersMax] = [40, 300];

/** Says of each failed test, and of each file that could not be loaded, which and why. */
export function describeFailures({ testResults }) {
  const told = testResults.flatMap(({ name, status, message, assertionResults }) => {
    const failed = assertionResults.filter((test) => test.status === "failed");
    if (failed.length === 0 && status === "failed") return [`${name}: ${beginningOf(message)}`];
    return failed.map((test) => `${name}: ${test.fullName}: ${beginningOf(test.failureMessages?.join("; "))}`);
  });
  const rest = told.length - namedMax;
  return rest > 0 ? [...told.slice(0, namedMax), `and ${rest} more`] : told;
}

function beginningOf(message = "") {
  const line = message.replaceAll(/\s+/g, " ");
  return line.length > messageCharactersMax ? `${line.slice(0, messageCharactersMax)}…` : line;
}

/** Adds up the reports in `files`; one that cannot be read counts as one failed test. */
function countFiles(files) {
  const totals = { passed: 0, failed: 0, skipped: 0, complaints: [] };
  const report = { success: true, testResults: [] };
  for (const file of files) {
    try {
      const { success, testResults } = JSON.parse(readFileSync(file, "utf8"));
      report.success &&= success;
      report.testResults.push(...testResults);
    } catch (error) {
      totals.failed += 1;
      totals.complaints.push(`cannot read ${file}: ${error.message}`);
    }
  }
  const counted = countTests(report);
  for (const name of ["passed", "failed", "skipped"]) totals[name] += counted[name];
  return { ...totals, complaints: [...totals.complaints, ...counted.complaints], failures: describeFailures(report) };
}

function main(files) {
  const totals = countFiles(files);
  for (const line of [...totals.failures, ...totals.complaints]) console.error(`test-totals: ${line}`);
  console.log(`${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped`);
  return totals.failed === 0 && totals.complaints.length === 0 ? 0 : 1;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) process.exitCode = main(process.argv.slice(2));
