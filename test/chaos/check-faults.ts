// The checker of a trial of faults: holds each outcome, each story of `explain` and each line of
// `status` against the ledgers of the services. Looks only. An `unknown` outcome is never untrue;
// it is counted. The notices are check-notices.ts's.

import type { Outcome } from "../../src/model/outcome.ts";
import type { SlotStory } from "../../src/queries/slot-story.ts";
import type { TaskStory } from "../../src/queries/task-story.ts";
import { checkNotices } from "./check-notices.ts";
import { type Facts, type FaultTrialReport, Ledgers, type Sample, type Told } from "./fault-ledgers.ts";
import type { Deed, Exchange, FaultyService } from "./faulty-service.ts";

const neverStarted: ReadonlySet<string> = new Set(["not-started", "skipped", "missed"]);
const ended: ReadonlySet<string> = new Set(["accepted", "succeeded", "failed", "conflicts", "timed-out", "blocked"]);
const refusals: ReadonlySet<number> = new Set([400, 401, 403, 429]);
/**
 * A permission is this old at most when its request goes out, and a request is this late at the
 * service on a busy machine.
 */
const permissionMsMax = 5_000 + 4_000;
/** Two clocks of one machine: Redis's is known by asking, which takes a while on a busy one. */
const clockMs = 500;
const deadlineMs = 12_000;
/** `timeouts.request` of each service. */
const requestMs = 1_500;
/** What a busy machine takes from an event to the state of it that a command reads. */
const lagMs = 4_000;

/** Holds everything that was told against the ledgers. */
export function checkFaults(told: Told): FaultTrialReport {
  const ledgers = new Ledgers(told);
  for (const { event, detail } of told.events)
    if (event === "trial.unexpected-end" || event === "bug.caught") ledgers.wrong(`${event}: ${String(detail)}`);
  for (const id of ledgers.taskIds) if (!ledgers.outcomes.has(id)) ledgers.wrong(`${id} has no outcome`);
  for (const outcome of told.outcomes) {
    ledgers.saw("outcomes");
    for (const what of untrueOutcome(outcome, ledgers))
      ledgers.wrong(`${outcome.taskId} is ${outcome.status} (${outcome.reason}: ${outcome.detail}), but ${what}`);
  }
  for (const story of told.stories) checkStory(story, ledgers);
  for (const { policy, ...sample } of told.liveStories) checkLiveStory(policy, sample, ledgers);
  for (const sample of told.statuses) checkStatus(sample, ledgers);
  checkLastStatus(ledgers);
  checkLog(ledgers);
  checkNotices(ledgers);
  return { findings: ledgers.findings, looked: ledgers.looked, table: tableOf(told.outcomes) };
}

function tableOf(outcomes: readonly Outcome[]): FaultTrialReport["table"] {
  const table: Record<string, Record<string, number>> = {};
  for (const { service, status } of outcomes) {
    const row = table[service] ?? {};
    row[status] = (row[status] ?? 0) + 1;
    table[service] = row;
  }
  return table;
}

/** What is wrong with an outcome. */
function untrueOutcome(outcome: Outcome, ledgers: Ledgers): string[] {
  const facts = ledgers.of(outcome.taskId);
  return [
    ...untrueStatuses(outcome.detail, outcome, { facts, ledgers }),
    ...(outcome.kind === "poll" ? untruePoll(outcome, ledgers) : untrueStart(outcome, { facts, ledgers })),
    ...untrueTimes(outcome, facts),
  ];
}

interface Looked {
  readonly facts: Facts;
  readonly ledgers: Ledgers;
}

/**
 * A status that a text names must have been answered: to the task's own request, or to a read of
 * its service.
 */
function untrueStatuses(text: string, { service, finishedAt }: Outcome, { facts, ledgers }: Looked): string[] {
  const named = [...text.matchAll(/answered with status (\d+)/g)].map(([, status]) => Number(status));
  const isRead = /^(GET|nobody could)/.test(text) || /GET /.test(text);
  const all = ledgers.service(service).exchanges.filter(({ atMs }) => atMs <= Date.parse(finishedAt) + lagMs);
  const exchanges = isRead ? all : facts.requests;
  return named.flatMap((status) =>
    exchanges.some((one) => one.status === status) ? [] : [`status ${status} was never answered to it`],
  );
}

