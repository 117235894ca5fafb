// Parses a request target and matches it with the path forms of the interface. Pure; called by
// exchange.ts and routes.ts. Source: service-interface §4 (two path forms for every key), §4.1
import { Refusal } from "./reply.ts";

/**
 * The forms a path has: `key` both `/name(key)` and `/name/key`; `list` just `/name`; `count`
 * `/name/$count`; `call` `/name(arguments)` or `/name` with the arguments in the query.
 */
export type PathForm = "key" | "list" | "count" | "call";

/** A request target, decoded. */
export interface Target {
  /** The segments after the base path. */
  readonly segments: readonly string[];
  readonly parameters: URLSearchParams;
}

/**
 * Parses `/base/odata/trigger?x=1`; undefined when it is not under the base path.
 * @throws Refusal 400 for invalid percent-encoding.
 */
export function parseTarget(target: string, basePath: string): Target | undefined {
  const [path = "", ...query] = target.split("?");
  if (!path.startsWith(`${basePath}/`)) return undefined;
  const encoded = path.slice(basePath.length + 1).split("/");
  try {
    return { segments: encoded.map(decodeURIComponent), parameters: new URLSearchParams(query.join("?")) };
  } catch {
    throw new Refusal(400, "The path is not readable: a percent sign must start an encoded UTF-8 character.");
  }
}

/**
 * The key or arguments when the segments match the form ("" where it has none); undefined when they
 * do not.
 */
export function matchPath(segments: readonly string[], path: string, form: PathForm): string | undefined {
  const wanted = path.slice(1).split("/");
  const name = wanted.at(-1) ?? "";
  const isUnder = wanted.slice(0, -1).every((segment, index) => segment === segments[index]);
  if (!isUnder) return undefined;
  const own = segments[wanted.length - 1] ?? "";
  const rest = segments.slice(wanted.length);
  if (form === "list") return own === name && rest.length === 0 ? "" : undefined;
  if (form === "count") return own === name && rest.length === 1 && rest[0] === "$count" ? "" : undefined;
  const inParentheses = own.startsWith(`${name}(`) && own.endsWith(")") && rest.length === 0;
  if (inParentheses) return own.slice(name.length + 1, -1);
  if (own !== name) return undefined;
  if (form === "call") return rest.length === 0 ? "" : undefined;
  return rest.length === 1 && rest[0] !== "" ? rest[0] : undefined;
}
