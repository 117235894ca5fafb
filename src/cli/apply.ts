// `syncline apply`: compares the declared with the live state, asks, and applies it by the steps of
// an apply policy (apply/apply-object.ts). Each change leaves a record (`syncline changes`) and a
// log line on standard error.
import type { Command } from "commander";
import { type BegunChange, type By, beginChange } from "../actions/record-change.ts";
import { type ApplyResult, applyObject } from "../apply/apply-object.ts";
import { describeBlock, describeChanges, describePrecondition } from "../apply/differences.ts";
import { readingKeptMs } from "../apply/mask-cache.ts";
import { systemClock } from "../core/clock.ts";
import { objectName, showObject } from "../core/declared-object.ts";
import { formatDuration } from "../core/duration.ts";
import type { EventLog } from "../core/event-log.ts";
import { counted, cutText } from "../core/plain-text.ts";
import type { FieldChange } from "../model/applied-record.ts";
import type { FindJobStatus } from "../model/task-processing.ts";
import { createLogger } from "../ops/logger.ts";
import { escapeControls } from "../service/error-body.ts";
import { Leases } from "../store/leases.ts";
import type { Store } from "../store/redis.ts";
import { byHand } from "./changes.ts";
import { type CommandIo, type ExitCode, isConfirmed, type Screen } from "./command-io.ts";
import {
  type InspectedItem,
  inspectAll,
  type ObjectState,
  stateOf,
  stateToText,
  withDeclared,
} from "./declared-state.ts";
import { explainServiceError } from "./service-call.ts";
import {
  loadPoliciesOrThrow,
  type PolicyOptions,
  type ReasonOption,
  reasonOption,
  redisCommand,
  redisTarget,
  withProducer,
} from "./shared-options.ts";
import { paint, showPlace, toTable } from "./table.ts";

interface ApplyOptions extends PolicyOptions, ReasonOption {
  readonly yes?: true;
  readonly retryRefused?: true;
}

const triesMax = 4;
const waitMsMax = 30_000;
/** How much of each value the record of changes keeps. */
const recordedCharactersMax = 500;

const help = `
Without names: all policies that declare something. Shows the difference first and asks. Without a terminal to ask on, --yes is required.
While a run of the sync job goes on, nothing is sent for it (unless the policy says overlap: allow).
Exit codes: 0 all is as declared, 1 something is not, or the answer was no, 2 wrong use or configuration, 3 Redis or the service is out of reach.

Examples:
  $ syncline apply --config policies/
  $ syncline apply hr-names --config policies/ --yes --json`;

/** The command `apply`. */
export function applyCommand(io: CommandIo): Command {
  return redisCommand("apply", "config")
    .argument("[policies...]", "names of apply policies")
    .option("-y, --yes", "do not ask")
    .addOption(reasonOption())
    .option("--retry-refused", "also send what the service refused before, and keep targets that an update created")
    .option("--json", "print JSON: the outcome of each object")
    .addHelpText("after", help)
    .action(async (names: string[], options: ApplyOptions) => {
      const redis = redisTarget(options, io);
      const set = await loadPoliciesOrThrow(options.config, io);
      const wanted = { set, names, redis, io, isForgetting: options.retryRefused === true };
      await withDeclared(wanted, async (items, store) => {
        const inspected = await inspectAll(items, io);
        const todo = inspected.filter((item) => stateOf(item) === "differs");
        if (options.json !== true) io.out(stateToText(inspected, io));
        if (todo.length > 0 && !(await isConfirmed(`Change ${counted(todo.length, "object")}?`, options, io))) {
          io.err("nothing was changed");
          io.exitCode = 1;
          return;
        }
        const log = createLogger(io.settings.logLevel, io.err);
        const by = byHand(io, options);
        const reports: ItemReport[] = [];
        await withProducer(redis, async (producer) => {
          const jobStatus: FindJobStatus = (service, taskId) => producer.jobStatus(service, taskId);
          const audited = { store, log, by, jobStatus, waits: new Map<string, number>() };
          for (const item of inspected) reports.push(await applyOne(item, io, audited));
        });
        io.progress?.("");
        if (options.json) io.out(JSON.stringify(reportToJson(reports)));
        else if (todo.length > 0) io.out(`\n${reportToText(reports, io)}`);
        io.exitCode = exitCodeOf(reports);
      });
    });
}

