// `services.NAME.identity`: whom the token stands for. Part of service.ts. Source: service-interface §2 (EcmIdentityEntity), §4.4.
import { z } from "zod";
import { textSchema } from "./primitives.ts";

/** The user or group that `syncline doctor` loads. */
export const identitySchema = z
  .strictObject({
    id: z
      .uuid({ error: (issue) => (issue.input === undefined ? undefined : "the id of an identity is a UUID") })
      .meta({ description: "Its id, a UUID.", examples: ["6f1c2a34-5b67-4c89-9d01-23456789abcd"] }),
    repository: textSchema.meta({ description: "The repository that has it.", examples: ["HR"] }),
    administrator: z
      .boolean()
      .meta({ description: "Whether it must be an administrator.", default: false, examples: [true] })
      .exactOptional(),
  })
  .meta({
    description:
      "The user or group that the token stands for. Only `syncline doctor` looks: that it can be loaded, and what it may.",
    examples: [{ id: "6f1c2a34-5b67-4c89-9d01-23456789abcd", repository: "HR", administrator: true }],
  });
