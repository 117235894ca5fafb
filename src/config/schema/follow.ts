// What holds between a slot and its outcome: catch-up, overlap, following, lost answers. Part of policy-file.ts;
// the same keys stand in a policy and under `defaults`.
import { z } from "zod";
import { notifySchema } from "./notify.ts";
import { durationSchema } from "./primitives.ts";

/** How long and how strictly a started run is watched. */
const followSchema = z
  .strictObject({
    until: z
      .enum(["accepted", "settled", "quiet"])
      .meta({
        description:
          "`accepted`: the service took the start. `settled`: an activity says that the run has ended (without a mapping of `finished`: as quiet). `quiet`: no new activity for a while.",
        default: "settled",
        examples: ["accepted"],
      })
      .exactOptional(),
    deadline: durationSchema("1s", "7d")
      .meta({ description: "How long to watch before the run is called timed-out.", default: "2h", examples: ["4h"] })
      .exactOptional(),
    quietFor: durationSchema("1s", "1d")
      .meta({
        description:
          "How long the activities must stay quiet after they grew, to settle a run that no mapping, or `until: quiet`, lets settle directly.",
        default: "30s",
        examples: ["2m"],
      })
      .exactOptional(),
    unreadableFor: durationSchema("1s", "1d")
      .meta({
        description:
          "Activities or conflict details that cannot be read for so long leave the run `unknown`, never `failed`; a start without an answer, too. Approvals do not count.",
        default: "5m",
        examples: ["15m"],
      })
      .exactOptional(),
    blockedAfter: z
      .union([z.literal("off"), durationSchema("1s", "7d")])
      .meta({
        description:
          "When an approval that appeared since the start still waits, and nothing has finished for so long, the run is `blocked` (docs/settling.md). `off`, or not shorter than `deadline`: approvals are not read.",
        default: "5m",
        examples: ["30m"],
      })
      .exactOptional(),
    appearsWithin: durationSchema("1s", "1d")
      .meta({
        description:
          "You vouch for it: an activity of every start stands in the list so soon after the service has it. Then a start without an answer, of which nothing appeared by then, is `not-started` instead of unknown, and with `onUnknown: verify` it is sent once more before that (docs/errors.md). Without it nothing shows that a start did not happen.",
        examples: ["2m"],
      })
      .exactOptional(),
    conflictsMax: z
      .int()
      .min(0)
      .max(1_000_000)
      .meta({
        description: "More new conflicts than this make the outcome `conflicts`.",
        default: 0,
        examples: [0],
      })
      .exactOptional(),
  })
  .meta({
    description: "How a started run is watched; for run only.",
    examples: [{ until: "settled", deadline: "2h", conflictsMax: 0 }],
  });

/** When a policy that fails again and again is left out for a while. */
const quarantineSchema = z
  .union(
    [
      z.literal("off"),
      z.strictObject({
        after: z
          .int()
          .min(1)
          .max(100)
          .meta({
            description: "Slots in a row that must fail; a slot of which one task went well has not failed.",
            examples: [5],
          }),
        for: durationSchema("1m", "31d")
          .meta({
            description:
              "How long its slots are skipped; then the next slot is a trial, whose failure quarantines again.",
            default: "6h",
            examples: ["1d"],
          })
          .exactOptional(),
      }),
    ],
    {
      error: (issue) =>
        typeof issue.input === "object"
          ? undefined
          : 'write { after: 5, for: 6h }, or "off" for a policy that is never left out',
    },
  )
  .meta({
    description:
      "After so many failures in a row its slots end as skipped (quarantine), until its time (`for`, 6h unless said) is up, a run by hand succeeds, its file has no `quarantine` any more, or `syncline resume`. `off` unless said. A failure is failed, timed-out, unknown or not-started, but not an expectation that is not met.",
    default: "off",
    examples: [{ after: 5, for: "6h" }],
  });

/** The keys that a policy and `defaults` share. */
export const behaviourFields = {
  catchUp: z
    .enum(["latest", "none", "all"])
    .meta({
      description:
        "Slots missed while nothing was running: `latest` starts one task for all of them, `none` starts nothing, `all` starts each.",
      default: "latest",
      examples: ["none"],
    })
    .exactOptional(),
  catchUpWindow: durationSchema("1s", "31d")
    .meta({
      description:
        "How old a missed slot may be to be caught up. Unless said: 1h, or the interval of `every` when that is shorter.",
      default: "1h",
      examples: ["6h"],
    })
    .exactOptional(),
  overlap: z
    .enum(["skip", "queue", "allow"])
    .meta({
      description:
        "When the sync job is still running, whoever started it: `skip` the slot, `queue` behind it (any number wait, one runs at a time), or `allow` both.",
      default: "skip",
      examples: ["queue"],
    })
    .exactOptional(),
  follow: followSchema.exactOptional(),
  onUnknown: z
    .enum(["verify", "retry", "give-up"])
    .meta({
      description:
        "When the answer to a start got lost: `verify` looks for the run in the service, `give-up` ends as unknown at once, `retry` looks as verify does and, when it finds nothing, sends the start again, 3 times in all at most: the sync job may then run more than once.",
      default: "verify",
      examples: ["give-up"],
    })
    .exactOptional(),
  quarantine: quarantineSchema.exactOptional(),
  notify: notifySchema.exactOptional(),
} as const;