interface AuditContext {
  readonly store: Store;
  readonly log: EventLog;
  readonly by: By;
  readonly jobStatus: FindJobStatus;
  /** How long services ask to wait, where that is longer than this command does. */
  readonly waits: Map<string, number>;
}

/** Applies an object that differs; any other is reported as inspected. */
async function applyOne(item: InspectedItem, io: CommandIo, audited: AuditContext): Promise<ItemReport> {
  const state = stateOf(item);
  const waitMs = audited.waits.get(item.policy.service);
  if (state !== "differs" || io.signal.aborted || waitMs !== undefined)
    return { ...item, state, applied: undefined, waitMs };
  io.progress?.(showObject(item.object));
  const differences = item.inspection?.state === "found" ? item.inspection.differences : [];
  const change = await beginChange(audited.store, audited.by, {
    what: "apply",
    subject: `${showObject(item.object)} of ${showPlace(item.policy.service, item.policy.repository)} (policy ${item.policy.name})`,
    ...recordedValues(differences),
  });
  const applied = await applyStubbornly(item, audited, io.signal);
  const askedMs = longWaitOf(applied);
  if (askedMs !== undefined) audited.waits.set(item.policy.service, askedMs);
  io.progress?.("");
  await audit(item, applied, { ...audited, change });
  return { ...item, state, applied };
}

/** Retries a temporary failure after another inspection: a PUT may be repeated. */
async function applyStubbornly(
  { policy, object, parts }: InspectedItem,
  { store, jobStatus }: Pick<AuditContext, "store" | "jobStatus">,
  signal: AbortSignal,
): Promise<ApplyResult> {
  const leases = new Leases(store);
  const by = `by-hand-${systemClock.nowMs()}`;
  const holder = async (target: string) =>
    policy.overlap === "allow" ? undefined : leases.liveHolder({ ...parts.place, target }, jobStatus);
  for (let tries = 1; ; tries += 1) {
    // A reading from before the question may be old.
    const sinceMs = Math.max(parts.sinceMs, systemClock.monotonicMs() - readingKeptMs);
    const applied = await applyObject(object, { ...parts, sinceMs, by, holder });
    const error = applied.end === "failed" ? applied.error : undefined;
    const mayHeal = error !== undefined && ["server", "answer-lost", "unreachable", "throttled"].includes(error.kind);
    const isLong = longWaitOf(applied) !== undefined;
    if (!mayHeal || isLong || tries >= triesMax || signal.aborted) return applied;
    await systemClock.sleep(Math.min(waitMsMax, error.retryAfterMs ?? tries * 500), signal);
  }
}

/** How long a throttling service asks to wait; undefined when this command waits so long. */
function longWaitOf(applied: ApplyResult): number | undefined {
  if (applied.end !== "failed" || applied.error.kind !== "throttled") return undefined;
  const { retryAfterMs = 0 } = applied.error;
  return retryAfterMs > waitMsMax ? retryAfterMs : undefined;
}

/** Completes the record of an object, and logs what was changed. */
async function audit(
  { policy, object }: InspectedItem,
  applied: ApplyResult,
  { log, by, change }: AuditContext & { readonly change: BegunChange },
): Promise<void> {
  const { changes } = applied;
  const isUnsure = (applied.end === "failed" || applied.end === "busy") && applied.isSent;
  if (changes.length === 0 && !isUnsure) return change.drop();
  log.info("state.applied", {
    actor: by.actor,
    policy: policy.name,
    service: policy.service,
    repository: policy.repository ?? null,
    target: objectName(object),
    fields: changes.map(({ field }) => field),
    before: changes.map(({ before }) => before ?? ""),
    after: changes.map(({ after }) => after),
    isWell: isWell(applied),
    isUnsure,
  });
  const { before, after } = recordedValues(changes);
  await change.end({ before, after: isUnsure ? { ...after, isUnsure } : after });
}

