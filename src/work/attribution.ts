// Whose are the activities of a sync job that appeared since a start? Pure; the starts in flight come from the journal, which gives
// each activity to one of them at most. A start by hand or by the service's own trigger leaves activities too, and nobody knows of it.
import type { Attributed } from "../store/attributed.ts";
import type { SeenItem } from "../store/seen-item.ts";
import type { Confidence } from "../tasks/outcome.ts";
import { sendWithinMs } from "./timing.ts";

/** What is known of the start. */
export interface StartFacts {
  readonly taskId: string;
  readonly sentAtMs: number;
  /** When it was answered, or when it was noticed that no answer would come. */
  readonly decidedAtMs: number;
  /** The service said that it accepted the one request. */
  readonly isAnswered: boolean;
}

/** The activities of a start. */
export interface Attribution {
  readonly ours: readonly SeenItem[];
  /** Those that another start was given although this one could have left them: where it is ambiguous whose are whose, they count too. */
  readonly mayBeOurs: readonly SeenItem[];
  /** undefined when there are none. */
  readonly confidence: Confidence | undefined;
  /** Activities of the same sync job that began at another time or belong to another start. */
  readonly others: number;
  /** Other starts of the sync job that are in flight. */
  readonly rivals: number;
  /** Until when an activity may yet begin that is of this start instead of those that were seen; 0 where there are as many as starts. */
  readonly mayBeginUntilMs: number;
}

/** How far the clocks of service and Redis may be apart for an activity to count as begun at the start. */
const skewMs = 2_000;
/** How long after its acceptance a run may begin. */
const beginsWithinMs = 15_000;
/** So far apart, activities of two starts may still be taken for each other's: a request may leave late, and its run may begin late. */
const mixedWithinMs = sendWithinMs + beginsWithinMs;
/** An activity that does not say when it began can be of a lost start when it was first seen so soon after it: the longest throttle, and a walk. */
const timelessForMs = 1_200_000;
/** What began so long before the start is surely not its own, whatever the clocks say. In milliseconds. */
export const surelyBeforeMs = 300_000;

/** Picks the activities of one start and says how sure that is. */
export function attributeTo(
  start: StartFacts,
  activities: readonly SeenItem[],
  { taskOf, inFlight, losses }: Attributed,
): Attribution {
  const isKnown = inFlight.has(start.taskId);
  const mine = activities.filter(({ id }) => {
    const task = taskOf.get(id);
    // A start of a version that did not register it owns what nobody else does.
    return task === start.taskId || (task === undefined && !isKnown);
  });
  const isNear = ({ startedAtMs = Number.NaN }: SeenItem) =>
    startedAtMs >= start.sentAtMs - skewMs && startedAtMs <= start.decidedAtMs + beginsWithinMs;
  // Once one began right at the start, those from before are somebody else's; until then the clocks may just be apart.
  const beforeMs = mine.some(isNear) ? skewMs : surelyBeforeMs;
  const ours = mine.filter(({ startedAtMs }) => startedAtMs === undefined || startedAtMs >= start.sentAtMs - beforeMs);
  const rivals = [...inFlight].filter(([task]) => task !== start.taskId);
  // A rival's request may have gone out at the end of its time, and its run may have begun late.
  const couldBeTheirs = ({ startedAtMs = Number.NaN }: SeenItem) =>
    rivals.some(
      ([, sentAtMs]) => startedAtMs >= sentAtMs - skewMs && startedAtMs <= sentAtMs + sendWithinMs + beginsWithinMs,
    );
  // Then a rival may be forgotten, and its activities given to this one.
  const isForgetful = losses.some(
    ({ fromMs, untilMs }) => untilMs >= start.sentAtMs - mixedWithinMs && fromMs <= start.decidedAtMs + mixedWithinMs,
  );
  const confidence = (): Confidence => {
    if (isForgetful) return "ambiguous";
    if (ours.every(isNear) && !ours.some(couldBeTheirs))
      return start.isAnswered && ours.length === 1 && rivals.length === 0 ? "certain" : "likely";
    const [only] = ours;
    const isOnlyOne = ours.length === 1 && only?.startedAtMs === undefined && rivals.length === 0;
    const isSoon = start.isAnswered || (only?.seenAtMs ?? 0) <= start.sentAtMs + timelessForMs;
    return isOnlyOne && isSoon ? "likely" : "ambiguous";
  };
  // Those that come while it goes on are of later starts: without an end, a run beside others would wait for all of them.
  const isTimelessNear = ({ startedAtMs, seenAtMs = 0 }: SeenItem) =>
    startedAtMs === undefined && seenAtMs <= start.sentAtMs + timelessForMs;
  const isGivenAway = ({ id }: SeenItem) => (taskOf.get(id) ?? start.taskId) !== start.taskId;
  const mayBeOurs = activities.filter((item) => isGivenAway(item) && (isNear(item) || isTimelessNear(item)));
  const nearMs = rivals
    .map(([, sentAtMs]) => sentAtMs)
    .filter((atMs) => Math.abs(atMs - start.sentAtMs) <= mixedWithinMs);
  const isOneMissing = ours.length + mayBeOurs.length <= nearMs.length;
  return {
    ours,
    mayBeOurs,
    mayBeginUntilMs: isOneMissing ? Math.max(start.sentAtMs, ...nearMs) + mixedWithinMs : 0,
    confidence: ours.length === 0 ? undefined : confidence(),
    others: activities.length - ours.length,
    rivals: rivals.length,
  };
}
