// The behaviour between a slot and its outcome: catch-up, overlap, following, lost answers. The
// same keys stand in a policy and under `defaults`. Part of policy-file.ts.
import { z } from "zod";
import { notifySchema } from "./notify.ts";
import { durationSchema } from "./primitives.ts";

/** How a started run is followed. */
const followSchema = z
  .strictObject({
    until: z
      .enum(["accepted", "settled", "quiet"])
      .meta({
        description:
          "When a run counts as ended. `accepted`: the service took the start. `settled`: an activity shows its end (without a mapping of `finished`: as quiet). `quiet`: no new activity for `quietFor`.",
        default: "settled",
        examples: ["accepted"],
      })
      .exactOptional(),
    deadline: durationSchema("1s", "7d")
      .meta({
        description: "How long a run is followed. One without an end by then is `timed-out`.",
        default: "2h",
        examples: ["4h"],
      })
      .exactOptional(),
    quietFor: durationSchema("1s", "1d")
      .meta({
        description:
          "How long the activities must show nothing new to settle a run without a mapping of `finished`, or with `until: quiet`.",
        default: "30s",
        examples: ["2m"],
      })
      .exactOptional(),
    unreadableFor: durationSchema("1s", "1d")
      .meta({
        description:
          "When activities or conflict details cannot be read for this long, the run ends as `unknown`, never as `failed`; so does a start without an answer. Approvals do not count.",
        default: "5m",
        examples: ["15m"],
      })
      .exactOptional(),
    blockedAfter: z
      .union([z.literal("off"), durationSchema("1s", "7d")])
      .meta({
        description:
          "The run is `blocked` when an approval from after its start still waits, and nothing has finished for this long (docs/outcomes.md). With `off`, or a time not shorter than `deadline`, approvals are not read.",
        default: "5m",
        examples: ["30m"],
      })
      .exactOptional(),
    appearsWithin: durationSchema("1s", "1d")
      .meta({
        description:
          "Longest time until a started run shows up in the activities. A start without an answer that has not shown up by then counts as `not-started`; with `onUnknown: verify` it is sent once more first (docs/outcomes.md). If the time is too short, a sync job may run twice. Default: not known, so such a start ends as `unknown`.",
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
    description: "How a started run is followed; for `run` only.",
    examples: [{ until: "settled", deadline: "2h", conflictsMax: 0 }],
  });

/** When a policy that keeps failing is left out for a while. */
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
            description: "How many slots in a row must fail. A slot with one good task has not failed.",
            examples: [5],
          }),
        for: durationSchema("1m", "31d")
          .meta({
            description:
              "How long its slots are skipped. The next slot is a trial: if it fails, the quarantine begins again.",
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
      "After this many failed slots in a row, the policy's slots are skipped (quarantine). It ends after `for` (default 6h), after a good run by hand, when the file has no `quarantine` any more, or with `syncline resume`. Failures are failed, timed-out, unknown and not-started, but not a poll's unmet expectation. Default: `off`.",
    default: "off",
    examples: [{ after: 5, for: "6h" }],
  });

/** The keys that a policy and `defaults` share. */
export const behaviourFields = {
  catchUp: z
    .enum(["latest", "none", "all"])
    .meta({
      description:
        "What happens to slots that came due while no scheduler ran: `latest` starts one task for all of them, `none` starts nothing, `all` starts each.",
      default: "latest",
      examples: ["none"],
    })
    .exactOptional(),
  catchUpWindow: durationSchema("1s", "31d")
    .meta({
      description:
        "How late a slot may start. An older slot is missed. Default: 1h, or the interval of `every` when that is shorter.",
      default: "1h",
      examples: ["6h"],
    })
    .exactOptional(),
  overlap: z
    .enum(["skip", "queue", "allow"])
    .meta({
      description:
        "What happens while a run of the sync job is not over, whichever policy started it: `skip` the slot, `queue` behind the run (any number wait, one runs at a time), or `allow` both.",
      default: "skip",
      examples: ["queue"],
    })
    .exactOptional(),
  follow: followSchema.exactOptional(),
  onUnknown: z
    .enum(["verify", "retry", "give-up"])
    .meta({
      description:
        "What happens when the answer to a start is lost: `verify` looks for the run in the service; `give-up` ends as unknown at once; `retry` looks as well and, when it finds nothing, sends the start again, at most 3 times in all. With `retry` the sync job may run more than once.",
      default: "verify",
      examples: ["give-up"],
    })
    .exactOptional(),
  quarantine: quarantineSchema.exactOptional(),
  notify: notifySchema.exactOptional(),
} as const;
