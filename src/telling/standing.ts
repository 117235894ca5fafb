// What telling remembers: how each policy fares and who was told so, and whether a service is down. Kept as texts by store/telling-book.ts
// and changed by decide.ts and decide-service.ts. A policy of which all is well and nobody waits for anything has none.
import * as z from "zod";
import { parseVersioned } from "../core/newer-version.ts";

/** How a task ended, as far as telling goes. `good`: it did its work. */
export const fates = ["good", "conflicts", "blocked", "missed", "unknown", "failing"] as const;

/** One of the six, from the best to the worst. */
export type Fate = (typeof fates)[number];

/** What a sink was told last, where that is not `good`. */
export type BadFate = Exclude<Fate, "good">;

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

/** The few things about an ending that a message says. `key`: what it is known by, the same whenever it is read. */
export type Brief = Readonly<z.infer<typeof briefSchema>>;

const targetSchema = z.object({
  fate: z.enum(fates),
  conflicts: z.int(),
  slotMs: z.int(),
  outage: z.int().exactOptional(),
});

const policySchema = z.object({
  v: z.literal(1),
  targets: z.record(z.string(), targetSchema),
  slots: z.array(z.int()),
  inRow: z.int(),
  countedSlotMs: z.int(),
  badSinceMs: z.int().nullable(),
  told: z.record(z.string(), z.enum(badFates)),
  last: briefSchema.nullable(),
  silent: z.object({ sinceMs: z.int(), sinks: z.array(z.string()) }).nullable(),
});

/**
 * How a policy fares (version 1). `targets`: those whose last ending was not plainly good, by target, '' for a slot without tasks; `outage`: it
 * counts as its service's, by the start of that outage. `slots`: the newest two. `inRow`: slots in a row with a failure, the last of them
 * `countedSlotMs`. `badSinceMs`: since when it is not good. `told`: by sink. `silent`: who was told that there was no success since then.
 */
export type PolicyStanding = Readonly<z.infer<typeof policySchema>>;

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
 * How a service fares (version 1). `window`: failures since `sinceMs` may be an outage; `down`: one was told to `sinks`. `count` policies failed
 * with it, `policies` are the first 200. `good`: endings since then that show it alive. `upMs`: since when it seems well again. `endedMs`: the end
 * of the last outage. `token`: the expiry that was told.
 */
export type ServiceStanding = Readonly<z.infer<typeof serviceSchema>>;

/** Of how many policies of an outage the names are kept; with more than these it is an outage in any case. */
export const namedPoliciesMax = 200;

/** A policy of which nothing is known. */
const freshPolicy: PolicyStanding = {
  v: 1,
  targets: {},
  slots: [],
  inRow: 0,
  countedSlotMs: 0,
  badSinceMs: null,
  told: {},
  last: null,
  silent: null,
};

/** A service of which nothing is known. */
export const freshService: ServiceStanding = {
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

/** Reads a policy's standing. @throws NewerVersionError for one of a newer version; ZodError when it is none. */
export function parsePolicyStanding(text: string | undefined): PolicyStanding {
  return text === undefined ? freshPolicy : parseVersioned("standing", policySchema, JSON.parse(text));
}

/** Reads a service's standing. @throws NewerVersionError for one of a newer version; ZodError when it is none. */
export function parseServiceStanding(text: string | undefined): ServiceStanding {
  return text === undefined ? freshService : parseVersioned("standing", serviceSchema, JSON.parse(text));
}

/** The text of a policy's standing; undefined when there is nothing to remember. */
export function policyText(standing: PolicyStanding): string | undefined {
  const { targets, told, silent } = standing;
  const isFresh = Object.keys(targets).length === 0 && Object.keys(told).length === 0 && silent === null;
  return isFresh ? undefined : JSON.stringify(standing);
}
