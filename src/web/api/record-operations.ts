// The operations about what is recorded: outcomes, failed tasks, changes by hand. Listed by
// operations.ts.
import * as z from "zod";
import { type Outcome, outcomeStatuses } from "../../model/outcome.ts";
import { readChanges, readFailedTasks, readOutcomes } from "../../queries/records.ts";
import { badRequest } from "../problem.ts";
import {
  type Asked,
  instant,
  listOf,
  type Operation,
  operation,
  pageOf,
  pages,
  policyOf,
  staleCursor,
} from "./operation.ts";
import * as schemas from "./schemas.ts";

/** Outcomes, the failed list and changes. */
export const recordOperations: readonly Operation[] = [
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