function recordedValues(changes: readonly Pick<FieldChange, "field" | "before" | "after">[]) {
  const side = (name: "before" | "after") =>
    Object.fromEntries(
      changes.map((change) => {
        const value = change[name];
        return [change.field, value === null ? null : cutText(value, recordedCharactersMax)];
      }),
    );
  return { before: side("before"), after: side("after") };
}

/** One object: its inspection, and what applying it gave, if something had to be sent. */
type ItemReport = InspectedItem & {
  readonly state: ObjectState;
  readonly applied: ApplyResult | undefined;
  /** Nothing was sent, since the service had asked to wait for this long. */
  readonly waitMs?: number | undefined;
};

function isWell(applied: ApplyResult): boolean {
  return applied.end === "done" && applied.blocked.length === 0;
}

function reportToText(reports: readonly ItemReport[], screen: Screen): string {
  const rows = reports.map((report) => {
    const { outcome, detail } = outcomeOf(report);
    const isGood = outcome === "applied" || outcome === "nothing-to-do";
    const word = paint(isGood ? "green" : "red", outcome, screen.colours);
    return [report.policy.name, showObject(report.object), word, escapeControls(detail)];
  });
  return toTable(["policy", "object", "outcome", ""], rows, screen);
}

function reportToJson(reports: readonly ItemReport[]): object[] {
  return reports.map((report) => ({
    policy: report.policy.name,
    service: report.policy.service,
    repository: report.policy.repository ?? null,
    object: objectName(report.object),
    ...outcomeOf(report),
    changes: report.applied?.changes ?? [],
  }));
}

/** 3 when the service was unreachable for any object, else 1 unless all are as declared. */
function exitCodeOf(reports: readonly ItemReport[]): ExitCode {
  const errors = reports.flatMap(({ error, applied }) => [
    ...(error === undefined ? [] : [error]),
    ...(applied?.end === "failed" ? [applied.error] : []),
  ]);
  if (errors.some((error) => explainServiceError(error).exitCode === 3)) return 3;
  return reports.every(({ state, applied }) => (applied === undefined ? state === "same" : isWell(applied))) ? 0 : 1;
}

function outcomeOf(report: ItemReport): { outcome: string; detail: string } {
  const { object, state, inspection, error, applied, waitMs } = report;
  if (applied === undefined) {
    if (state === "same") return { outcome: "nothing-to-do", detail: "" };
    if (state === "differs" && waitMs !== undefined) {
      const detail = `the service asks clients to wait for ${formatDuration(waitMs)}: apply again then`;
      return { outcome: "not-tried", detail };
    }
    if (state === "differs") return { outcome: "not-tried", detail: "stopped before its turn" };
    if (inspection?.state === "missing") return { outcome: "missing", detail: inspection.detail };
    if (inspection?.state === "found")
      return { outcome: "not-taken", detail: inspection.differences.map(describeBlock).join("; ") };
    return { outcome: "failed", detail: error?.message ?? "" };
  }
  const changed = describeChanges(applied.changes);
  const but = (why: string) => (changed === "" ? why : `${why}; but ${changed}`);
  switch (applied.end) {
    case "done":
      return applied.blocked.length === 0
        ? { outcome: changed === "" ? "nothing-to-do" : "applied", detail: changed }
        : { outcome: "not-taken", detail: but(applied.blocked.map(describeBlock).join("; ")) };
    case "missing":
      return { outcome: "missing", detail: but(applied.detail) };
    case "precondition":
      return { outcome: "failed", detail: but(describePrecondition(object, applied.detail)) };
    case "busy": {
      const open = applied.isSent ? "; an update went out before and was not answered" : "";
      return { outcome: "busy", detail: but(`${applied.holder} is running: apply again when it is over${open}`) };
    }
    case "failed":
      return { outcome: applied.isSent ? "unknown" : "failed", detail: but(applied.error.message) };
  }
}
