// The `after` of a policy: which policy it follows, and after which endings. policy-rules.ts and
// chain-rules.ts check what may stand beside it. Part of policy-file.ts.
import { z } from "zod";
import { durationSchema, nameSchema } from "./primitives.ts";

/** The endings of a task, the same as in model/outcome.ts; a test compares them. */
const endings = [
  "succeeded",
  "conflicts",
  "accepted",
  "failed",
  "blocked",
  "timed-out",
  "unknown",
  "not-started",
  "skipped",
  "missed",
] as const;

/** What a policy follows. */
export const afterSchema = z
  .strictObject({
    policy: nameSchema.meta({
      description: "The policy that this one follows; it must be in the same file.",
      examples: ["masks-nightly"],
    }),
    on: z
      .array(z.enum(endings))
      .min(1)
      .max(endings.length)
      .meta({
        description:
          "The endings that every task of the predecessor's slot must have. Otherwise this policy's slot is skipped.",
        default: ["succeeded"],
        examples: [["succeeded", "conflicts"]],
      })
      .exactOptional(),
    within: durationSchema("1s", "31d")
      .meta({
        description: "How long after the predecessor's slot this one may begin. After that its slot is missed.",
        default: "1d",
        examples: ["2h"],
      })
      .exactOptional(),
  })
  .meta({
    description:
      "Starts the policy when a slot of another policy has ended, instead of a schedule of its own (docs/policy-kinds.md#chains).",
    examples: [{ policy: "masks-nightly", on: ["succeeded", "conflicts"], within: "2h" }],
  });

/** An ending that a chain may wait for. */
export type ChainEnding = (typeof endings)[number];
