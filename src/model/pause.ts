// A pause: slots do not start for a while, by an operator's wish or by a quarantine. It is an
// interval, so every replica skips the same slots, also later.
import * as z from "zod";
import { lastInstantMs } from "../core/instant.ts";
import { parseVersioned } from "../core/newer-version.ts";
import { hasLabels } from "./label.ts";

/** The longest note, in characters: it stands in the record of every skipped slot. */
export const noteCharactersMax = 200;

const pauseSchema = z.object({
  v: z.literal(1),
  scope: z.enum(["policy", "service", "label", "all"]),
  name: z.string(),
  note: z.string().max(noteCharactersMax),
  actor: z.string(),
  sinceMs: z.int(),
  // An end that no date holds must not stop those who read it.
  untilMs: z
    .number()
    .transform((untilMs) => Math.min(untilMs, lastInstantMs))
    .pipe(z.int())
    .nullable(),
  endedBy: z.string().nullable(),
  cause: z.literal("quarantine").exactOptional(),
});

/**
 * Skips the slots from `sinceMs` up to, but not including, `untilMs`; null: until it is ended.
 * `name`: empty for `all`, a selector (label.ts) for `label`. `actor`, `endedBy`: who, such as
 * `user@host`; of a quarantine `syncline`, and what ended it.
 * `cause`: none for an operator's.
 */
export type Pause = Readonly<z.infer<typeof pauseSchema>>;

/** How `endedBy` begins where a success ended a quarantine. */
export const endedBySuccess = "a success";

/** What is paused. */
export type PauseSubject = Pick<Pause, "scope" | "name">;

/** Reads a pause. @throws NewerVersionError or ZodError: then the scheduler plans nothing. */
export function parsePause(value: unknown): Pause {
  return parseVersioned("pause", pauseSchema, value);
}

/** A pause's name in Redis: unique by scope, name and the millisecond of its beginning. */
export function pauseId(pause: PauseSubject & Pick<Pause, "sinceMs">): string {
  return `${subjectKey(pause)}@${pause.sinceMs}`;
}

/** The key of what is paused: `policy/nightly`, `service/main`, `all/`. */
export function subjectKey({ scope, name }: PauseSubject): string {
  return `${scope}/${name}`;
}

/** A subject in words. */
export function showSubject({ scope, name }: PauseSubject): string {
  return scope === "all" ? "all policies" : `${scope} ${name}`;
}

/** Whether a pause applies at an instant. */
export function isInForce({ sinceMs, untilMs }: Pause, instantMs: number): boolean {
  return sinceMs <= instantMs && (untilMs === null || instantMs < untilMs);
}

/**
 * Whether a pause applies to a policy: to itself, its service, its labels, or all. A pause of a
 * label is about each policy while it has the label, also one that gets it later.
 */
export function isAbout({ scope, name }: PauseSubject, policy: PausedPolicy): boolean {
  if (scope === "label") return hasLabels(policy, name);
  return scope === "all" || name === (scope === "policy" ? policy.name : policy.service);
}

/** Finds the pauses about each policy, in force or not. It skips those of other single policies. */
export function pausesByPolicy(pauses: readonly Pause[]): (policy: PausedPolicy) => Pause[] {
  const byScope = Map.groupBy(pauses, ({ scope }) => (scope === "policy" ? "one" : "several"));
  const byName = Map.groupBy(byScope.get("one") ?? [], ({ name }) => name);
  const several = byScope.get("several") ?? [];
  return (policy) => [...(byName.get(policy.name) ?? []), ...several.filter((pause) => isAbout(pause, policy))];
}

/** What a policy is paused by. */
interface PausedPolicy {
  readonly name: string;
  readonly service: string;
  readonly labels?: Readonly<Record<string, string>>;
}