function isRefused({ status, patience }: Exchange): boolean {
  return status !== undefined && (refusals.has(status) || (status === 503 && patience !== undefined));
}

function untrueStart(outcome: Outcome, looked: Looked): string[] {
  const { facts } = looked;
  const { status, sends = 1 } = outcome;
  const findings: string[] = [];
  if (facts.deeds.length > 1) findings.push(`it was carried out ${facts.deeds.length} times`);
  const arrived = facts.requests.filter((one) => !isRefused(one)).length;
  if (arrived > sends) findings.push(`${arrived} requests arrived, and ${sends} are told`);
  if (arrived > 1 && !outcome.policy.endsWith("-vouched")) findings.push(`${arrived} requests arrived`);
  const [deed] = facts.deeds;
  if (neverStarted.has(status) && deed !== undefined) findings.push("it was carried out");
  if (ended.has(status)) {
    if (deed === undefined && isTakenForRival(outcome, looked.ledgers)) looked.ledgers.saw("taken for a start by hand");
    else if (deed === undefined) findings.push("it was not carried out");
    else if (outcome.kind === "run" && status !== "accepted")
      findings.push(...untrueEnd(outcome, deed, looked.ledgers));
  }
  const isSaid = facts.requests.some((one) => one.status !== undefined && one.status >= 200 && one.status < 300);
  if (outcome.kind === "run" && outcome.evidence === "direct" && ended.has(status) && !isSaid)
    findings.push("its evidence is direct, and no good answer was given");
  if (outcome.detail.startsWith("the service accepted") && !isSaid) findings.push("no such answer was given");
  return [...findings, ...untrueLoss(outcome, facts, looked.ledgers), ...untrueOverlap(outcome, looked.ledgers)];
}

/**
 * A start by someone else within seconds of one whose answer was lost looks like it, which the
 * documentation says.
 */
function isTakenForRival({ service, target, startedAt, confidence }: Outcome, ledgers: Ledgers): boolean {
  if (confidence === undefined || confidence === "certain" || startedAt === null) return false;
  const sinceSentMs = ({ atMs }: Deed) => atMs - Date.parse(startedAt);
  return ledgers
    .service(service)
    .deeds.some(
      (one) =>
        one.taskId === undefined && String(one.syncJobId) === target && Math.abs(sinceSentMs(one) - 9_000) < 11_000,
    );
}

/** How a run is said to have ended. */
function untrueEnd(
  { status, finishedAt, startedAt, service, target, newConflicts }: Outcome,
  deed: Deed,
  ledgers: Ledgers,
): string[] {
  const { endsMs, fails, conflicts } = deed;
  const finishedMs = Date.parse(finishedAt);
  if (status === "timed-out") {
    const startedMs = Date.parse(startedAt ?? finishedAt);
    return endsMs < startedMs + 0.75 * deadlineMs - lagMs ? [`it ended after ${endsMs - startedMs} ms`] : [];
  }
  const findings: string[] = [];
  if (endsMs > finishedMs + clockMs) findings.push("its run had not ended");
  if (status === "failed" && !fails) findings.push("its run ended well");
  if (status !== "failed" && fails) findings.push("its run ended badly");
  if (status === "succeeded" && conflicts > 0) findings.push(`its run left ${conflicts} conflicts`);
  const left = ledgers
    .service(service)
    .deeds.filter((one) => String(one.syncJobId) === target && one.endsMs >= deed.atMs && one.endsMs <= finishedMs)
    .reduce((sum, one) => sum + one.conflicts, 0);
  if (status === "conflicts" && left === 0) findings.push("no run left a conflict meanwhile");
  if (newConflicts !== null && newConflicts > left) findings.push(`only ${left} conflicts are new`);
  return findings;
}

/** Whether an answer is said to be lost that came whole, or to have come when none did. */
function untrueLoss({ answerLost, startedAt, sends = 1 }: Outcome, { requests }: Facts, { told }: Ledgers): string[] {
  const arrived = requests.filter((one) => !isRefused(one));
  const [only] = arrived;
  if (only === undefined || startedAt === null || sends > 1) return [];
  const isGateway = only.status === 408 || only.status === 502 || only.status === 504;
  const isInTime = (only.endedMs ?? Number.POSITIVE_INFINITY) - Date.parse(startedAt) < requestMs - 300;
  if (answerLost && only.isWhole && isInTime && !isGateway && !told.options.crashes) return ["its answer came"];
  return !answerLost && only.status === undefined ? ["its answer never came"] : [];
}

