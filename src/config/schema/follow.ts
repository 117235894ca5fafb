// The behaviour between a slot and its outcome: catch-up, overlap, following, lost answers. The
// same keys stand in a policy and under `defaults`.
import { z } from "zod";
import { runsKept } from "../../model/unusual.ts";
import { notifySchema } from "./notify.ts";
import { durationForm, durationSchema, maybe, optional, required, whole } from "./primitives.ts";

const followSchema = z.strictObject({
  until: optional(
    z.enum(["accepted", "settled", "quiet"]),
    "When a run counts as ended. `accepted`: the service took the start. `settled`: an activity shows its end (not mapped: `quiet`). `quiet`: nothing new or changed for `quietFor`, and no activity is known to go on.",
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
    "How long activities and conflicts must show nothing new or changed, for `quiet` and where no end is mapped.",
    "2m",
    "30s",
  ),
  unreadableFor: optional(
    durationSchema("1s", "1d"),
    "A run whose activities or conflict details cannot be read for so long is `unknown`; so is a start without an answer.",
    "15m",
    "5m",
  ),
  blockedAfter: optional(
    z.union([z.literal("off"), durationSchema("1s", "7d")], {
      error: (issue) => (typeof issue.input === "number" ? `${durationForm}; or it is off` : undefined),
    }),
    "The run is `blocked` when an approval waits and nothing happened for so long (docs/outcomes.md#blocked). `off`: approvals are not read.",
    "30m",
    "5m",
  ),
  appearsWithin: optional(
    durationSchema("1s", "1d"),
    "Longest time until a started run shows up in the activities, which are read before each start. Then a start without an answer is sent once more, or `not-started` (docs/outcomes.md): if too short, a sync job runs twice. Default: it ends as `unknown`.",
    "2m",
  ),
  conflictsMax: optional(
    whole(0, 1_000_000),
    "More new conflicts make the outcome `conflicts`; more open ones, the policy's health.",
    0,
    0,
  ),
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
    "Of slots that came due while no scheduler ran `latest` starts the newest for all, `none` none, `all` each.",
    "none",
    "latest",
  ),
  catchUpWindow: optional(
    durationSchema("1s", "31d"),
    "How late a slot may be planned; then it is missed. Default: 1h, or a shorter interval of `every`.",
    "6h",
    "1h",
  ),
  overlap: optional(
    z.enum(["skip", "queue", "allow"]),
    "While a run of the sync job goes on, of any policy: `skip` the slot, `queue` behind it (any number may wait), or `allow` both.",
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
    "When the answer to a start is lost, `verify` looks for the run; `give-up` ends as unknown; `retry` sends again when it sees none, 3 requests in all: the sync job may run more than once.",
    "give-up",
    "verify",
  ),
  quarantine: optional(
    quarantineSchema,
    "After `after` failed slots in a row, slots are skipped for `for` (6h), or until a good run by hand (docs/day-to-day.md#quarantine).",
    { after: 5, for: "6h" },
    "off",
  ),
  unusual: optional(
    unusualSchema,
    "When a good run is unusual (docs/outcomes.md#unusual-runs). `off`: never. Default: by the defaults of its keys.",
    { factor: 5, floor: "30m" },
  ),
  notify: maybe(notifySchema),
} as const;
