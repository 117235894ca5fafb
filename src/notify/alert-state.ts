// The alert state: what the notifier remembers of each policy and service, and of what each sink
// was notified. store/notify-store.ts keeps it as text; decide.ts and decide-service.ts change it.
import * as z from "zod";
import { parseVersioned } from "../core/newer-version.ts";
import { healths } from "../model/outcome.ts";

const badHealths = healths.filter((health) => health !== "good");

/** A health that a sink hears of: any but good. */
export type BadHealth = (typeof badHealths)[number];

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

const leftSchema = z.object({ conflicts: z.int(), sinceMs: z.int(), brief: briefSchema });

const targetSchema = z.object({
  health: z.enum(healths),
  conflicts: z.int(),
  slotMs: z.int(),
  sinceMs: z.int(),
  inRow: z.int(),
  outage: z.int().exactOptional(),
  left: leftSchema.exactOptional(),
  brief: briefSchema,
});

/**
 * One target of a policy, by its last ending (`brief`); of conflicts that are open, by the one that
 * left them. `sinceMs`: since when it ends so. `inRow`: in how many slots in a row it failed.
 * `outage`: the start of the outage that it counts to. `left`: the conflicts that it left before it
 * became worse.
 */
export type TargetAlertState = Readonly<z.infer<typeof targetSchema>>;

const notifiedSchema = z.object({
  ...{ health: z.enum(badHealths), sinceMs: z.int(), target: z.string() },
  isUncounted: z.literal(true).exactOptional(),
});

/**
 * The bad health that a sink was last told, of which target, and since when. A sink with `recovery`
 * alone was not told, and hears the end. `isUncounted`: whether conflicts that were left meanwhile
 * are settled was not counted.
 */
export type NotifiedHealth = Readonly<z.infer<typeof notifiedSchema>>;

const policySchema = z.object({
  v: z.literal(1),
  targets: z.record(z.string(), targetSchema),
  notified: z.record(z.string(), notifiedSchema),
  masks: z.object({ slotMs: z.int(), syncJobs: z.array(z.string()) }).nullable(),
  stale: z.object({ sinceMs: z.int(), sinks: z.array(z.string()) }).nullable(),
});

/**
 * A policy (version 1). `targets`: those that are not good or brought new conflicts, '' for a slot
 * without tasks. `notified`: by sink. `masks`: the sync jobs that the masks named for the newest
 * slot. `stale`: the sinks that were notified of no success since then.
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
  failed: z.array(z.string()).exactOptional(),
  hadBreaker: z.boolean(),
  sinks: z.array(z.string()),
  reason: z.string(),
  endedMs: z.int().nullable(),
  token: z.int().nullable(),
});

/**
 * A service (version 1). `window`: failures since `sinceMs` may be an outage. `down`: `sinks` were
 * notified of one. `count`: failed policies; `policies`: the first 200 of them. `upMs`: since when
 * it seems healthy. `good`: what speaks against an outage. In a window: endings since `sinceMs`
 * that show the service alive, and policies that fail as they did before. Else: endings since
 * `upMs` that show it alive. `failed`: the policies that failed since `upMs`, twice where they
 * were well before. `endedMs`: the end of the last outage. `token`: the expiry that was reported.
 */
export type ServiceAlertState = Readonly<z.infer<typeof serviceSchema>>;

/** So many policies of an outage are known by name. More failures are an outage in any case. */
export const namedPoliciesMax = 200;

const freshPolicy: PolicyAlertState = { v: 1, targets: {}, notified: {}, masks: null, stale: null };

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

/** Parses a policy's state. @throws NewerVersionError of a newer version; ZodError. */
export function parsePolicyAlert(text: string | undefined): PolicyAlertState {
  return text === undefined ? freshPolicy : parseVersioned("alert state", policySchema, JSON.parse(text));
}

/** Parses a service's state. @throws NewerVersionError of a newer version; ZodError. */
export function parseServiceAlert(text: string | undefined): ServiceAlertState {
  return text === undefined ? freshService : parseVersioned("alert state", serviceSchema, JSON.parse(text));
}

/** When something last happened to a service. */
export function lastEventMs({ sinceMs, upMs, endedMs }: ServiceAlertState): number {
  return Math.max(sinceMs, upMs ?? 0, endedMs ?? 0);
}

/** The text of a policy's state; undefined when there is nothing to remember. */
export function policyText(state: PolicyAlertState | undefined): string | undefined {
  if (state === undefined) return undefined;
  const { targets, notified, masks, stale } = state;
  const isFresh = masks === null && stale === null && Object.keys({ ...targets, ...notified }).length === 0;
  return isFresh ? undefined : JSON.stringify(state);
}
