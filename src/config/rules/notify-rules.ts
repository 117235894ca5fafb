// The rules for notifications: unknown sinks, a sink listed twice, empty mute timing, a heartbeat's
// URL. Called by policy-rules.ts (one file) and cross-rules.ts (all files).

import type { Problem } from "../problem.ts";
import type { YamlView } from "../yaml/view.ts";
import type { Path, YamlFile } from "../yaml/yaml-file.ts";
import { didYouMean } from "../yaml/yaml-hints.ts";
import { policyLimits } from "./policy-limits.ts";

/** The part of policy-rules.ts's Report that is used here. */
type Report = (path: Path, message: string, options?: { readonly hint?: string }) => void;

/** Reports problems of `notify` and `heartbeat`, in a policy or in `defaults`. */
export function checkNotify(subject: YamlView, report: Report): void {
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

/** Reports mute timing without a length. */
export function checkNotifications(notifications: YamlView, report: Report): void {
  const hours = notifications.at("muteTiming");
  const from = hours.at("from").text();
  if (from === undefined || from !== hours.at("to").text()) return;
  report(hours.at("to").path, "notifications.muteTiming: from and to are the same time", {
    hint: "remove muteTiming, or set to to when they end",
  });
}

interface FileView {
  readonly file: YamlFile;
  readonly view: YamlView;
}

/** Reports sinks that no file defines, and a `notifications` in more than one file. */
export function checkSinks(files: readonly FileView[], isWhole: boolean): Problem[] {
  const problems = isWhole ? unknownSinks(files) : [];
  const [first, ...more] = files.filter(({ view }) => view.at("notifications").isPresent);
  for (const { file, view } of more) {
    const message = `notifications is there twice: first in ${first?.file.file}`;
    problems.push(file.problemAt(view.at("notifications").path, message, { hint: "keep one of them", place: "key" }));
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

/** The sink names in a `notify`, in either notation. */
function sinkNames(subject: YamlView): YamlView[] {
  return subject
    .at("notify")
    .items()
    .map((item) => (item.isObject ? item.at("sink") : item));
}

/** What is wrong with a heartbeat's URL. Never quotes it: it may be a secret. */
function problemOfHeartbeat(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  if (!URL.canParse(text)) return "this is no URL, such as https://beats.example.com/ping/contracts";
  const url = new URL(text);
  if (url.protocol !== "https:" && url.protocol !== "http:") return "must start with https:// or http://";
  if (url.username !== "" || url.password !== "") return "must not hold credentials";
  return undefined;
}
