// The operations about policies and their slots. Listed by operations.ts.
import * as z from "zod";
import { toIso } from "../../core/instant.ts";
import { hasLabels } from "../../model/label.ts";
import { readAttention } from "../../queries/attention.ts";
import { comingSlots } from "../../queries/coming-slots.ts";
import { policyHealths } from "../../queries/policy-lines.ts";
import {
  readHandRuns,
  readLine,
  readNowMs,
  readPausesInForce,
  readStoryAt,
  readTaskAt,
} from "../../queries/records.ts";
import { readPolicyDays, readSlots } from "../../queries/slot-strips.ts";
import { checkWhole } from "../identity.ts";
import { notFound } from "../problem.ts";
import { toDayAnswer, toHandRunAnswer, toPauseAnswer, toPolicyAnswer, toSlotAnswer, toStoryAnswer } from "./answers.ts";
import {
  type ApiOperation,
  instant,
  isAllOfLimit,
  label,
  listOf,
  nameOf,
  operation,
  pageOf,
  pages,
  policyOf,
} from "./operation.ts";
import * as schemas from "./schemas.ts";

const slotsMax = 200;
const daysKept = 400;
/** The last instant that a date can hold. */
const maxTimeMs = 8.64e15;

/** Policies, slots and pauses. */
export const policyOperations: readonly ApiOperation[] = [
  operation({
    path: "/policies",
    name: "listPolicies",
    summary: "All policies as they are now, by name",
    isOfPolicies: true,
    query: z.strictObject({
      ...pages,
      health: z.enum(policyHealths).optional(),
      service: nameOf.service.optional(),
      label,
    }),
    answer: listOf(schemas.policySchema),
    isList: true,
    read: async ({ context, cache }, { health, service, label: labels = "", ...page }) => {
      const { lines } = await cache.of("attention", context, readAttention);
      const byName = () => lines.toSorted((a, b) => (a.policy.name < b.policy.name ? -1 : 1));
      const toAnswer = () => {
        const fitting = cache
          .made(lines, "by name", byName)
          .filter(
            (line) =>
              (health === undefined || line.health === health) &&
              (service === undefined || line.policy.service === service) &&
              hasLabels(line.policy, labels),
          );
        const { items, next } = pageOf(fitting, page, (line) => line.policy.name);
        return { items: items.map(toPolicyAnswer), next };
      };
      // What one caller pages through is not kept.
      if (page.after !== undefined) return toAnswer();
      return cache.made(lines, `answer ${JSON.stringify([health, service, labels, page])}`, toAnswer);
    },
  }),
  operation({
    path: "/policies/{name}",
    name: "getPolicy",
    summary: "One policy, with its newest slots, oldest first",
    isOfPolicies: true,
    in: z.strictObject({ name: nameOf.policy }),
    query: z.strictObject({ slots: z.coerce.number().int().min(1).max(slotsMax).default(60) }),
    answer: schemas.policyDetailSchema,
    read: async ({ context }, { name, slots }) => {
      const line = await readLine(context, policyOf(context, name));
      const { slots: newest, isAll } = await readSlots(context, name, { count: slots });
      return { policy: toPolicyAnswer(line), slots: newest.toReversed().map(toSlotAnswer), isAll };
    },
  }),
  operation({
    path: "/policies/{name}/slots",
    name: "listSlots",
    summary: "What became of a policy's slots, newest first",
    isOfPolicies: true,
    in: z.strictObject({ name: nameOf.policy }),
    query: z.strictObject({
      limit: pages.limit,
      after: instant.optional(),
      since: instant.optional(),
      until: instant.optional(),
    }),
    answer: listOf(schemas.slotSchema),
    isList: true,
    read: async ({ context }, { name, limit, after = Number.POSITIVE_INFINITY, since, until = after }) => {
      policyOf(context, name);
      const span = { fromMs: since ?? 0, toMs: Math.min(until, after - 1, maxTimeMs) };
      const { slots, isAll } = await readSlots(context, name, { count: limit, ...span });
      const items = slots.map(toSlotAnswer);
      return { items, next: isAll ? null : (items.at(-1)?.slot ?? null) };
    },
  }),
  operation({
    path: "/policies/{name}/days",
    name: "listDays",
    summary: "What a policy did on each of its last days, in its own zone, oldest first",
    isOfPolicies: true,
    in: z.strictObject({ name: nameOf.policy }),
    query: z.strictObject({ days: z.coerce.number().int().min(1).max(daysKept).default(90) }),
    answer: z.object({ items: z.array(schemas.daySchema) }),
    isList: true,
    read: async ({ context }, { name, days }) => ({
      items: (await readPolicyDays(context, policyOf(context, name), days)).map(toDayAnswer),
    }),
  }),
  operation({
    path: "/policies/{name}/plan",
    name: "listComingSlots",
    summary: "The next slots of a policy, with closed times and clock changes",
    isOfPolicies: true,
    in: z.strictObject({ name: nameOf.policy }),
    query: z.strictObject({ count: z.coerce.number().int().min(1).max(slotsMax).default(20) }),
    answer: z.object({ items: z.array(schemas.comingSlotSchema) }),
    isList: true,
    read: async ({ context }, { name, count }) => {
      const slots = comingSlots(policyOf(context, name), await readNowMs(context), count);
      return { items: slots.map(({ slotMs, closed = null, dst = null }) => ({ slot: toIso(slotMs), closed, dst })) };
    },
  }),
  operation({
    path: "/policies/{name}/by-hand",
    name: "listHandRuns",
    summary: "What was started by hand of a policy, newest first; of `-`: of sync jobs without a policy",
    isOfPolicies: true,
    in: z.strictObject({ name: nameOf.policy }),
    query: z.strictObject({ limit: pages.limit }),
    answer: z.object({ items: z.array(schemas.handRunSchema), isAll: isAllOfLimit }),
    isList: true,
    read: async ({ context, caller }, { name, limit }) => {
      if (name === "-") checkWhole(caller);
      const policy = name === "-" ? undefined : policyOf(context, name).name;
      const { runs, isAll } = await readHandRuns(context, policy, limit);
      return { items: runs.map(toHandRunAnswer), isAll };
    },
  }),
  operation({
    path: "/slots/{policy}/{instant}",
    name: "explainSlot",
    summary: "What became of a slot and its tasks, or of the slot nearest to an instant",
    isOfPolicies: true,
    in: z.strictObject({ policy: nameOf.policy, instant }),
    answer: schemas.storySchema,
    read: async ({ context }, { policy, instant: atMs }) =>
      toStoryAnswer(await readStoryAt(context, policyOf(context, policy), atMs)),
  }),
  operation({
    path: "/tasks/{id}",
    name: "explainTask",
    summary: "What became of one task, of a slot or by hand",
    isOfPolicies: true,
    in: z.strictObject({ id: nameOf.task }),
    answer: schemas.storySchema,
    read: async ({ context }, { id }) => {
      const story = await readTaskAt(context, id);
      if (story !== undefined) return toStoryAnswer(story);
      throw notFound(`nothing is known of a task ${id}`, "/api/v1/outcomes lists those that have ended");
    },
  }),
  operation({
    path: "/pauses",
    name: "listPauses",
    summary: "The pauses and quarantines in force, newest first",
    isOfPolicies: true,
    answer: z.object({ items: z.array(schemas.pauseSchema) }),
    read: async ({ context, cache }) => {
      const pauses = await cache.of("pauses", context, readPausesInForce);
      return cache.made(pauses, "answer", () => ({ items: pauses.map(toPauseAnswer) }));
    },
  }),
];
