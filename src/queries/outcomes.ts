// Finds outcomes: the newest first, in a span of time, of some policies, fitting a filter. Reads
// only as many as needed. Called by `history`, the pages and the API.
import type { Outcome, OutcomeStatus } from "../model/outcome.ts";
import type { History, Span } from "../store/history.ts";
import { batchesOf } from "../store/script.ts";

/** The most outcomes that one question looks at. */
export const outcomesReadMax = 20_000;

/** What outcomes must be; undefined: anything. `task`: a target, or the id of a task. */
export interface OutcomeFilter {
  readonly statuses?: ReadonlySet<OutcomeStatus> | undefined;
  readonly origin?: Outcome["origin"];
  readonly task?: string;
  readonly service?: string;
}

/** What is asked. `policies` undefined: all. */
export interface OutcomeQuestion {
  readonly policies: readonly string[] | undefined;
  readonly span: Span;
  readonly filter: OutcomeFilter;
  readonly limit: number;
}

/** The outcomes, and since when all are there that fit; `isCut`: as too many were looked at. */
export interface FoundOutcomes {
  readonly outcomes: readonly Outcome[];
  readonly reach: { readonly fromMs: number; readonly isCut: boolean };
}

/** Finds at most `limit` outcomes. */
export async function findOutcomes(
  history: History,
  { policies, span, filter, limit }: OutcomeQuestion,
): Promise<FoundOutcomes> {
  const { statuses, origin, task, service } = filter;
  const isFiltered = [statuses, origin, task, service].some((one) => one !== undefined);
  const most = isFiltered ? outcomesReadMax : limit;
  const places = await history.newestPlaces(most, policies, span);
  const outcomes: Outcome[] = [];
  for (const batch of batchesOf(places)) {
    outcomes.push(...(await history.read(batch)).filter((outcome) => fits(outcome, filter)));
    if (outcomes.length >= limit) break;
  }
  const isFull = outcomes.length >= limit;
  const isCut = !isFull && isFiltered && places.length === most;
  const last = isFull ? outcomes[limit - 1]?.finishedAt : undefined;
  const fromMs = last === undefined ? (isCut ? (places.at(-1)?.atMs ?? 0) : span.fromMs) : Date.parse(last);
  return { outcomes: outcomes.slice(0, limit), reach: { fromMs, isCut } };
}

function fits(outcome: Outcome, { statuses, origin, task, service }: OutcomeFilter): boolean {
  return (
    (statuses === undefined || statuses.has(outcome.status)) &&
    (origin === undefined || origin === outcome.origin) &&
    (task === undefined || task === outcome.target || task === outcome.taskId) &&
    (service === undefined || service === outcome.service)
  );
}