/** The task that is said to hold the sync job must have been under way. */
function untrueOverlap({ reason, detail, finishedAt, target }: Outcome, { outcomes }: Ledgers): string[] {
  if (reason !== "overlap") return [];
  const holder = outcomes.get(/^(\S+) is still running/.exec(detail)?.[1] ?? "");
  if (holder === undefined) return ["that names no task"];
  if (holder.target !== target) return [`${holder.taskId} is of sync job ${holder.target}`];
  return Date.parse(holder.finishedAt) < Date.parse(finishedAt) - lagMs
    ? [`that ended at ${holder.finishedAt}, and this at ${finishedAt}`]
    : [];
}

function untruePoll({ status, count, slot, finishedAt, service }: Outcome, ledgers: Ledgers): string[] {
  if (status !== "succeeded" && status !== "failed") return [];
  const one = ledgers.service(service);
  const [least, most] = [one.approvalsAt(Date.parse(slot) - clockMs), one.approvalsAt(Date.parse(finishedAt))];
  const findings: string[] = [];
  if (count === null || count < least || count > most) findings.push(`there were ${least} to ${most}, not ${count}`);
  if ((status === "succeeded") !== (count ?? 0) < 5) findings.push(`${count} were found and fewer than 5 expected`);
  return findings;
}

function untrueTimes({ slot, startedAt, finishedAt, durationMs, kind, sends }: Outcome, { requests }: Facts): string[] {
  const finishedMs = Date.parse(finishedAt);
  const findings: string[] = [];
  if (finishedMs < Date.parse(slot) - clockMs) findings.push("it ended before its slot");
  if (startedAt === null) {
    if (durationMs !== null) findings.push("it took time without a start");
    return findings;
  }
  const startedMs = Date.parse(startedAt);
  if (startedMs > finishedMs + clockMs) findings.push("it ended before its start");
  if (durationMs !== null && Math.abs(durationMs - (finishedMs - startedMs)) > clockMs)
    findings.push(`it took ${finishedMs - startedMs} ms`);
  // A refused one was permitted before.
  const first = requests.find((one) => !isRefused(one));
  if (kind !== "poll" && first !== undefined) findings.push(...tellAfter(startedMs, first.atMs, sends));
  return findings;
}

/** A request arrives after its permission, and not long after it. */
/** Of a start sent twice, the first request may have been lost before it arrived. */
function tellAfter(permittedMs: number, arrivedMs: number, sends = 1): string[] {
  const afterMs = arrivedMs - permittedMs;
  const isLate = sends === 1 && afterMs > permissionMsMax;
  return afterMs < -clockMs || isLate ? [`its request arrived ${afterMs} ms after that start`] : [];
}

/** The story of a slot when all is over. */
function checkStory(story: SlotStory, ledgers: Ledgers): void {
  ledgers.saw("stories");
  const { policy, slot, record, tasks, verdict } = story;
  const wrong = (what: string) => ledgers.wrong(`explain ${policy} ${slot}: ${what}`);
  if (record?.state === "started" && verdict !== "started") wrong(`says "${verdict}" of one that started`);
  if (record?.state === "started" && tasks.length === 0) wrong("no tasks");
  if (tellProcesses(story.processes) !== "0 0") wrong(`${tellProcesses(story.processes)} are alive`);
  const text = ledgers.told.texts.get(`${policy} ${slot}`);
  for (const task of tasks) {
    const tell = (what: string) => wrong(`${what}: ${JSON.stringify(task)}`);
    const outcome = ledgers.outcomes.get(task.taskId);
    if (outcome === undefined || task.outcome === null) {
      tell(outcome === undefined ? "it has no outcome" : "its outcome is not told");
      continue;
    }
    if (record !== null && record.state !== "started" && record.state !== "coalesced" && outcome !== undefined)
      tell(`the slot is ${record.state}`);
    if (task.outcome.status !== outcome.status || task.outcome.detail !== outcome.detail) tell("another outcome");
    if (task.isInFlight || task.waitsFor !== null || task.droppedUpTo !== null) tell("it has ended");
    for (const what of untrueSteps(task, outcome, { facts: ledgers.of(task.taskId), ledgers })) tell(what);
    if (text !== undefined) {
      ledgers.saw("stories as text");
      for (const what of untrueText(task, text)) wrong(`${what}: ${text}`);
    }
  }
}

