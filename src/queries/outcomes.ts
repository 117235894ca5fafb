// Finds outcomes: the newest first, in a span of time, of some policies, fitting a filter. Reads
// only as many as needed. Called by `history`, the pages and the API.
import type { Interval } from "../core/instant.ts";
import type { Outcome, OutcomeStatus } from "../model/outcome.ts";
import type { History, Place } from "../store/history.ts";
import { batchesOf } from "../store/script.ts";
import type { View } from "./query-context.ts";

/** The most outcomes that one question looks at. */
export const outcomesReadMax = 20_000;

/** What outcomes must be; undefined: anything. `task`: a target or task id; `sees`: a view's. */
export interface OutcomeFilter {
  readonly statuses?: ReadonlySet<OutcomeStatus> | undefined;
  readonly origin?: Outcome["origin"];
  readonly task?: string;
  readonly service?: string;
  readonly sees?: View["sees"];
}

/** What is asked. `policies` undefined: all. `after`: only what stands behind this outcome. */
export interface OutcomeQuestion {
  readonly policies: readonly string[] | undefined;
  readonly span: Interval;
  readonly filter: OutcomeFilter;
  readonly limit: number;
  readonly after?: Place | undefined;
}

/**
 * The outcomes, and since when all are there that fit; `isCut`: as too many were looked at.
 * `lookedTo`: the last that was looked at, where others may stand behind it.
 */
export interface FoundOutcomes {
  readonly outcomes: readonly Outcome[];
  readonly lookedTo: Place | undefined;
  readonly reach: { readonly fromMs: number; readonly isCut: boolean };
}

/** Finds at most `limit` outcomes. */
export async function findOutcomes(
  history: History,
  { policies, span, filter, limit, after }: OutcomeQuestion,
): Promise<FoundOutcomes> {
  const { statuses, origin, task, service, sees } = filter;
  const isFiltered = [statuses, origin, task, service, sees].some((one) => one !== undefined);
  const most = isFiltered ? outcomesReadMax : limit;
  const places = await history.newestPlaces(most, policies, { ...span, ...(after && { after }) });
  const outcomes: Outcome[] = [];
  for (const batch of batchesOf(places)) {
    outcomes.push(...(await history.read(batch)).filter((outcome) => fits(outcome, filter)));
    if (outcomes.length >= limit) break;
  }
  const lookedTo = places.length === most ? places.at(-1) : undefined;
  const isFull = outcomes.length >= limit;
  const isCut = !isFull && isFiltered && lookedTo !== undefined;
  const last = isFull ? outcomes[limit - 1]?.finishedAt : undefined;
  const fromMs = last === undefined ? (isCut ? lookedTo.atMs : span.fromMs) : Date.parse(last);
  return { outcomes: outcomes.slice(0, limit), lookedTo, reach: { fromMs, isCut } };
}

function fits(outcome: Outcome, { statuses, origin, task, service, sees }: OutcomeFilter): boolean {
  return (
    (statuses === undefined || statuses.has(outcome.status)) &&
    (origin === undefined || origin === outcome.origin) &&
    (task === undefined || task === outcome.target || task === outcome.taskId) &&
    (service === undefined || service === outcome.service) &&
    (sees === undefined || sees(outcome))
  );
}
