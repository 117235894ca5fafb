// The rules over all files: names that are used but not defined, and names that are defined twice.
// Called by load-policies.ts.

import { type Problem, problemOfFile } from "../problem.ts";
import { viewOf, type YamlView } from "../yaml/view.ts";
import type { YamlFile } from "../yaml/yaml-file.ts";
import { didYouMean } from "../yaml/yaml-hints.ts";
import { checkChains } from "./chain-rules.ts";
import { declaredTwice } from "./declared-rules.ts";
import { checkSinks } from "./notify-rules.ts";
import { policyLimits } from "./policy-limits.ts";
import { outside } from "./sink-rules.ts";

/**
 * Applies the rules over all files. `allRead` is false when a file could not be read: it may hold
 * the services.
 */
export function checkCrossRules(files: readonly YamlFile[], allRead: boolean): readonly Problem[] {
  const views = files.map((file) => ({ file, view: viewOf(file.value) }));
  const isWhole = allRead && files.every((file) => file.value !== undefined);
  return [
    ...(isWhole ? unknownServices(views) : []),
    ...doubles(views),
    ...tooMany(views),
    ...declaredTwice(views),
    ...checkChains(files, isWhole),
    ...outside(views),
    ...checkSinks(views, isWhole),
  ];
}

interface FileView {
  readonly file: YamlFile;
  readonly view: YamlView;
}

function unknownServices(files: readonly FileView[]): Problem[] {
  const names = files.flatMap(({ view }) => view.at("services").entries()).map(([name]) => name);
  const known = new Set(names);
  const candidates = names.slice(0, policyLimits.servicesMax);
  return files.flatMap(({ file, view }) => {
    const unresolved = new Set(file.unresolved.map((path) => JSON.stringify(path)));
    const services = view
      .at("policies")
      .items()
      .map((policy) => policy.at("service"));
    return services.flatMap((service) => {
      const name = service.text();
      if (name === undefined || known.has(name) || unresolved.has(JSON.stringify(service.path))) return [];
      const hint = didYouMean(name, candidates) ?? "describe it under services";
      return [file.problemAt(service.path, `there is no service "${name}"`, { hint })];
    });
  });
}

/** Names defined twice: the problem is at the second and names the first. */
function doubles(files: readonly FileView[]): Problem[] {
  const kinds: readonly { what: string; find: (view: YamlView) => readonly (readonly [string, YamlView["path"]])[] }[] =
    [
      {
        what: "service",
        find: (view) =>
          view
            .at("services")
            .entries()
            .map(([name, item]) => [name, item.path] as const),
      },
      {
        what: "sink",
        find: (view) =>
          view
            .at("sinks")
            .entries()
            .map(([name, item]) => [name, item.path] as const),
      },
      {
        what: "default",
        find: (view) =>
          view
            .at("defaults")
            .entries()
            .map(([name, item]) => [name, item.path] as const),
      },
      {
        what: "policy",
        find: (view) =>
          view
            .at("policies")
            .items()
            .map((policy) => [policy.at("name").text() ?? "", policy.at("name").path] as const)
            .filter(([name]) => name !== ""),
      },
    ];
  return kinds.flatMap(({ what, find }) => {
    const first = new Map<string, string>();
    return files.flatMap(({ file, view }) =>
      find(view).flatMap(([name, path]) => {
        const place = what === "policy" ? "value" : "key";
        const known = first.get(name);
        if (known !== undefined) {
          const hint = what === "default" ? "set it in one file only" : "give one of them another name";
          return [file.problemAt(path, `the ${what} "${name}" is there twice: first in ${known}`, { hint, place })];
        }
        first.set(name, `${file.file}:${file.lineOf(path)}`);
        return [];
      }),
    );
  });
}

function tooMany(files: readonly FileView[]): Problem[] {
  const problems: Problem[] = [];
  const limits = [
    ["policies", policyLimits.policiesMax, (view: YamlView) => view.at("policies").items().length],
    ["services", policyLimits.servicesMax, (view: YamlView) => view.at("services").entries().length],
    ["sinks", policyLimits.sinksMax, (view: YamlView) => view.at("sinks").entries().length],
  ] as const;
  for (const [what, most, count] of limits) {
    const total = files.reduce((sum, { view }) => sum + count(view), 0);
    const last = files.at(-1);
    if (total > most && last !== undefined) {
      problems.push(
        problemOfFile(
          last.file.file,
          `${total} ${what} in all: ${most} is the most`,
          "split them over two installations",
        ),
      );
    }
  }
  return problems;
}
