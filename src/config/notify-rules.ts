// The rules about telling: sinks that are named and not there, a sink that stands twice in one list, hours that are none, a heartbeat's
// address. Called by rules.ts (one file) and cross-rules.ts (all files).
import type { Path } from "./node-places.ts";
import { policyLimits } from "./policy-limits.ts";
import type { Problem } from "./problem.ts";
import type { View } from "./view.ts";
import type { YamlFile } from "./yaml-file.ts";
import { didYouMean } from "./yaml-hints.ts";

/** The part of rules.ts's Report that is needed here. */
type Report = (path: Path, message: string, options?: { readonly hint?: string }) => void;

/** Reports what is wrong with the `notify` and `heartbeat` of a policy, or of `defaults`. */
export function checkNotify(subject: View, report: Report): void {
  const seen = new Set<string>();
  for (const item of sinkNames(subject)) {
    const name = item.text();
    if (name === undefined) continue;
    if (seen.has(name)) {
      const hint = "put its rules into one item: { sink, on: [...] }";
      report(item.path, `the sink "${name}" stands in the list twice`, { hint });
    }
    seen.add(name);
  }
  const url = subject.at("heartbeat").at("url");
  const problem = problemOfHeartbeat(url.text());
  if (problem !== undefined) report(url.path, `heartbeat.url: ${problem}`);
}

/** Reports quiet hours that have no length. */
export function checkTelling(telling: View, report: Report): void {
  const hours = telling.at("quietHours");
  const from = hours.at("from").text();
  if (from === undefined || from !== hours.at("to").text()) return;
  report(hours.at("to").path, "telling.quietHours: from and to are the same time", {
    hint: "remove quietHours, or set to to when they end",
  });
}

interface FileView {
  readonly file: YamlFile;
  readonly view: View;
}

/** Sinks that are named and not described in any of the files, and a `telling` that stands in more than one. */
export function checkSinks(files: readonly FileView[], isWhole: boolean): Problem[] {
  const problems = isWhole ? unknownSinks(files) : [];
  const [first, ...more] = files.filter(({ view }) => view.at("telling").isPresent);
  for (const { file, view } of more) {
    const message = `telling is there twice: first in ${first?.file.file}`;
    problems.push(file.problemAt(view.at("telling").path, message, { hint: "keep one of them", place: "key" }));
  }
  return problems;
}

function unknownSinks(files: readonly FileView[]): Problem[] {
  const names = files.flatMap(({ view }) => view.at("sinks").entries()).map(([name]) => name);
  const known = new Set(names);
  const candidates = names.slice(0, policyLimits.servicesMax);
  return files.flatMap(({ file, view }) => {
    const unresolved = new Set(file.unresolved.map((path) => JSON.stringify(path)));
    return [view.at("defaults"), ...view.at("policies").items()].flatMap(sinkNames).flatMap((item) => {
      const name = item.text();
      if (name === undefined || known.has(name) || unresolved.has(JSON.stringify(item.path))) return [];
      const hint = didYouMean(name, candidates) ?? "describe it under sinks";
      return [file.problemAt(item.path, `there is no sink "${name}"`, { hint })];
    });
  });
}

/** The names of sinks in a `notify`, written either way. */
function sinkNames(subject: View): View[] {
  return subject
    .at("notify")
    .items()
    .map((item) => (item.isObject ? item.at("sink") : item));
}

/** Never quotes it: it may be a secret. */
function problemOfHeartbeat(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  if (!URL.canParse(text)) return "this is no URL, such as https://beats.example.com/ping/contracts";
  const url = new URL(text);
  if (url.protocol !== "https:" && url.protocol !== "http:") return "must start with https:// or http://";
  if (url.username !== "" || url.password !== "") return "must not hold credentials";
  return undefined;
}
