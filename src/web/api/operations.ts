// The operations of the API: path, parameters, answer, and what gives it. routes.ts adds them to
// the application, openapi.ts describes them. All of them only read.
import * as z from "zod";
import type { Policy } from "../../config/policy-set.ts";
import { toIso } from "../../core/instant.ts";
import { version } from "../../core/version.ts";
import { type Outcome, outcomeStatuses } from "../../model/outcome.ts";
import { readAttention } from "../../queries/attention.ts";
import { policyHealths } from "../../queries/policy-lines.ts";
import type { QueryContext } from "../../queries/query-context.ts";
import {
  readChanges,
  readFailedTasks,
  readLine,
  readOutcomes,
  readPausesInForce,
  readStoryAt,
} from "../../queries/records.ts";
import { readSlotStrips } from "../../queries/slot-strips.ts";
import type { Looks } from "../looks.ts";
import { badRequest, notFound } from "../problem.ts";
import { showAddress, toAttentionAnswer, toPauseAnswer, toPolicyAnswer, toSlotAnswer } from "./answers.ts";
import * as schemas from "./schemas.ts";

/** Where an operation looks. */
interface Asked {
  readonly context: QueryContext;
  readonly looks: Looks;
}

/** One operation. `isList`: also as NDJSON and CSV, one item a line. */
export interface Operation {
  readonly path: string;
  readonly name: string;
  readonly summary: string;
  readonly inPath: z.ZodObject;
  readonly query: z.ZodObject;
  readonly answer: z.ZodType;
  readonly isList: boolean;
  readonly read: (asked: Asked, given: Readonly<Record<string, unknown>>) => Promise<unknown>;
}

const nothing = z.strictObject({});
const instant = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));
const pages = {
  limit: z.coerce.number().int().min(1).max(1_000).default(100),
  after: z.string().max(300).optional(),
};
const slotsMax = 200;

/** One operation with the types of its parameters. */
function operation<Path extends z.ZodObject, Query extends z.ZodObject>(
  options: Pick<Operation, "path" | "name" | "summary"> & {
    readonly in?: Path;
    readonly query?: Query;
    readonly answer: z.ZodType;
    readonly isList?: true;
    readonly read: (asked: Asked, given: z.output<Path> & z.output<Query>) => Promise<unknown>;
  },
): Operation {
  const { in: path, query = nothing, isList = false, read, ...rest } = options;
  // The routes parse both before they call: what comes in is what the schemas give.
  return { ...rest, inPath: path ?? nothing, query, isList, read: read as Operation["read"] };
}