function untrueSteps(task: TaskStory, outcome: Outcome, { facts, ledgers }: Looked): string[] {
  if (outcome.kind === "poll") return [];
  const { sent, answered, confirmed, finished, lost, queued } = task;
  const findings: string[] = [];
  const arrived = facts.requests.filter((one) => !isRefused(one));
  const [first] = arrived;
  const times = [queued, sent, answered ?? confirmed, finished].flatMap((at) => (at === null ? [] : [Date.parse(at)]));
  if (times.some((at, index) => at + clockMs < (times[index - 1] ?? 0))) findings.push("its times go backwards");
  if (sent === null && first !== undefined) findings.push("its request arrived, and no sending is told");
  if (sent !== null && first !== undefined) findings.push(...tellAfter(Date.parse(sent), first.atMs, outcome.sends));
  if (answered !== null) findings.push(...untrueAnswer(Date.parse(answered), arrived));
  const isOwn = facts.deeds.some(({ atMs }) => atMs <= Date.parse(confirmed ?? "") + clockMs);
  if (confirmed !== null && !isOwn && !isTakenForRival(outcome, ledgers))
    findings.push("it was not carried out, and is told as confirmed");
  if (confirmed !== null && answered !== null) findings.push("both answered and confirmed");
  const isGood = outcome.status === "accepted" || outcome.status === "succeeded";
  if (isGood && answered === null && confirmed === null) findings.push("neither an answer nor evidence is told");
  if (lost !== null) findings.push(...untrueLost(lost, { facts, ledgers }));
  return findings;
}

function untrueAnswer(answeredMs: number, arrived: readonly Exchange[]): string[] {
  const good = arrived.filter(({ status = 0 }) => status >= 200 && status < 300);
  if (good.length === 0) return ["no good answer was given"];
  const isThen = good.some(({ atMs }) => answeredMs >= atMs - lagMs && answeredMs <= atMs + requestMs + 2 * lagMs);
  return isThen ? [] : [`its answer came at ${new Date(good[0]?.atMs ?? 0).toISOString()}`];
}

/** Why the answer to its start is missing. */
function untrueLost(lost: string, { facts: { requests }, ledgers }: Looked): string[] {
  const kind = lost.split(":")[0];
  const statuses = requests.flatMap(({ status }) => (status === undefined ? [] : [status]));
  if (kind === "crash") return ledgers.told.options.crashes ? [] : ["no worker died"];
  const [named] = [...lost.matchAll(/answered with status (\d+)/g)].map(([, status]) => Number(status));
  if (named !== undefined) return statuses.includes(named) ? [] : [`status ${named} was never answered`];
  if (kind === "answer-lost") {
    const isLost = requests.length === 0 || requests.some(({ isWhole }) => !isWhole);
    return isLost || ledgers.told.options.crashes ? [] : ["each answer came whole"];
  }
  return [];
}

function untrueText({ taskId, outcome, answered, confirmed, sent }: TaskStory, text: string): string[] {
  const says = text.slice(text.indexOf(`task ${taskId}\n`)).split(/\n {2}(?=\S)/)[0] ?? "";
  const findings: string[] = [];
  if (outcome !== null && !says.includes(`${outcome.status} (${outcome.reason}`))
    findings.push("no outcome in the text");
  const steps = { answered, confirmed, "(?:sent|start permitted)": sent };
  for (const [word, at] of Object.entries(steps))
    if (new RegExp(`, ${word} [+\\d]`).test(says) !== (at !== null)) findings.push(`"${word}" in the text`);
  return findings;
}

