// Follows a section of a runbook word by word: runs its commands and queries as they stand there,
// reads the log events and answers of /readyz that it names. Used by test/chart/alert-trial.ts.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Prometheus } from "./trial-prometheus.ts";
import type { Release } from "./trial-release.ts";

const root = join(import.meta.dirname, "../../..");
const events = readFileSync(join(root, "docs/log-events.md"), "utf8");

/** How the command line refuses what a page says. */
const wrongUse = /^error: (required|unknown|missing|too many) /m;

/** One thing that a runbook says to do; `said` is undefined where it needs a cluster. */
export interface Step {
  readonly what: string;
  readonly said: string | undefined;
  readonly isWrong: boolean;
}

/** The incident: what stands for the words in capitals, and since when it lasts. */
export interface Followed {
  readonly release: Release;
  readonly prometheus: Prometheus;
  readonly words: Readonly<Record<string, string>>;
  readonly sinceMs: number;
}

/** Does what stands under a heading of a page; with `only`, the first command that starts so. */
export async function followRunbook(page: string, heading: string, incident: Followed, only?: string): Promise<Step[]> {
  const section = readFileSync(join(root, page), "utf8").split(`\n## ${heading}\n`)[1]?.split("\n## ")[0] ?? "";
  const codes = [...new Set([...section.matchAll(/`([^`\n]+)`/g)].map(([, code = ""]) => code))];
  const meant = only === undefined ? codes : codes.filter((code) => code.startsWith(only)).slice(0, 1);
  const steps: Step[] = [];
  let words = incident.words;
  for (const code of meant) {
    const step = await take(fill(code, incident.release.job, words), incident);
    if (step === undefined) continue;
    steps.push(step);
    // The audit names the time that the next command asks for.
    const [, day, time] = / (\S+) (\S+) was missed/.exec(step.said ?? "") ?? [];
    if (day !== undefined) words = { ...words, TIME: `${day}T${time}` };
  }
  return steps;
}

/** Puts what is meant in place of the words in capitals. */
function fill(code: string, job: string, words: Readonly<Record<string, string>>): string {
  return code
    .replaceAll('job="NAME"', `job="${job}"`)
    .replaceAll('service="…"', `service="${words["NAME"]}"`)
    .replace(/\b[A-Z]{4,}\b/g, (word) => words[word] ?? word);
}

async function take(what: string, { release, prometheus, sinceMs }: Followed): Promise<Step | undefined> {
  const isFilled = !/ [A-Z]{4,}\b/.test(what);
  if (what.startsWith("kubectl ")) return { what, said: undefined, isWrong: false };
  if (what.startsWith("syncline ") && isFilled) {
    const { code, text } = await release.command(what.split(" ").slice(1));
    return { what, said: text, isWrong: code === 3 || code < 0 || wrongUse.test(text) };
  }
  if (what === "/readyz") return { what, said: await release.readiness(), isWrong: false };
  if (/\bsyncline_|\bup\{/.test(what)) return { what, said: await prometheus.query(what), isWrong: false };
  if (/^[a-z]+\.[a-z-]+$/.test(what) && events.includes(`\`${what}\``))
    return { what, said: release.logged(what, sinceMs), isWrong: false };
  return undefined;
}
