// How patient work is, in milliseconds. app.ts passes these unless a test has less time.

/** The waits of a start and its following. */
export interface WorkTiming {
  /** How long a start waits for its baseline before it goes on without one. */
  readonly baselineWithinMs: number;
  /** How long an activity, or the effect on a sync job, has to appear when the answer to a start got lost. */
  readonly verifyForMs: number;
  /** How long a sync job that is read for the effect of a request may be unreadable. While nobody may look does not count. */
  readonly unreadableForMs: number;
  /** How much of such a wait does not count. */
  readonly heldForMs: number;
  /** How long after its slot a task of an unknown policy or service waits: they may be so new that this replica does not know them yet. */
  readonly unknownPolicyForMs: number;
  /** With `overlap: queue`: how often a start asks whether its sync job is free. */
  readonly queueForLeaseMs: number;
  /** How long a followed run sleeps between two looks at its feeds: from the first for a young one up to the second for an old one. */
  readonly followPaceMs: readonly [number, number];
  /** How long it sleeps where the walk that sees its end wakes it: these looks only make good what a death in between has lost. */
  readonly wokenPaceMs: number;
}

/** A process that slept longer than this between permission and request does not send: it may have been given up for dead. */
export const sendWithinMs = 5_000;

/** The waits unless said otherwise. */
export const defaultTiming: WorkTiming = {
  baselineWithinMs: 10_000,
  verifyForMs: 30_000,
  unreadableForMs: 300_000,
  heldForMs: 7_200_000,
  unknownPolicyForMs: 120_000,
  queueForLeaseMs: 2_000,
  followPaceMs: [1_000, 15_000],
  wokenPaceMs: 60_000,
};