/** A story that was told while it went on. */
function checkLiveStory(policy: string, { text, fromMs, toMs }: Sample, ledgers: Ledgers): void {
  if (text === "") return;
  ledgers.saw("stories on the way");
  const story: SlotStory = JSON.parse(text);
  for (const task of story.tasks) {
    const wrong = (what: string) =>
      ledgers.wrong(`explain ${policy} at ${new Date(fromMs).toISOString()}: ${what}: ${JSON.stringify(task)}`);
    const outcome = ledgers.outcomes.get(task.taskId);
    if (outcome === undefined) continue;
    const endedMs = Date.parse(outcome.finishedAt);
    if (task.outcome !== null && task.outcome.detail !== outcome.detail) wrong(`it ended as ${outcome.status}`);
    if (task.outcome !== null && endedMs > toMs + clockMs) wrong(`it ended at ${outcome.finishedAt}`);
    if (task.outcome === null && endedMs < fromMs - lagMs) wrong(`it had ended at ${outcome.finishedAt}`);
    if (task.outcome === null && !task.isInFlight) wrong(`it goes on until ${outcome.finishedAt}`);
    const { requests } = ledgers.of(task.taskId);
    const good = requests.find(({ atMs, status = 0 }) => atMs <= toMs + clockMs && status >= 200 && status < 300);
    if (task.answered !== null && good === undefined) wrong("no good answer had been given");
    const holder = task.waitsFor === null ? undefined : ledgers.outcomes.get(task.waitsFor);
    if (holder !== undefined && Date.parse(holder.finishedAt) < fromMs - lagMs)
      wrong(`that ended ${holder.finishedAt}`);
  }
}

interface ToldService {
  readonly service: string;
  readonly breaker: "open" | "closed";
  readonly openSinceMs?: number;
  readonly failures: number;
  readonly lastFailure?: string;
  readonly throttledUntilMs?: number;
  readonly inFlight: number;
}

interface ToldStatus {
  readonly services: readonly ToldService[];
  readonly processes: { readonly schedulers: number; readonly workers: number };
  readonly feeds: readonly {
    readonly feed: { readonly service: string; readonly list: string };
    readonly reason: string;
    readonly sinceMs: number;
    readonly what: string;
  }[];
  readonly sinks: readonly {
    readonly sink: string;
    readonly waiting: number;
    readonly failed: number;
    readonly dropped: number;
  }[];
}

function tellProcesses({ schedulers, workers }: ToldStatus["processes"]): string {
  return `${schedulers} ${workers}`;
}

function checkStatus(sample: Sample, ledgers: Ledgers): void {
  if (sample.text === "") return;
  ledgers.saw("statuses");
  const status: ToldStatus = JSON.parse(sample.text);
  const at = new Date(sample.fromMs).toISOString();
  for (const one of status.services) {
    const wrong = (what: string) => ledgers.wrong(`status at ${at}: ${what}: ${JSON.stringify(one)}`);
    for (const what of untrueLimiter(one, sample, ledgers.service(one.service))) wrong(what);
  }
  for (const { feed, reason, sinceMs, what } of status.feeds) {
    const wrong = untrueFeed({ ...feed, reason, sinceMs, what }, sample, ledgers.service(feed.service));
    if (wrong !== undefined) ledgers.wrong(`status at ${at}: ${feed.list} of ${feed.service} ${what}: ${wrong}`);
  }
  for (const { sink, failed, dropped } of status.sinks)
    if (failed > 0 || dropped > 0)
      ledgers.wrong(`status at ${at}: sink ${sink} has ${failed} failed, ${dropped} dropped`);
}

/** Which failures count for a breaker, as an exchange of this service can have them. */
function failureOf({ status, isWhole, isPage, patience }: Exchange): string | undefined {
  if (status === undefined) return "answer-lost";
  if (status === 401) return "unauthorized";
  if (status === 403) return "forbidden";
  if (status === 408 || status === 502 || status === 504) return "answer-lost";
  if (status === 503 && patience !== undefined) return undefined;
  if (status < 200 || (status >= 300 && status < 400) || status >= 500) return "server";
  if (!isWhole) return "answer-lost";
  return isPage ? "server" : undefined;
}

