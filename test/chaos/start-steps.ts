// The named steps of a start at which a replica can be struck: every step of the start journal, the
// request itself, its outcome and its lease. The one place that names methods of these classes;
// taken by traps.ts, which wraps them, and plan-starts.ts, which draws from them.
import { isJsonObject } from "../../src/core/json.ts";
import { SyncService } from "../../src/service/client.ts";
import { History } from "../../src/store/history.ts";
import { Leases } from "../../src/store/leases.ts";
import { StartJournal } from "../../src/store/start-journal.ts";
import type { Point } from "./fault-script.ts";

/**
 * A method with points right before and right after it; `firstByte`: right before the last look
 * that lets a request's first byte out.
 */
export interface WatchedStep {
  readonly prototype: object;
  readonly method: string;
  readonly before: Point;
  readonly after: Point;
  readonly firstByte?: Point;
  /** A further point before it that only some calls pass, by their arguments. */
  readonly special?: (args: readonly unknown[]) => Point | undefined;
}

/**
 * Before an outcome is written that says that nothing was sent: whoever is held up here must not
 * write it when somebody else has sent.
 */
export const unsentPoint: Point = "before-history.record-unsent";

/** Only read, of no start, about a run that goes on for long, or done by a person's command. */
const unwatched = new Set([
  ...["constructor", "entry", "readCancelled", "hasActivity"],
  ...["planFanOut", "noteFannedOut", "fannedOutInto"],
  ...["noteLongFrom", "noteLong", "cancel"],
]);

/**
 * Whatever the journal does, by the names that it has now; sorted, so that moving a method about
 * changes no seed.
 */
const journalMethods = Object.getOwnPropertyNames(StartJournal.prototype)
  .filter((name): name is keyof StartJournal & string => !unwatched.has(name))
  .sort();

/** Every step of a start. */
export const startSteps: readonly WatchedStep[] = [
  ...journalMethods.map((method) => step(StartJournal.prototype, "journal", method)),
  ...(["runSyncJob", "enableSyncJobById"] as const).map((method) => ({
    ...step(SyncService.prototype, "service", method),
    firstByte: `first-byte-service.${method}`,
  })),
  {
    ...step(History.prototype, "history", "record"),
    special: ([outcome]) => (isJsonObject(outcome) && outcome["startedAt"] === null ? unsentPoint : undefined),
  },
  step(History.prototype, "history", "markPublished"),
  ...(["acquire", "release"] as const).map((method) => step(Leases.prototype, "leases", method)),
];

/** The points of all these steps. */
export const startPoints: readonly Point[] = startSteps.flatMap(({ before, after, firstByte }) =>
  firstByte === undefined ? [before, after] : [before, firstByte, after],
);

/** Those between which a request goes out: claims, permissions, the request, its answer. */
export const hotPoints: readonly Point[] = startPoints.filter((point) => /claim|send|service|answered$/i.test(point));

/** A step whose method the compiler finds in this class. */
function step<T extends object>(prototype: T, noun: string, method: keyof T & string): WatchedStep {
  return { prototype, method, before: `before-${noun}.${method}`, after: `after-${noun}.${method}` };
}
