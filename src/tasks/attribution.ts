// Attribution: which activities of a sync job belong to a start. Pure. The journal knows the starts
// in flight and gives each activity to one at most. A start by hand or by the service's own trigger
// leaves activities that the journal does not know.

import type { Confidence } from "../model/outcome.ts";
import type { SeenItem } from "../store/feed-mirror.ts";
import { type JournalAttribution, timelessForMs } from "../store/start-journal.ts";
import { sendWithinMs } from "./timing.ts";

/** A start, as the journal knows it. */
export interface StartFacts {
  readonly taskId: string;
  readonly sentAtMs: number;
  /** Until when the service can have accepted the newest request (evidence.ts). */
  readonly acceptedByMs: number;
  /** The service said that it accepted the one request. */
  readonly isOnlyRequestAnswered: boolean;
}

/** The activities of a start, and how sure that is. */
export interface Attribution {
  readonly ours: readonly SeenItem[];
  /** Given to another start, but possibly of this one: they count too where it is ambiguous. */
  readonly mayBeOurs: readonly SeenItem[];
  /** undefined when there are none. */
  readonly confidence: Confidence | undefined;
  /** Activities of the same sync job that began at another time or belong to another start. */
  readonly others: number;
  /** Those of them that were given to another start. */
  readonly givenAway: number;
  /** Other starts of the sync job that are in flight. */
  readonly rivals: number;
  /**
   * Until when an activity of this start may still begin; 0 once more activities are seen than
   * rivals sent requests close to its own.
   */
  readonly mayBeginUntilMs: number;
}

/** The clock skew allowed between service and Redis. */
const skewMs = 2_000;
/** How long after its acceptance a run may begin in the service. */
const beginsWithinMs = 15_000;
/** Starts closer than this may swap activities: requests leave late, and runs begin late. */
const mixedWithinMs = sendWithinMs + beginsWithinMs;
/** An activity that began this long before the start, by the service's clock, is not its own. */
export const surelyBeforeMs = 300_000;

/** Picks the activities of one start and says how sure that is. */
export function attributeTo(
  start: StartFacts,
  activities: readonly SeenItem[],
  { taskOf, inFlight, losses }: JournalAttribution,
): Attribution {
  const ownRequests = inFlight.get(start.taskId);
  const mine = activities.filter(({ id }) => {
    const task = taskOf.get(id);
    // A start that is no longer in flight gets the activities that were given to none.
    return task === start.taskId || (task === undefined && ownRequests === undefined);
  });
  const isNear = ({ startedAtMs = Number.NaN }: SeenItem) =>
    startedAtMs >= start.sentAtMs - skewMs && startedAtMs <= start.acceptedByMs + beginsWithinMs;
  // Once one began right at the start, earlier ones are of others; until then the clocks may be
  // apart.
  const beforeMs = mine.some(isNear) ? skewMs : surelyBeforeMs;
  const ours = mine.filter(({ startedAtMs }) => startedAtMs === undefined || startedAtMs >= start.sentAtMs - beforeMs);
  const rivals = [...inFlight].filter(([task]) => task !== start.taskId);
  const rivalRequests = rivals.flatMap(([, requests]) => requests);
  // A rival's request may have gone out at the end of its time, and its run may have begun late.
  const couldBeTheirs = ({ startedAtMs = Number.NaN }: SeenItem) =>
    rivalRequests.some((sentAtMs) => startedAtMs >= sentAtMs - skewMs && startedAtMs <= sentAtMs + mixedWithinMs);
  // Redis may have lost a rival, so that its activities look like this start's.
  const mayHaveLostRival = losses.some(
    ({ fromMs, untilMs }) => untilMs >= start.sentAtMs - mixedWithinMs && fromMs <= start.acceptedByMs + mixedWithinMs,
  );
  const confidence = (): Confidence => {
    if (mayHaveLostRival) return "ambiguous";
    if (ours.every(isNear) && !ours.some(couldBeTheirs))
      return start.isOnlyRequestAnswered && ours.length === 1 && rivals.length === 0 ? "certain" : "likely";
    const [only] = ours;
    const isOnlyOne = ours.length === 1 && only?.startedAtMs === undefined && rivals.length === 0;
    const isSoon = start.isOnlyRequestAnswered || (only?.seenAtMs ?? 0) <= start.sentAtMs + timelessForMs;
    return isOnlyOne && isSoon ? "likely" : "ambiguous";
  };
  // An activity without `startedAt` that is first seen long after the request is a later start's: a
  // run would wait for all of them.
  const isTimelessNear = ({ startedAtMs, seenAtMs = 0 }: SeenItem) =>
    startedAtMs === undefined && seenAtMs <= start.sentAtMs + timelessForMs;
  const isGivenAway = ({ id }: SeenItem) => (taskOf.get(id) ?? start.taskId) !== start.taskId;
  const mayBeOurs = activities.filter((item) => isGivenAway(item) && (isNear(item) || isTimelessNear(item)));
  const requests = ownRequests ?? [start.sentAtMs];
  const closeRequests = rivalRequests.filter((atMs) =>
    requests.some((ownAtMs) => Math.abs(atMs - ownAtMs) <= mixedWithinMs),
  );
  // Others may have left all that are seen: its own activity may be to come.
  const isOneMissing = ours.length + mayBeOurs.length <= closeRequests.length;
  return {
    ours,
    mayBeOurs,
    mayBeginUntilMs: isOneMissing ? Math.max(...requests, ...closeRequests) + mixedWithinMs : 0,
    confidence: ours.length === 0 ? undefined : confidence(),
    others: activities.length - ours.length,
    givenAway: activities.filter(isGivenAway).length,
    rivals: rivals.length,
  };
}