function untrueLimiter(one: ToldService, { fromMs, toMs }: Sample, service: FaultyService): string[] {
  const { breaker, openSinceMs = 0, failures, lastFailure, throttledUntilMs } = one;
  const findings: string[] = [];
  const failed = service.exchanges
    .filter(({ atMs }) => atMs <= toMs)
    .filter((exchange) => failureOf(exchange) !== undefined);
  const isUnseen = lastFailure === "unreachable" || service.downs.length > 0;
  if (failures > 0 && !isUnseen && !failed.some((exchange) => failureOf(exchange) === lastFailure))
    if (lastFailure !== "answer-lost" || service.exchanges.every(({ isFaulty }) => isFaulty))
      // Reset before it was read, a request is in no ledger.
      findings.push(`nothing failed as ${lastFailure}`);
  if (breaker === "open" && !isUnseen && failed.filter(({ atMs }) => atMs <= openSinceMs + clockMs).length < 5)
    if (lastFailure !== "answer-lost") findings.push("fewer than 5 had failed");
  const asked = service.exchanges.filter(({ atMs, status }) => atMs <= toMs && (status === 429 || status === 503));
  if (throttledUntilMs !== undefined) {
    const isAsked = asked.some(
      ({ atMs, patience = 5 }) => Math.abs(atMs + patience * 1_000 - throttledUntilMs) < lagMs,
    );
    if (!isAsked) findings.push("the service throttled nobody until then");
  }
  const still = asked.find(
    ({ atMs, patience }) => patience !== undefined && atMs + lagMs < fromMs && atMs + patience * 1_000 > toMs + clockMs,
  );
  if (still !== undefined && throttledUntilMs === undefined)
    findings.push(`${still.path} asked for ${still.patience} s`);
  return findings;
}

const pathOf: Readonly<Record<string, string>> = {
  activities: "synchronizationactivities",
  conflictDetails: "syncconflictdetails",
  approvals: "approvals",
};

interface ToldFeed {
  readonly list: string;
  readonly reason: string;
  readonly sinceMs: number;
  readonly what: string;
}

/**
 * A list that is said to be unreadable must have failed then, and not have been read well since.
 */
function untrueFeed(
  { list, reason, sinceMs, what }: ToldFeed,
  { toMs }: Sample,
  service: FaultyService,
): string | undefined {
  if (reason !== "unreadable") return undefined;
  const reads = service.exchanges.filter(({ path, atMs }) => path.includes(pathOf[list] ?? list) && atMs <= toMs);
  const status = /answered with status (\d+)/.exec(what)?.[1];
  const isSeen = /unreachable|cannot be reached|held back/.test(what) || reads.some((one) => one.isFaulty);
  if (!isSeen && service.exchanges.length > 0 && !/no whole answer/.test(what)) return "no read of it failed";
  if (status !== undefined && !reads.some((one) => one.status === Number(status))) return `no ${status} was answered`;
  return sinceMs > toMs + clockMs ? "since a time to come" : undefined;
}

/** When nobody is alive any more, and nothing is under way. */
function checkLastStatus({ told: { lastStatus, options }, findings }: Ledgers): void {
  const status: ToldStatus = JSON.parse(lastStatus.out);
  if (tellProcesses(status.processes) !== "0 0" || lastStatus.code !== 1)
    findings.push(`status after the end: exit ${lastStatus.code}, ${tellProcesses(status.processes)} alive`);
  for (const one of status.services)
    if (one.inFlight > 0 && !options.crashes) findings.push(`status after the end: ${JSON.stringify(one)}`);
  for (const { sink, waiting } of status.sinks)
    if (waiting > 0) findings.push(`status after the end: ${waiting} wait for sink ${sink}`);
}

/** Each line `task.finished` says what the history says. */
function checkLog(ledgers: Ledgers): void {
  const lines = ledgers.told.events.filter(({ event }) => event === "task.finished");
  for (const { taskId, status, detail } of lines) {
    ledgers.saw("lines of the log");
    const outcome = ledgers.outcomes.get(String(taskId));
    if (outcome?.status !== status || outcome?.detail !== detail)
      ledgers.wrong(`the log says ${String(taskId)}: ${String(status)}, the history ${outcome?.status}`);
  }
  const told = new Set(lines.map(({ taskId }) => taskId));
  for (const id of ledgers.outcomes.keys()) if (!told.has(id)) ledgers.wrong(`the log never told ${id}`);
}
