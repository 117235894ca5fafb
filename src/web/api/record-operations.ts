// The operations about what is recorded: outcomes, failed tasks, changes by hand. Listed by
// operations.ts.
import * as z from "zod";
import { changesMax } from "../../model/change.ts";
import { hasLabels } from "../../model/label.ts";
import { outcomeStatuses } from "../../model/outcome.ts";
import { auditedMax, policiesNamed, readAudits } from "../../queries/audit-policy.ts";
import type { QueryContext } from "../../queries/query-context.ts";
import {
  readChanges,
  readDeclared,
  readFailedTasks,
  readGonePolicies,
  readNewestEnds,
  readOutcomes,
} from "../../queries/records.ts";
import { heldLong } from "../answer-cache.ts";
import { badRequest } from "../problem.ts";
import { toAuditAnswer } from "./answers.ts";
import {
  type ApiOperation,
  instant,
  label,
  listOf,
  nameOf,
  type OperationRequest,
  operation,
  pageOf,
  pages,
  policyOf,
  staleCursor,
} from "./operation.ts";
import * as schemas from "./schemas.ts";

const outcomeQuery = z.strictObject({
  ...pages,
  policy: nameOf.policy.optional(),
  label,
  status: z.enum(outcomeStatuses).optional(),
  service: nameOf.service.optional(),
  since: instant.optional(),
  until: instant.optional(),
});

/** Outcomes, the failed list and changes. */
export const recordOperations: readonly ApiOperation[] = [
  operation({
    path: "/outcomes",
    name: "listOutcomes",
    summary: "How tasks ended, newest first",
    isOfPolicies: true,
    query: outcomeQuery,
    answer: listOf(schemas.outcomeAnswerSchema),
    isList: true,
    read: readOutcomePage,
  }),
  operation({
    path: "/failed",
    name: "listFailed",
    summary: "Tasks that failed and may be done over, newest first",
    isOfPolicies: true,
    query: z.strictObject({ ...pages, label, since: instant.optional() }),
    answer: listOf(schemas.failedSchema),
    isList: true,
    read: async ({ context, cache }, { label: labels, since = Number.NEGATIVE_INFINITY, ...page }) => {
      const all = await cache.of("failed", context, readFailedTasks);
      const own = new Set(context.set.policies.flatMap((one) => (hasLabels(one, labels ?? "") ? [one.name] : [])));
      const { items, next } = pageOf(
        all.filter(
          ({ outcome: { policy, finishedAt } }) =>
            (labels === undefined || own.has(policy)) && Date.parse(finishedAt) >= since,
        ),
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
    path: "/audit",
    name: "auditSlots",
    summary: "Is every slot that was due recorded once? Policies by name, each of a span; see `off`",
    isOfPolicies: true,
    query: z.strictObject({
      limit: z.coerce.number().int().min(1).max(auditedMax).default(25),
      after: pages.after,
      policy: nameOf.policy.optional(),
      q: z.string().max(100).optional().meta({ description: "a part of the name, in any case" }),
      label,
      since: instant.optional(),
      until: instant.optional(),
    }),
    answer: listOf(schemas.auditSchema),
    isList: true,
    read: async ({ context }, { policy, q = "", label: labels = "", since: fromMs, until: toMs, ...page }) => {
      const named = policy === undefined ? context.set.policies : [policyOf(context, policy)];
      const all = policiesNamed(named, q).filter((one) => hasLabels(one, labels));
      const { items, next } = pageOf(all, page, ({ name }) => name);
      return { items: (await readAudits(context, items, { fromMs, toMs })).map(toAuditAnswer), next };
    },
  }),
  operation({
    path: "/declared",
    name: "listDeclared",
    summary: "The objects that apply policies declare, and how each was applied last",
    isOfPolicies: true,
    query: z.strictObject(pages),
    answer: listOf(schemas.declaredSchema),
    isList: true,
    read: async ({ context }, page) =>
      pageOf(await readDeclared(context), page, ({ policy, object }) => `${policy} ${object}`),
  }),
  operation({
    path: "/changes",
    name: "listChanges",
    summary: "What was changed or tried by hand, newest first: who, when, what and why",
    query: z.strictObject({ limit: z.coerce.number().int().min(1).max(changesMax).default(100) }),
    answer: z.object({ items: z.array(schemas.changeSchema) }),
    isList: true,
    read: async ({ context }, { limit }) => ({ items: await readChanges(context, limit) }),
  }),
];

/** A cursor: when the last outcome of the page before ended, and its task. */
const cursorPattern = /^(\d{1,16})~(.{1,250})$/s;

async function readOutcomePage(
  { context, cache }: OperationRequest,
  { policy, label: labels, status, service, limit, after, ...span }: z.output<typeof outcomeQuery>,
): Promise<unknown> {
  if (policy !== undefined) policyOf(context, policy);
  const [, atMs, id] = cursorPattern.exec(after ?? "") ?? [];
  if (after !== undefined && id === undefined) throw badRequest([{ pointer: "/after", detail: staleCursor }]);
  const asked = {
    policy,
    label: labels,
    filter: { ...(status && { statuses: new Set([status]) }), ...(service && { service }) },
    limit,
    span: { fromMs: span.since ?? Number.NEGATIVE_INFINITY, toMs: span.until ?? Number.POSITIVE_INFINITY },
    after: id === undefined ? undefined : { atMs: Number(atMs), id },
  };
  // To find those that are gone costs Redis more than all else, and they change rarely.
  const ends = async (at: QueryContext) =>
    readNewestEnds(at, await cache.of("gone policies", at, readGonePolicies, heldLong));
  const { outcomes, next } = await readOutcomes(context, asked, () => cache.of("newest ends", context, ends));
  return { items: outcomes, next: next === undefined ? null : `${next.atMs}~${next.id}` };
}
