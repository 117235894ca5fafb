// Run by hostile-files.long.test.ts in a process of its own: loads the file named on the command
// line and prints the outcome as JSON.
import { loadPolicies } from "../../../src/config/load-policies.ts";

const [path = ""] = process.argv.slice(2);
const checks = {
  calendar: async () => ({ events: [] }),
  cron: () => undefined,
  deadline: () => undefined,
  expression: () => undefined,
  onItem: () => undefined,
};
const loaded = await loadPolicies(path, { variables: {}, checks });
const problems = loaded.ok ? [] : loaded.problems.map(({ line, message }) => `${line} ${message}`);
process.stdout.write(JSON.stringify({ ok: loaded.ok, count: problems.length, first: problems.slice(0, 5) }));
