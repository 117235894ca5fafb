// Takes a request target apart and compares it with the path forms of the interface. Pure. Called by the exchange and routes.
// Source: service-interface §4 (two path forms for every key), §4.1
import { Refusal } from "./reply.ts";

/**
 * The forms a path has: `key` both `/name(key)` and `/name/key`; `list` just `/name`; `count` `/name/$count`;
 * `call` `/name(arguments)` or `/name` with the arguments in the query.
 */
export type PathForm = "key" | "list" | "count" | "call";

/** A request target, decoded. */
export interface Target {
  /** The segments after the base path. */
  readonly segments: readonly string[];
  readonly parameters: URLSearchParams;
}

/**
 * Takes `/base/odata/trigger?x=1` apart. Returns undefined when it is not under the base path.
 * @throws Refusal 400 when a percent sign is followed by something else than UTF-8.
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

/** The key or arguments when the segments have the form ("" where the form has none); undefined when they do not. */
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
