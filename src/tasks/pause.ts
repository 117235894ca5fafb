// The pause: somebody's wish that slots do not start for a while. Set and ended by cli/, kept by store/, applied by schedule/.
// It is an interval, so what it means for a slot never changes afterwards: every replica skips the same slots.
import * as z from "zod";
import { parseVersioned } from "../core/newer-version.ts";

/** How long a note may be, in characters: it stands in the record of every slot that a pause skips. */
export const noteCharactersMax = 200;

const pauseSchema = z.object({
  v: z.literal(1),
  scope: z.enum(["policy", "service", "all"]),
  name: z.string(),
  note: z.string().max(noteCharactersMax),
  actor: z.string(),
  sinceMs: z.int(),
  untilMs: z.int().nullable(),
  endedBy: z.string().nullable(),
  cause: z.literal("quarantine").exactOptional(),
});

/**
 * A pause (version 1): the slots from `sinceMs` up to, but not including, `untilMs` are skipped; null: until somebody ends it.
 * `name`: of the policy or service; empty for `all`. `actor` and `endedBy`: `user@host`. Instants are milliseconds UTC by Redis.
 * `cause`: absent for somebody's wish; `quarantine` for a policy that failed too often (store/quarantines.ts).
 */
export type Pause = Readonly<z.infer<typeof pauseSchema>>;

/** What is paused. */
export type PauseSubject = Pick<Pause, "scope" | "name">;

/**
 * Reads a pause from Redis.
 * @throws NewerVersionError or ZodError when this version cannot read it: a scheduler that cannot read it must not start what it forbids.
 */
export function parsePause(value: unknown): Pause {
  return parseVersioned("pause", pauseSchema, value);
}

/** A pause's name in Redis: one subject has at most one that begins in the same millisecond. */
export function pauseId(pause: PauseSubject & Pick<Pause, "sinceMs">): string {
  return `${subjectKey(pause)}@${pause.sinceMs}`;
}

/** `policy/nightly`, `service/main`, `all/`. */
export function subjectKey({ scope, name }: PauseSubject): string {
  return `${scope}/${name}`;
}

/** Tells whether a pause holds at an instant. */
export function isInForce({ sinceMs, untilMs }: Pause, instantMs: number): boolean {
  return sinceMs <= instantMs && (untilMs === null || instantMs < untilMs);
}

/** Tells whether a pause is about a policy: about itself, its service, or all. */
export function isAbout({ scope, name }: PauseSubject, policy: { readonly name: string; readonly service: string }) {
  return scope === "all" || name === (scope === "policy" ? policy.name : policy.service);
}
