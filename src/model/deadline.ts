// Deadlines of a policy (`expect`): what the notifier remembers of them, and what it found.
// schedule/deadlines.ts has the rule, queries/deadlines.ts the facts.
import * as z from "zod";
import { parseVersioned } from "../core/newer-version.ts";

/** Every target has ended well by `atMs`, in a task of a slot from `fromMs` on. */
export interface Deadline {
  readonly fromMs: number;
  readonly atMs: number;
}

const lateSchema = z.object({
  sinceMs: z.int(),
  fromMs: z.int(),
  atMs: z.int(),
  toldMs: z.int(),
  why: z.string(),
});

/**
 * A policy that is late. `sinceMs`: the first deadline that it missed. `fromMs`, `atMs`: the newest
 * one, which it must make up for. `toldMs`: the one that was told last.
 */
export type Late = Readonly<z.infer<typeof lateSchema>>;

const stateSchema = z.object({
  v: z.literal(1),
  expect: z.string(),
  judgedMs: z.int(),
  late: lateSchema.nullable(),
  sinks: z.array(z.string()),
});

/**
 * The deadlines of a policy (version 1). `expect`: a hash of the expectation. `judgedMs`: up to
 * when its deadlines are judged. `sinks`: those that were notified of `late`.
 */
export type DeadlineState = Readonly<z.infer<typeof stateSchema>>;

/** Parses a state. @throws NewerVersionError of a newer version; ZodError. */
export function parseDeadlineState(text: string): DeadlineState {
  return parseVersioned("deadline state", stateSchema, JSON.parse(text));
}

/** A deadline was missed, or a late policy ended well at `endedWellMs`. */
export type DeadlineFinding =
  | { readonly finding: "late"; readonly late: Late }
  | { readonly finding: "ended"; readonly late: Late; readonly endedWellMs: number };

/** What became of a policy's deadlines. */
export interface JudgedDeadlines {
  readonly state: DeadlineState;
  readonly findings: readonly DeadlineFinding[];
}
