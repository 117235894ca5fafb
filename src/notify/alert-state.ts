// The alert state: what the notifier remembers of each policy and service, and what each sink was
// told. store/notify-store.ts keeps it as text; decide.ts and decide-service.ts change it. A
// healthy policy without waiting notices has none.
import * as z from "zod";
import { parseVersioned } from "../core/newer-version.ts";

/** How a task ended, as far as alerts go. `good`: it did its work. */
export const healths = ["good", "conflicts", "blocked", "missed", "unknown", "failing"] as const;

/** One of the six, from best to worst. */
export type PolicyHealth = (typeof healths)[number];

/** What a sink was told, where that is not `good`. */
export type BadHealth = Exclude<PolicyHealth, "good">;

const badFates = ["conflicts", "blocked", "missed", "unknown", "failing"] as const;

const briefSchema = z.object({
  key: z.string(),
  at: z.iso.datetime(),
  status: z.string(),
  reason: z.string(),
  detail: z.string(),
  target: z.string(),
  slot: z.iso.datetime(),
  newConflicts: z.int().nullable(),
});

/** What a notice says of an ending. `key`: its id, the same whenever it is read. */
export type Brief = Readonly<z.infer<typeof briefSchema>>;

const targetSchema = z.object({
  health: z.enum(healths),
  conflicts: z.int(),
  slotMs: z.int(),
  sinceMs: z.int(),
  inRow: z.int(),
  outage: z.int().exactOptional(),
  brief: briefSchema,
});

/**
 * The alert state of one target of a policy, by its last ending (`brief`). `sinceMs`: since when it
 * ends so. `inRow`: in how many slots in a row it failed. `outage`: the start of the service outage
 * that it counts to.
 */
export type TargetState = Readonly<z.infer<typeof targetSchema>>;

const toldSchema = z.object({ health: z.enum(badFates), sinceMs: z.int(), target: z.string() });

const policySchema = z.object({
  v: z.literal(1),
  targets: z.record(z.string(), targetSchema),
  told: z.record(z.string(), toldSchema),
  masks: z.object({ slotMs: z.int(), syncJobs: z.array(z.string()) }).nullable(),
  silent: z.object({ sinceMs: z.int(), sinks: z.array(z.string()) }).nullable(),
});

/**
 * The alert state of a policy (version 1). `targets`: those whose last ending was not good, '' for
 * a slot without tasks. `told`: for each sink what it was told last, where that is not good: of
 * which target, and since when. `masks`: the sync jobs that the masks named for the newest slot.
 * `stale`: the sinks that were told of no success since then.
 */
export type PolicyAlertState = Readonly<z.infer<typeof policySchema>>;

const serviceSchema = z.object({
  v: z.literal(1),
  phase: z.enum(["calm", "window", "down"]),
  sinceMs: z.int(),
  policies: z.array(z.string()),
  count: z.int(),
  good: z.int(),
  upMs: z.int().nullable(),
  hadBreaker: z.boolean(),
  sinks: z.array(z.string()),
  reason: z.string(),
  endedMs: z.int().nullable(),
  token: z.int().nullable(),
});

/**
 * The alert state of a service (version 1). `window`: failures since `sinceMs` may be an outage.
 * `down`: `sinks` were told of an outage. `count`: failed policies; `policies`: the first 200 of
 * them. `good`: endings since then that show it alive. `upMs`: since when it seems healthy.
 * `endedMs`: the end of the last outage. `token`: the expiry that was reported.
 */
export type ServiceAlertState = Readonly<z.infer<typeof serviceSchema>>;

/**
 * How many policies of an outage are kept by name. More failures than this are an outage in any
 * case.
 */
export const namedPoliciesMax = 200;

/** A policy without any events. */
const freshPolicy: PolicyAlertState = {
  v: 1,
  targets: {},
  told: {},
  masks: null,
  silent: null,
};

/** A service without any events. */
export const freshService: ServiceAlertState = {
  v: 1,
  phase: "calm",
  sinceMs: 0,
  policies: [],
  count: 0,
  good: 0,
  upMs: null,
  hadBreaker: false,
  sinks: [],
  reason: "",
  endedMs: null,
  token: null,
};

/**
 * Parses a policy's alert state.
 * @throws NewerVersionError when a newer version wrote it; ZodError when it is invalid.
 */
export function parsePolicyState(text: string | undefined): PolicyAlertState {
  return text === undefined ? freshPolicy : parseVersioned("alert state", policySchema, JSON.parse(text));
}

/**
 * Parses a service's alert state.
 * @throws NewerVersionError when a newer version wrote it; ZodError when it is invalid.
 */
export function parseServiceState(text: string | undefined): ServiceAlertState {
  return text === undefined ? freshService : parseVersioned("alert state", serviceSchema, JSON.parse(text));
}

/** The text of a policy's alert state; undefined when there is nothing to remember. */
export function policyText(alertState: PolicyAlertState): string | undefined {
  const { targets, told, masks, silent } = alertState;
  const isMuted = masks === null && silent === null;
  const isFresh = isMuted && Object.keys(targets).length === 0 && Object.keys(told).length === 0;
  return isFresh ? undefined : JSON.stringify(alertState);
}
