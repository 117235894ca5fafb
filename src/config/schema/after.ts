// The `after` of a policy: which policy it follows, and after which endings. Part of policy-file.ts.
// What may stand beside it and whether the chain leads anywhere is checked by rules.ts and chain-rules.ts.
import { z } from "zod";
import { durationSchema, nameSchema } from "./primitives.ts";

/** The endings of a task, as in tasks/outcome.ts, which config does not know; a test keeps the two alike. */
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
      description: "The policy that this one follows; it stands in the same file.",
      examples: ["masks-nightly"],
    }),
    on: z
      .array(z.enum(endings))
      .min(1)
      .max(endings.length)
      .meta({
        description: "The endings that every task of the predecessor's slot must have; else the slot is skipped.",
        default: ["succeeded"],
        examples: [["succeeded", "conflicts"]],
      })
      .exactOptional(),
    within: durationSchema("1s", "31d")
      .meta({
        description: "How long after the predecessor's slot this one may still begin; later it is missed.",
        default: "1d",
        examples: ["2h"],
      })
      .exactOptional(),
  })
  .meta({
    description:
      "Starts the policy when a slot of another policy has ended, instead of a schedule of its own (docs/chains.md).",
    examples: [{ policy: "masks-nightly", on: ["succeeded", "conflicts"], within: "2h" }],
  });

/** An ending that a chain may wait for. */
export type ChainEnding = (typeof endings)[number];
