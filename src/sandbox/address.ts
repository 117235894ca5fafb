// Parses the address of a request: path, key, query options, literals. Every mistake is a Refusal
// with 400. Pure. Source: service-interface §4 (two path forms for every key), §4.1
import { Refusal } from "./reply.ts";

/** `key`: `/name(key)` and `/name/key`; `call`: `/name(arguments)`, or in the query. */
export type PathForm = "key" | "list" | "count" | "call";

/** A request target, decoded. */
export interface Target {
  /** The segments after the base path. */
  readonly segments: readonly string[];
  readonly parameters: URLSearchParams;
}

/** Parses `/base/odata/trigger?x=1`; undefined outside of the base path. @throws Refusal 400 */
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

/** The key or arguments when the segments match the form, "" for none; undefined otherwise. */
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

/** Every other `$` option is refused. */
type QueryOption = "$select" | "$expand" | "$skip" | "$skiptoken";

interface ODataQuery {
  /** The chosen properties; undefined: all. */
  readonly select: readonly string[] | undefined;
  readonly skip: number;
  readonly skipToken: string | undefined;
}

/** Reads the query options; `$expand` expands nothing (its own choice). @throws Refusal 400 */
export function parseQuery(parameters: URLSearchParams, allowed: readonly QueryOption[]): ODataQuery {
  for (const name of new Set(parameters.keys())) {
    if (!name.startsWith("$")) continue;
    const known = allowed.some((option) => option === name);
    if (!known) throw new Refusal(400, `The query option '${name}' is not supported here.`);
    if (parameters.getAll(name).length > 1) throw new Refusal(400, `The query option '${name}' is given twice.`);
  }
  return {
    select: parseSelect(parameters.get("$select")),
    skip: parseSkip(parameters.get("$skip")),
    skipToken: parameters.get("$skiptoken") ?? undefined,
  };
}

/** Checks the chosen properties against those of the entity type. @throws Refusal 400 */
export function checkSelect(select: readonly string[] | undefined, properties: readonly string[]): void {
  const unknown = select?.find((name) => name !== "*" && !properties.includes(name));
  if (unknown !== undefined) throw new Refusal(400, `Could not find a property named '${unknown}'.`);
}

/** Selects properties of an entity; all of them without a choice or with `*`. */
export function applySelect(
  entity: Readonly<Record<string, unknown>>,
  select: readonly string[] | undefined,
): Readonly<Record<string, unknown>> {
  if (select === undefined || select.includes("*")) return entity;
  return Object.fromEntries(Object.entries(entity).filter(([name]) => select.includes(name)));
}

/** Reads a numeric key. @throws Refusal 400 */
export function parseKey(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new Refusal(400, `The key '${text.slice(0, 64)}' is not a number.`);
  return Number(text);
}

/** Reads an OData string literal (`'it''s'`) when it is quoted, or the text as it stands. */
export function unquote(text: string): string {
  const quoted = /^'((?:[^']|'')*)'$/.exec(text);
  return quoted === null ? text : (quoted[1] ?? "").replaceAll("''", "'");
}

/** Reads `name=value,name='it''s, fine'` into pairs; values still quoted. @throws Refusal 400 */
export function parseNamedArguments(text: string): ReadonlyMap<string, string> {
  const pairs = new Map<string, string>();
  let rest = text.trim();
  while (rest !== "") {
    const match = /^(\w+)\s*=\s*('(?:[^']|'')*'|[^',]*)\s*(?:,\s*|$)/.exec(rest);
    const name = match?.[1];
    if (match === null || name === undefined) throw new Refusal(400, "The arguments must be name=value, name=value.");
    if (pairs.has(name)) throw new Refusal(400, `The argument '${name}' is given twice.`);
    pairs.set(name, (match[2] ?? "").trim());
    rest = rest.slice(match[0].length);
  }
  return pairs;
}

function parseSelect(text: string | null): readonly string[] | undefined {
  if (text === null) return undefined;
  const names = text.split(",").map((name) => name.trim());
  if (names.includes("")) throw new Refusal(400, "The query option '$select' has an empty property name.");
  return names;
}

function parseSkip(text: string | null): number {
  if (text === null) return 0;
  if (!/^\d{1,9}$/.test(text)) throw new Refusal(400, "The query option '$skip' must be a whole number.");
  return Number(text);
}

/**
 * Every operation of the service.
 * Source: service-interface §4.1
 */
export const operationNames = [
  "GetSyncJobById",
  "UpdateSyncJobById",
  "DeleteSyncJobById",
  "RunSyncJob",
  "EnableSyncJobById",
  "UpdateEcmDocumentMaskById",
  "GetJobMasks",
  "UpdateDriveSyncTargetById",
  "UpdateSiteSyncTargetById",
  "GetApprovals",
  "GetIdentityById",
  "GetTriggers",
  "GetAuthActivities",
  "GetActivities",
  "GetConflictDetails",
] as const;

/** The name of one operation of the service. */
export type OperationName = (typeof operationNames)[number];
