// The behaviour between a slot and its outcome: catch-up, overlap, following, lost answers. The
// same keys stand in a policy and under `defaults`.
import { z } from "zod";
import { runsKept } from "../../model/unusual.ts";
import { notifySchema } from "./notify.ts";
import { durationSchema, optional, required, whole } from "./primitives.ts";

const followSchema = z.strictObject({
  until: optional(
    z.enum(["accepted", "settled", "quiet"]),
    "When a run counts as ended. `accepted`: the service took the start. `settled`: an activity shows its end (without a mapping of `finished`: as quiet). `quiet`: no new activity for `quietFor`.",
    "accepted",
    "settled",
  ),
  deadline: optional(
    durationSchema("1s", "7d"),
    "How long a run is followed; without an end it is `timed-out`.",
    "4h",
    "2h",
  ),
  quietFor: optional(
    durationSchema("1s", "1d"),
    "How long the activities must show nothing new to settle a run without a mapping of `finished`, or with `until: quiet`.",
    "2m",
    "30s",
  ),
  unreadableFor: optional(
    durationSchema("1s", "1d"),
    "When activities or conflict details cannot be read for this long, the run ends as `unknown`; so does a start without an answer.",
    "15m",
    "5m",
  ),
  blockedAfter: optional(
    z.union([z.literal("off"), durationSchema("1s", "7d")]),
    "The run is `blocked` when an approval from after its start still waits and nothing happened for this long (docs/outcomes.md#blocked). With `off`, or a time not shorter than `deadline`, approvals are not read.",
    "30m",
    "5m",
  ),
  appearsWithin: optional(
    durationSchema("1s", "1d"),
    "Longest time until a started run shows up in the activities. A start without an answer that has not shown up by then counts as `not-started`; with `onUnknown: verify` it is sent once more first (docs/outcomes.md). If too short, a sync job may run twice. Default: such a start ends as `unknown`.",
    "2m",
  ),
  conflictsMax: optional(whole(0, 1_000_000), "More new conflicts than this make the outcome `conflicts`.", 0, 0),
});

const quarantineObject = z.strictObject({
  after: required(whole(1, 100), "How many slots in a row must fail, with no good task.", 5),
  for: optional(
    durationSchema("1m", "31d"),
    "How long its slots are skipped. If the next one fails, it begins again.",
    "1d",
    "6h",
  ),
});

const quarantineSchema = z.union([z.literal("off"), quarantineObject], {
  error: (issue) =>
    typeof issue.input === "object"
      ? undefined
      : 'write { after: 5, for: 6h }, or "off" for a policy that is never left out',
});

const unusualObject = z.strictObject({
  factor: optional(
    z.number().min(1.5).max(100),
    "A run is long, or has many activities or conflicts, from so many times the usual on.",
    5,
    3,
  ),
  floor: optional(
    durationSchema("1s", "7d"),
    "A shorter run is never long. A run is short with a tenth of the usual duration, where that is at least this.",
    "30m",
    "10m",
  ),
  itemsFloor: optional(
    whole(1, 1_000_000),
    "Fewer activities or conflicts are never many. A run has few with a tenth of the usual number, where that is at least this.",
    100,
    20,
  ),
  runs: optional(whole(5, runsKept), "How many runs of the sync job must have ended well before.", 20, 10),
});

const unusualSchema = z.union([z.literal("off"), unusualObject], {
  error: (issue) =>
    typeof issue.input === "object" ? undefined : 'write { factor: 3, floor: 10m }, or "off" to judge no run',
});

/** The keys that a policy and `defaults` share. */
export const behaviourFields = {
  catchUp: optional(
    z.enum(["latest", "none", "all"]),
    "What happens to slots that came due while no scheduler ran: `latest` starts the newest for all of them, `none` nothing, `all` each.",
    "none",
    "latest",
  ),
  catchUpWindow: optional(
    durationSchema("1s", "31d"),
    "How late a slot may start. An older slot is missed. Default: 1h, or the interval of `every` when that is shorter.",
    "6h",
    "1h",
  ),
  overlap: optional(
    z.enum(["skip", "queue", "allow"]),
    "What happens while a run of the sync job goes on, whichever policy started it: `skip` the slot, `queue` behind it (any number wait, one runs at a time), or `allow` both.",
    "queue",
    "skip",
  ),
  follow: optional(followSchema, "How a started run is followed; for `run` only.", {
    until: "settled",
    deadline: "2h",
    conflictsMax: 0,
  }),
  onUnknown: optional(
    z.enum(["verify", "retry", "give-up"]),
    "What happens when the answer to a start is lost: `verify` looks for the run in the service; `give-up` ends as unknown at once; `retry` looks and, when it finds nothing, sends again, 3 times in all at most. With `retry` the sync job may run more than once.",
    "give-up",
    "verify",
  ),
  quarantine: optional(
    quarantineSchema,
    "After `after` failed slots in a row, the policy's slots are skipped for `for` (6h), until a good run by hand or `syncline resume` (docs/day-to-day.md#quarantine).",
    { after: 5, for: "6h" },
    "off",
  ),
  unusual: optional(
    unusualSchema,
    "When a `run` that ended well is unusual, against the newest 20 of its sync job (docs/outcomes.md#unusual-runs). `off`: never. Default: with the defaults of its keys.",
    { factor: 5, floor: "30m" },
  ),
  notify: notifySchema.exactOptional(),
} as const;
