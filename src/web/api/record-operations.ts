// The operations about what is recorded: outcomes, failed tasks, changes by hand. Listed by
// operations.ts.
import * as z from "zod";
import { changesMax } from "../../model/change.ts";
import { hasLabels } from "../../model/label.ts";
import { outcomeStatuses } from "../../model/outcome.ts";
import { isByHand } from "../../model/task.ts";
import { auditedMax, policiesNamed, readAudits } from "../../queries/audit-policy.ts";
import type { QueryContext } from "../../queries/query-context.ts";
import {
  failedLookedAt,
  type OutcomePage,
  placeOfFailed,
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
  cutTo,
  hiddenWhenNarrowed,
  instant,
  isAllOfLimit,
  isAllUnless,
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

const failedQuery = z.strictObject({ ...pages, label, since: instant.optional() });

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
    query: failedQuery,
    answer: z.object({
      items: z.array(schemas.failedSchema),
      next: z.string().nullable(),
      isAll: isAllUnless(`only ${failedLookedAt} were looked at`),
    }),
    isList: true,
    read: readFailedPage,
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
    answer: z.object({
      items: z.array(schemas.changeSchema).meta({ description: hiddenWhenNarrowed }),
      isAll: isAllOfLimit,
    }),
    isList: true,
    read: async ({ context }, { limit }) => {
      const { items, isAll } = cutTo(await readChanges(context, limit + 1), limit);
      return { items, isAll: isAll && !context.view.isNarrowed };
    },
  }),
];

/** A cursor: when the last outcome of the page before ended, and its task, which may be gone. */
const cursorPattern = /^(\d{1,16})~(.{1,250})$/s;

function placeIn(after: string | undefined): OutcomePage["after"] {
  const [, atMs, id] = cursorPattern.exec(after ?? "") ?? [];
  if (after !== undefined && id === undefined) throw badRequest([{ pointer: "/after", detail: staleCursor }]);
  return id === undefined ? undefined : { atMs: Number(atMs), id };
}

function cursorAt(place: OutcomePage["after"]): string | null {
  return place === undefined ? null : `${place.atMs}~${place.id}`;
}

async function readFailedPage(
  { context, cache }: OperationRequest,
  { label: labels, since = Number.NEGATIVE_INFINITY, limit, after }: z.output<typeof failedQuery>,
): Promise<unknown> {
  const place = placeIn(after) ?? { atMs: Number.POSITIVE_INFINITY, id: "" };
  const own = new Set(context.set.policies.flatMap((one) => (hasLabels(one, labels ?? "") ? [one.name] : [])));
  const { tasks, isAll } = await cache.of("failed", context, readFailedTasks);
  const fitting = tasks.filter((task) => {
    const { policy, finishedAt } = task.outcome;
    if ((labels !== undefined && !own.has(policy)) || Date.parse(finishedAt) < since) return false;
    const { atMs, id } = placeOfFailed(task);
    return atMs < place.atMs || (atMs === place.atMs && id < place.id);
  });
  const page = fitting.slice(0, limit);
  const last = fitting.length > limit ? page.at(-1) : undefined;
  const items = page.map(({ outcome, isMended }) => ({ id: outcome.taskId, isCorrected: isMended, outcome }));
  return { items, next: cursorAt(last && placeOfFailed(last)), isAll };
}

async function readOutcomePage(
  { context, cache }: OperationRequest,
  { policy, label: labels, status, service, limit, after, ...span }: z.output<typeof outcomeQuery>,
): Promise<unknown> {
  // To find those that are gone costs Redis more than all else, and they change rarely.
  const gone = (at: QueryContext) => cache.of("gone policies", at, readGonePolicies, heldLong);
  if (policy !== undefined) await checkNamed(context, policy, gone);
  const asked = {
    policy,
    label: labels,
    filter: { ...(status && { statuses: new Set([status]) }), ...(service && { service }) },
    limit,
    span: { fromMs: span.since ?? Number.NEGATIVE_INFINITY, toMs: span.until ?? Number.POSITIVE_INFINITY },
    after: placeIn(after),
  };
  const ends = async (at: QueryContext) => readNewestEnds(at, await gone(at));
  const { outcomes, next } = await readOutcomes(context, asked, () => cache.of("newest ends", context, ends));
  return { items: outcomes, next: cursorAt(next) };
}

/**
 * Outcomes also have the names of policies that are gone, and those in place of one.
 * @throws WebError for any other name, and for one that the caller does not see.
 */
async function checkNamed(
  context: QueryContext,
  name: string,
  gone: (at: QueryContext) => Promise<readonly string[]>,
): Promise<void> {
  const isOwn = context.set.policies.some((policy) => policy.name === name);
  if (isOwn || (!context.view.isNarrowed && (isByHand(name) || (await gone(context)).includes(name)))) return;
  policyOf(context, name);
}
