// `syncline plan --peaks` and `--requests`: when most slots are due at once, and how many requests
// a service gets a day. Peaks count due slots, before a busy sync job skips any; requests are an
// estimate from a simulation. Called by plan.ts.

import { type Policy, type PolicySet, targetsOf } from "../config/policy-set.ts";
import { dayMs } from "../core/duration.ts";
import { type Interval, toIso } from "../core/instant.ts";
import { counted } from "../core/plain-text.ts";
import { type Assumptions, valueFor } from "../simulate/assumptions.ts";
import type { SimulationEvent } from "../simulate/events.ts";
import { type BusyMinute, MinuteMeter, minuteToJson, showMinute } from "../simulate/load-meter.ts";
import { RequestMeter, type Requests } from "../simulate/request-meter.ts";
import { concurrencyIn, simulate } from "../simulate/simulation.ts";
import type { Screen } from "./command-io.ts";
import { describeAssumptions } from "./look-ahead.ts";
import { toTable } from "./table.ts";
import { showTimes } from "./time-argument.ts";

/** What is asked, and what is assumed. */
export interface LoadQuestion {
  readonly set: PolicySet;
  readonly policies: readonly Policy[];
  readonly range: Interval;
  /** In which times were read. */
  readonly timezone: string;
  readonly assumptions: Assumptions;
  /** Pages of every list, 100 items each. */
  readonly pages: number;
  /** How many busy minutes to show. */
  readonly peaks: number;
  /** Whether requests are asked for; they are counted only then. */
  readonly requests: boolean;
}

/** The answer. `requests`: in the whole range, by service; none if not asked for. */
export interface LoadAnswer {
  readonly question: LoadQuestion;
  readonly peaks: readonly BusyMinute[];
  readonly requests: ReadonlyMap<string, Readonly<Requests>>;
}

const slotsMax = 1_000_000;

/** Goes through the slots of the range. @throws UsageError when there are too many. */
export function findLoad(question: LoadQuestion): LoadAnswer {
  const { set, policies, range, assumptions, pages } = question;
  const showsActive = (service: string) => set.services.get(service)?.syncJob !== undefined;
  const meter = new RequestMeter({ pages, requestMs: assumptions.requestMs, showsActive });
  const peaks = new MinuteMeter(question.peaks);
  // Peaks count both ends of the range, as the time line shows them; requests a day only the later.
  const time = { ...range, fromMs: range.fromMs - 1, outages: [], pauses: [] };
  for (const event of simulate(policies, { time, assumptions, concurrencyOf: concurrencyIn(set), slotsMax })) {
    if (event.event === "planned") addDue(peaks, event, assumptions);
    else if (question.requests && event.task.slotMs > range.fromMs) meter.add(event);
  }
  return { question, peaks: peaks.busiest(), requests: meter.requests() };
}

function addDue(
  peaks: MinuteMeter,
  { policy, plans, nowMs }: Extract<SimulationEvent, { readonly event: "planned" }>,
  assumptions: Assumptions,
): void {
  const started = plans.filter((plan) => plan.state === "started");
  const starts = started.length * (targetsOf(policy.action)?.length ?? valueFor(assumptions.maskJobs, policy));
  for (let start = 0; start < starts; start += 1) peaks.add(nowMs, policy.name);
}

/** The busiest minutes for people. */
export function peaksToText({ peaks, question: { range, timezone } }: LoadAnswer, screen: Screen): string {
  const title = `The minutes with most starts due, ${showTimes(range, timezone)} (without what is closed):`;
  if (peaks.length === 0) return `${title} nothing is due.`;
  return `${title}\n${toTable(["starts due", "minute (utc)", "of"], peaks.map(showMinute), screen)}`;
}

/** The requests a day for people, with all assumptions. */
export function requestsToText({ requests, question }: LoadAnswer, screen: Screen): string {
  const rows = [...requests].map(([service, counts]) => {
    const daily = aDay(counts, question.range);
    const numbers = [daily.starts, daily.feeds, daily.polls, daily.masks, daily.total].map(grouped);
    const possible = possibleADay(service, question);
    return [service, ...numbers, possible === undefined ? "" : grouped(possible)];
  });
  const heading = ["service", "starts", "reading feeds", "polls", "masks", "requests a day", "possible a day"];
  const table = toTable(heading, rows, screen);
  const assumed = describeRequestAssumptions(question);
  const title = `Requests a day, estimated from ${showTimes(question.range, question.timezone)}:`;
  return `${title}\n${table}\nAssumed: ${assumed.join("; ")}.`;
}

/** The requested peaks and requests for machines. */
export function loadToJson(
  { peaks, requests, question }: LoadAnswer,
  wanted: { readonly peaks: boolean; readonly requests: boolean },
): object {
  const { range } = question;
  const daily = [...requests].map(([service, counts]) => {
    return { service, ...aDay(counts, range), possible: possibleADay(service, question) ?? null };
  });
  const assumed = describeRequestAssumptions(question);
  return {
    from: toIso(range.fromMs),
    to: toIso(range.toMs),
    ...(wanted.peaks ? { peaks: peaks.map(minuteToJson) } : {}),
    ...(wanted.requests ? { requestsPerDay: daily, assumed } : {}),
  };
}

function aDay({ starts, feeds, polls, masks }: Requests, { fromMs, toMs }: Interval) {
  const scale = (count: number) => Math.round((count * dayMs) / (toMs - fromMs));
  const total = scale(starts + feeds + polls + masks);
  return { starts: scale(starts), feeds: scale(feeds), polls: scale(polls), masks: scale(masks), total };
}

/** How many requests a day the service's limit allows; undefined: no limit. */
function possibleADay(service: string, { set, assumptions }: LoadQuestion): number | undefined {
  const { requestMs } = assumptions;
  return requestMs === 0 ? undefined : Math.floor((concurrencyIn(set)(service) * dayMs) / requestMs);
}

function describeRequestAssumptions({ assumptions, policies, pages }: LoadQuestion): readonly string[] {
  return [
    ...describeAssumptions(assumptions, policies),
    `every list has ${counted(pages, "page")} of 100 items`,
    "while runs of a repository are followed, its activities and conflict details are read at the reader's pace (5s after something new, up to 60s), and its approvals before a run and when it takes long",
    "nothing fails, so nothing is repeated or verified; requests for tokens are not counted",
    "what is possible is one replica's limits.concurrency",
  ];
}

function grouped(count: number): string {
  return count.toLocaleString("en");
}
