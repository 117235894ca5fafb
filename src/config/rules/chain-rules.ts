// The rules for chains of policies. They need all files: a missing predecessor or a circle shows
// only in the whole. They skip what the schema reports. Called by load-policies.ts.
import { policyDefaults } from "../defaults.ts";
import { mergeDefaults } from "../merge-defaults.ts";
import type { Problem } from "../problem.ts";
import { viewOf, type YamlView } from "../yaml/view.ts";
import type { Path, YamlFile } from "../yaml/yaml-file.ts";
import { didYouMean } from "../yaml/yaml-hints.ts";
import { policyLimits } from "./policy-limits.ts";

interface FileView {
  readonly file: YamlFile;
  /** The policies of the file by name; of two with one name, the first. */
  readonly policies: ReadonlyMap<string, YamlView>;
}

/**
 * Applies the rules for chains. `isWhole` is false when a file could not be read: it may hold what
 * is missing.
 */
export function checkChains(files: readonly YamlFile[], isWhole: boolean): readonly Problem[] {
  const defaults = mergeDefaults(files.map((file) => viewOf(file.value)));
  const views = files.map((file) => ({ file, policies: policiesOf(file) }));
  return views.flatMap((view) =>
    [...view.policies].flatMap(([name, policy]) => {
      const context = { name, policy, view, views, defaults, isWhole };
      const found = predecessorProblem(context);
      return found === undefined ? [] : [view.file.problemAt(found.path, found.message, { hint: found.hint })];
    }),
  );
}

interface ChainContext {
  readonly name: string;
  readonly policy: YamlView;
  readonly view: FileView;
  readonly views: readonly FileView[];
  readonly defaults: YamlView;
  readonly isWhole: boolean;
}

interface Found {
  readonly path: Path;
  readonly message: string;
  readonly hint: string | undefined;
}

function predecessorProblem(context: ChainContext): Found | undefined {
  const { name, policy, view } = context;
  const { path, text } = policy.at("after").at("policy");
  const wanted = text();
  if (wanted === undefined || view.file.unresolved.some((one) => JSON.stringify(one) === JSON.stringify(path))) return;
  const at = (message: string, hint: string | undefined) => ({ path, message, hint });
  if (wanted === name) return at("a policy cannot follow itself", "name the policy that must have ended before");
  const predecessor = view.policies.get(wanted);
  if (predecessor === undefined) return absent(wanted, context, path);
  const chain = chainOf(name, view.policies);
  if (chain.isCircle) {
    // Reported once, at the member that comes first.
    const first = [...view.policies.keys()].find((one) => chain.names.includes(one));
    if (first !== name || !chain.names.slice(1).includes(name)) return undefined;
    return at(
      `${chain.names.join(" follows ")}: a circle never starts`,
      "give one of them a schedule instead of after",
    );
  }
  if (chain.names.length > policyLimits.chainPoliciesMax)
    return at(
      `it is the end of a chain that is too long: ${policyLimits.chainPoliciesMax} policies are the most`,
      undefined,
    );
  if (!predecessor.at("after").isPresent && !predecessor.at("schedule").isPresent)
    return at(`${wanted} has no schedule, so nothing ever starts this chain`, `give ${wanted} a schedule`);
  return neverEndsSo(wanted, predecessor, context);
}

function absent(wanted: string, { view, views, isWhole }: ChainContext, path: Path): Found | undefined {
  const elsewhere = views.find(({ policies }) => policies.has(wanted));
  const place = elsewhere?.policies.get(wanted);
  if (elsewhere !== undefined && place !== undefined) {
    const where = `${elsewhere.file.file}:${elsewhere.file.lineOf(place.path)}`;
    const message = `"${wanted}" stands in another file, ${where}: a chain stands in one file`;
    return { path, message, hint: "move the policies of a chain into one file" };
  }
  if (!isWhole) return undefined;
  const hint = didYouMean(wanted, [...view.policies.keys()]);
  return { path, message: `there is no policy "${wanted}"`, hint };
}

/**
 * The names from a policy to the start of its chain. In a circle the last name is a repeated one.
 */
function chainOf(
  name: string,
  policies: ReadonlyMap<string, YamlView>,
): { names: readonly string[]; isCircle: boolean } {
  const names = [name];
  let next = policies.get(name)?.at("after").at("policy").text();
  while (next !== undefined && names.length <= policyLimits.chainPoliciesMax) {
    const isCircle = names.includes(next);
    names.push(next);
    if (isCircle) return { names, isCircle };
    next = policies.get(next)?.at("after").at("policy").text();
  }
  return { names, isCircle: false };
}

/** A run that is not followed ends as `accepted`, never as `succeeded`. */
function neverEndsSo(wanted: string, predecessor: YamlView, { policy, defaults }: ChainContext): Found | undefined {
  const on = policy.at("after").at("on");
  const endings = on.isPresent ? on.items().map((item) => item.text()) : ["succeeded"];
  const untilOf = (view: YamlView) => view.at("follow").at("until").text();
  const until = untilOf(predecessor) ?? untilOf(defaults) ?? policyDefaults.followUntil;
  if (!predecessor.at("run").isPresent || until !== "accepted") return undefined;
  if (endings.includes("accepted") || !endings.includes("succeeded")) return undefined;
  const { path } = on.isPresent ? on : policy.at("after").at("policy");
  const hint = `add accepted to on, or let ${wanted} follow its runs to their end`;
  return { path, message: `${wanted} is not followed, so it ends as accepted and never as succeeded`, hint };
}

function policiesOf(file: YamlFile): ReadonlyMap<string, YamlView> {
  const policies = new Map<string, YamlView>();
  for (const policy of viewOf(file.value).at("policies").items()) {
    const name = policy.at("name").text();
    if (name !== undefined && !policies.has(name)) policies.set(name, policy);
  }
  return policies;
}
