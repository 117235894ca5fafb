// One line on how many tasks under crashes ended as unknown, and why. Told by `npm run chaos` and
// by the test of the starts, which judges only what was avoidable: the whole share follows the
// machine (docs/dev/testing.md).
import { whysUnknown } from "./check-starts.ts";

/** The line, from the sums of all seeds. */
export function unknownShare(counts: Readonly<Record<string, number>>): string {
  const tasks = counts["tasks under crash"] ?? 0;
  const byWhy = whysUnknown.map((why) => ({ why, count: counts[`unknown (${why}) under crash`] ?? 0 }));
  const all = byWhy.reduce((sum, { count }) => sum + count, 0);
  const asked = byWhy.find(({ why }) => why === "asked")?.count ?? 0;
  const share = (count: number) => `${((100 * count) / tasks).toFixed(1)} %`;
  const whys = byWhy.map(({ why, count }) => `${count} ${why}`).join(", ");
  return `unknown under crash: ${all} of ${tasks} tasks (${share(all)}): ${whys}; ${share(all - asked)} without those whose policy asks for it`;
}
