// What an operation of the API is, and what operations share: parameters, pages, the policy of a
// name.
import * as z from "zod";
import type { Policy } from "../../config/policy-set.ts";
import { lastInstantMs } from "../../core/instant.ts";
import type { QueryContext } from "../../queries/query-context.ts";
import type { AnswerCache } from "../answer-cache.ts";
import type { Caller } from "../identity.ts";
import { badRequest, notFound } from "../problem.ts";

/** Where an operation looks. */
export interface OperationRequest {
  readonly context: QueryContext;
  readonly cache: AnswerCache;
  readonly caller: Caller;
}

/**
 * One operation. `isList`: also as NDJSON and CSV, one item a line. `isOfPolicies`: it tells of the
 * policies of the caller's view alone; without it, callers who are held to labels are refused.
 */
export interface ApiOperation {
  readonly path: string;
  readonly name: string;
  readonly summary: string;
  readonly inPath: z.ZodObject;
  readonly query: z.ZodObject;
  readonly answer: z.ZodType;
  readonly isList: boolean;
  readonly isOfPolicies: boolean;
  readonly read: (request: OperationRequest, given: Readonly<Record<string, unknown>>) => Promise<unknown>;
}

/** No parameters. */
const nothing = z.strictObject({});
const firstInstantMs = Date.parse("0000-01-01T00:00:00Z");
/** An instant, as ISO 8601 has it; read as milliseconds. */
export const instant = z.iso
  .datetime({ offset: true })
  .meta({ examples: ["2026-11-21T02:30:00Z"] })
  .transform((text) => Date.parse(text))
  .refine((ms) => ms >= firstInstantMs && ms <= lastInstantMs, "write a time in the years 0 to 9999, UTC");
/** The parameters of a page. */
export const pages = {
  limit: z.coerce.number().int().min(1).max(1_000).default(100),
  after: z.string().max(300).optional(),
};

/** Names in paths and queries, with what the description shows of them. */
export const nameOf = {
  policy: text(200, "invoices"),
  service: text(200, "main"),
  repository: text(200, "HR"),
  task: text(250, "invoices__run__42__m1795228200123"),
};

function text(charactersMax: number, example: string): z.ZodString {
  const given = z.string().max(charactersMax);
  return given.meta({ examples: [example] });
}

/** The labels that policies must have, `team=hr` or `stage=prod,team=hr`. */
export const label = z
  .string()
  .max(1_000)
  .regex(/^[^=,]+=[^=,]+(,[^=,]+=[^=,]+)*$/, "write name=value, several with commas")
  .meta({ examples: ["team=finance"] })
  .optional();

/** One operation with the types of its parameters. */
export function operation<Path extends z.ZodObject, Query extends z.ZodObject>(
  options: Pick<ApiOperation, "path" | "name" | "summary" | "answer"> & {
    readonly in?: Path;
    readonly query?: Query;
    readonly isList?: true;
    readonly isOfPolicies?: true;
    readonly read: (request: OperationRequest, given: z.output<Path> & z.output<Query>) => Promise<unknown>;
  },
): ApiOperation {
  const { in: path, query: given = nothing, isList = false, isOfPolicies = false, read, ...rest } = options;
  const query = isList ? given.extend({ format: z.enum(["json", "ndjson", "csv"]).optional() }) : given;
  // The routes parse both before they call: what comes in is what the schemas give.
  return { ...rest, inPath: path ?? nothing, query, isList, isOfPolicies, read: read as ApiOperation["read"] };
}

/** A page of `items`, each named by `keyOf`; a cursor is the name of the last one before it. */
export function pageOf<Item>(
  items: readonly Item[],
  { limit, after }: { readonly limit: number; readonly after?: string | undefined },
  keyOf: (item: Item) => string,
): { readonly items: readonly Item[]; readonly next: string | null } {
  const at = after === undefined ? -1 : items.findIndex((item) => keyOf(item) === after);
  if (after !== undefined && at === -1) throw badRequest([{ pointer: "/after", detail: staleCursor }]);
  const page = items.slice(at + 1, at + 1 + limit);
  const last = page.at(-1);
  return { items: page, next: at + 1 + limit < items.length && last !== undefined ? keyOf(last) : null };
}

/** What a cursor is told that leads nowhere. */
export const staleCursor = "there is nothing of this name any more; begin again without it";

/** A page in the schema's words. */
export function listOf(item: z.ZodType): z.ZodType {
  return z.object({ items: z.array(item), next: z.string().nullable() });
}

/** Whether a list has nothing more; `otherwise`: what false means. */
export function isAllUnless(otherwise: string): z.ZodType {
  const description = `false: ${otherwise}; as NDJSON or CSV in the header Syncline-Is-All, where false`;
  return z.boolean().meta({ description });
}

/** The same of a list that has a limit and no pages. */
export const isAllOfLimit = isAllUnless("there is or may be more; a greater limit may show it");

/** The first of a list, of which one more was read than is shown. */
export function cutTo<Item>(found: readonly Item[], limit: number) {
  return { items: found.slice(0, limit), isAll: found.length <= limit };
}

/** Said of what tells of more than some services. */
export const hiddenWhenNarrowed = "empty for a caller who is held to services";

/** The policy of this name. @throws WebError when the caller sees none. */
export function policyOf({ set }: QueryContext, name: string): Policy {
  const policy = set.policies.find((one) => one.name === name);
  if (policy !== undefined) return policy;
  throw notFound(`there is no policy ${name}`, "/api/v1/policies lists them");
}