/** A page of `items`, each named by `keyOf`; a cursor is the name of the last one before it. */
function pageOf<Item>(
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

const staleCursor = "there is nothing of this name any more; begin again without it";

/** A page in the schema's words. */
function listOf(item: z.ZodType): z.ZodType {
  return z.object({ items: z.array(item), next: z.string().nullable() });
}

/** The policy of this name. @throws WebError when the asker sees none. */
export function policyOf({ set }: QueryContext, name: string): Policy {
  const policy = set.policies.find((one) => one.name === name);
  if (policy !== undefined) return policy;
  throw notFound(`there is no policy ${name}`, "/api/v1/policies lists them");
}

/** All operations, in the order of the description. */
export const operations: readonly Operation[] = [
  operation({
    path: "/policies",
    name: "listPolicies",
    summary: "All policies as they are now, by name",
    query: z.strictObject({
      ...pages,
      health: z.enum(policyHealths).optional(),
      service: z.string().optional(),
      label: z
        .string()
        .regex(/^[^=]+=.*$/, "write name=value")
        .optional(),
    }),
    answer: listOf(schemas.policySchema),
    isList: true,
    read: async ({ context, looks }, { health, service, label, ...page }) => {
      const { lines } = await looks.of("attention", context, readAttention);
      const [name = "", value = ""] = label === undefined ? [] : label.split(/=(.*)/s);
      const fitting = lines.filter(
        (line) =>
          (health === undefined || line.health === health) &&
          (service === undefined || line.policy.service === service) &&
          (label === undefined || line.policy.labels?.[name] === value),
      );
      const sorted = fitting.toSorted((a, b) => (a.policy.name < b.policy.name ? -1 : 1));
      const { items, next } = pageOf(sorted, page, (line) => line.policy.name);
      return { items: items.map(toPolicyAnswer), next };
    },
  }),
  operation({
    path: "/policies/{name}",
    name: "getPolicy",
    summary: "One policy, with its newest slots, oldest first",
    in: z.strictObject({ name: z.string() }),
    query: z.strictObject({ slots: z.coerce.number().int().min(1).max(slotsMax).default(60) }),
    answer: schemas.policyDetailSchema,
    read: async ({ context }, { name, slots }) => {
      const line = await readLine(context, policyOf(context, name));
      const strips = await readSlotStrips(context, [name], slots);
      return { policy: toPolicyAnswer(line), slots: (strips.get(name) ?? []).map(toSlotAnswer) };
    },
  }),
  operation({
    path: "/slots/{policy}/{instant}",
    name: "explainSlot",
    summary: "What became of a slot and its tasks, or of the slot nearest to an instant",
    in: z.strictObject({ policy: z.string(), instant }),
    answer: schemas.storySchema,
    read: ({ context }, { policy, instant: atMs }) => readStoryAt(context, policyOf(context, policy), atMs),
  }),
  operation({
    path: "/outcomes",
    name: "listOutcomes",
    summary: "How tasks ended, newest first",
    query: z.strictObject({
      ...pages,
      policy: z.string().optional(),
      status: z.enum(outcomeStatuses).optional(),
      service: z.string().optional(),
      since: instant.optional(),
      until: instant.optional(),
    }),
    answer: listOf(schemas.outcomeAnswerSchema),
    isList: true,
    read: readOutcomePage,
  }),
  operation({
    path: "/attention",
    name: "listAttention",
    summary: "What needs a person now, the worst first",
    answer: z.object({ items: z.array(schemas.attentionSchema), counts: z.record(z.string(), z.int()) }),
    read: async ({ context, looks }) => {
      const { items, counts } = await looks.of("attention", context, readAttention);
      return { items: items.map(toAttentionAnswer), counts: Object.fromEntries(counts) };
    },
  }),
  operation({
    path: "/services",
    name: "listServices",
    summary: "The services: breaker, patience, requests under way, policies",
    answer: z.object({ items: z.array(schemas.serviceSchema) }),
    read: readServices,
  }),
  operation({
    path: "/failed",
    name: "listFailed",
    summary: "Tasks that failed and may be done over, newest first",
    query: z.strictObject(pages),
    answer: listOf(schemas.failedSchema),
    isList: true,
    read: async ({ context, looks }, page) => {
      const { items, next } = pageOf(
        await looks.of("failed", context, readFailedTasks),
        page,
        ({ outcome }) => outcome.taskId,
      );
      return {
        items: items.map(({ outcome, isMended }) => ({ id: outcome.taskId, isCorrected: isMended, outcome })),
        next,
      };
    },
  }),
  operation({
    path: "/changes",
    name: "listChanges",
    summary: "What was changed or tried by hand, newest first: who, when, what and why",
    query: z.strictObject({ limit: pages.limit }),
    answer: z.object({ items: z.array(schemas.changeSchema) }),
    isList: true,
    read: async ({ context }, { limit }) => ({ items: await readChanges(context, limit) }),
  }),
  operation({
    path: "/pauses",
    name: "listPauses",
    summary: "The pauses and quarantines in force, newest first",
    answer: z.object({ items: z.array(schemas.pauseSchema) }),
    read: async ({ context }) => ({ items: (await readPausesInForce(context)).map(toPauseAnswer) }),
  }),
  operation({
    path: "/config",
    name: "getConfig",
    summary: "Which policies are in force, and what each process runs",
    answer: schemas.configSchema,
    read: readConfig,
  }),
];

/** A cursor: when the last outcome of the page before ended, and its task. */
const cursorPattern = /^(\d{1,16})~(.{1,250})$/s;

async function readOutcomePage(
  { context }: Asked,
  {
    policy,
    status,
    service,
    since = Number.NEGATIVE_INFINITY,
    until = Number.POSITIVE_INFINITY,
    limit,
    after,
  }: {
    readonly policy?: string | undefined;
    readonly status?: Outcome["status"] | undefined;
    readonly service?: string | undefined;
    readonly since?: number | undefined;
    readonly until?: number | undefined;
    readonly limit: number;
    readonly after?: string | undefined;
  },
): Promise<unknown> {
  if (policy !== undefined) policyOf(context, policy);
  const [, atMs, taskId] = cursorPattern.exec(after ?? "") ?? [];
  if (after !== undefined && taskId === undefined) throw badRequest([{ pointer: "/after", detail: staleCursor }]);
  const { outcomes, next } = await readOutcomes(context, {
    policy,
    filter: { ...(status && { statuses: new Set([status]) }), ...(service && { service }) },
    limit,
    span: { fromMs: since, toMs: until },
    from: taskId === undefined ? undefined : { atMs: Number(atMs), taskId },
  });
  return { items: outcomes, next: next === undefined ? null : `${next.atMs}~${next.taskId}` };
}

async function readServices({ context, looks }: Asked): Promise<unknown> {
  const { status } = await looks.of("attention", context, readAttention);
  const { set } = context;
  const items = status.services.map((one) => ({
    name: one.service,
    baseUrl: showAddress(set.services.get(one.service)?.baseUrl ?? ""),
    breaker: one.breaker,
    openSince: toIso(one.openSinceMs),
    nextProbe: toIso(one.nextProbeMs),
    failures: one.failures,
    lastFailure: one.lastFailure ?? null,
    throttledUntil: toIso(one.throttledUntilMs),
    inFlight: one.inFlight,
    policies: set.policies.filter(({ service }) => service === one.service).length,
  }));
  return { items };
}

async function readConfig({ context, looks }: Asked): Promise<unknown> {
  const { status } = await looks.of("attention", context, readAttention);
  const { contentHash: hash, files, policies, services } = context.set;
  const processes = status.config.replicas.map(({ sinceMs, rejected, where, roles, version: its, hash: runs }) => ({
    ...{ where, roles, version: its, hash: runs, since: toIso(sinceMs) ?? "" },
    rejected:
      rejected === null
        ? null
        : { since: toIso(rejected.sinceMs) ?? "", where: rejected.where, message: rejected.message },
  }));
  return { version, hash, files, policies: policies.length, services: [...services.keys()], processes };
}
