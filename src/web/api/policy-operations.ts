// The operations about policies and their slots. Listed by operations.ts.
import * as z from "zod";
import { readAttention } from "../../queries/attention.ts";
import { policyHealths } from "../../queries/policy-lines.ts";
import { readLine, readPausesInForce, readStoryAt } from "../../queries/records.ts";
import { readSlotStrips } from "../../queries/slot-strips.ts";
import { toPauseAnswer, toPolicyAnswer, toSlotAnswer } from "./answers.ts";
import { instant, listOf, type Operation, operation, pageOf, pages, policyOf } from "./operation.ts";
import * as schemas from "./schemas.ts";

const slotsMax = 200;

/** Policies, slots and pauses. */
export const policyOperations: readonly Operation[] = [
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
    path: "/pauses",
    name: "listPauses",
    summary: "The pauses and quarantines in force, newest first",
    answer: z.object({ items: z.array(schemas.pauseSchema) }),
    read: async ({ context }) => ({ items: (await readPausesInForce(context)).map(toPauseAnswer) }),
  }),
];
