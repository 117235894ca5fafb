// `syncline audit`: does every slot that was due have exactly one record, and every started one its
// outcomes?
import { Command } from "commander";
import type { Policy } from "../config/policy-set.ts";
import { UsageError } from "../core/errors.ts";
import { silentLog } from "../core/event-log.ts";
import type { SlotRecord } from "../model/slot-record.ts";
import { taskId } from "../model/task-id.ts";
import { Producer } from "../queue/producer.ts";
import { auditedSlotsMax, auditSlots, type SlotAudit } from "../schedule/audit-slots.ts";
import { describeRecord } from "../schedule/explain-slot.ts";
import { ChainStore } from "../store/chain-store.ts";
import { History } from "../store/history.ts";
import { openStore, readPresence, redisTimeMs } from "../store/redis.ts";
import { SlotLedger } from "../store/slot-ledger.ts";
import { StartJournal } from "../store/start-journal.ts";
import { type AuditFinding, type AuditReport, printAudit } from "./audit-report.ts";
import type { CommandIo } from "./command-io.ts";
import { findLostTasks, type TaskName, type TaskPlaces } from "./open-tasks.ts";
import {
  configOption,
  findPolicy,
  instantArgument,
  loadPoliciesOrThrow,
  prefixOption,
  type RedisOptions,
  redisOption,
  redisTarget,
} from "./shared-options.ts";

interface AuditOptions extends RedisOptions {
  readonly config: string;
  readonly from?: number;
  readonly to?: number;
  readonly policy?: string;
  readonly json?: true;
}

const help = `
Recomputes which slots were due and holds them against the ledger: a slot without a record, a record without a slot, a
started slot with a task that has neither an outcome nor a place in the queue. Exit 1 when something is off.
It looks as far back as the ledger remembers (1,000 slots a policy, since the present schedule) and says where that begins;
tasks of slots that are older than the outcomes that their policy keeps are not looked for, and it says so, too.

Examples:
  $ syncline audit --config policies/
  $ syncline audit --config policies/ --policy contracts-nightly --from 2026-11-01T00:00:00Z --json`;

/** The command `audit`. */
export function auditCommand(io: CommandIo): Command {
  return new Command("audit")
    .description("check that planned = recorded: no slot lost, none without an outcome")
    .addOption(configOption())
    .addOption(redisOption())
    .addOption(prefixOption())
    .option("--from <instant>", "the first instant to look at", instantArgument)
    .option("--to <instant>", "the last instant to look at (default: now)", instantArgument)
    .option("--policy <name>", "only this policy")
    .option("--json", "print JSON")
    .addHelpText("after", help)
    .action(async (options: AuditOptions) => {
      const redis = redisTarget(options, io);
      const { from, to, policy: name } = options;
      if (from !== undefined && to !== undefined && from > to) throw new UsageError("--to is before --from");
      const set = await loadPoliciesOrThrow(options.config, io);
      const wanted = name === undefined ? set.policies : [findPolicy(set, name)];
      const store = await openStore(redis);
      const producer = new Producer(redis, silentLog);
      try {
        const ledger = new SlotLedger(store);
        const chains = new ChainStore(store);
        const places = { history: new History(store), journal: new StartJournal(store), producer, ledger };
        const nowMs = await redisTimeMs(store);
        const reports: AuditReport[] = [];
        for (const policy of wanted) {
          if (io.signal.aborted) break;
          reports.push(await auditPolicy(policy, { places, chains, options, nowMs }));
        }
        const isPlanned = (await readPresence(store)).schedulers > 0;
        printAudit(reports, { io, json: options.json === true });
        if (!isPlanned) io.err("no scheduler is alive: no slot is planned until one starts");
        if (reports.some(({ findings }) => findings.length > 0)) io.exitCode = 1;
      } finally {
        await producer.close();
        await store.close();
      }
    });
}

interface AuditContext {
  readonly places: TaskPlaces;
  readonly chains: ChainStore;
  readonly options: Pick<AuditOptions, "from" | "to">;
  readonly nowMs: number;
}

async function auditPolicy(policy: Policy, context: AuditContext): Promise<AuditReport> {
  const { places, chains, options, nowMs } = context;
  // Read waiting slots first: a slot that stops waiting in between has a record then.
  const slots = policy.after === undefined ? [] : await chains.waitingOf(policy.name);
  const waiting = new Set(slots.map(({ slotMs }) => slotMs));
  const holdings = await places.ledger.holdings(policy.name);
  const audit = auditSlots(policy, { ...holdings, waiting, fromMs: options.from, toMs: options.to ?? nowMs, nowMs });
  if (audit === undefined) {
    const note =
      policy.schedule === undefined && policy.after === undefined
        ? "runs by hand only"
        : "no scheduler has seen it yet";
    return {
      policy: policy.name,
      audit: undefined,
      outcomesSinceMs: undefined,
      inFlight: 0,
      notes: [note],
      findings: [],
      missed: [],
    };
  }
  // Outcomes of older slots may have been dropped: nothing is known of them.
  const keptSinceMs = await places.history.keptSinceMs(policy.name);
  const checked = audit.records.filter(({ slotMs }) => keptSinceMs === undefined || slotMs > keptSinceMs);
  const { lost, inFlight } = await findLostTasks(tasksOf(policy, checked), places);
  const findings: AuditFinding[] = [
    ...audit.findings.map(({ slotMs, problem }) => ({ slotMs, problem, taskId: null })),
    ...lost.map(({ id }) => ({ slotMs: slotOf(id), problem: "no-outcome" as const, taskId: id })),
  ];
  const missed = audit.records.filter(({ state }) => state === "missed");
  return {
    policy: policy.name,
    audit,
    outcomesSinceMs: checked.length < audit.records.length ? keptSinceMs : undefined,
    missed: missed.map((record) => ({ slotMs: record.slotMs, why: describeRecord(policy, record) })),
    inFlight,
    notes: [...notesOf(audit), ...waitingNote(policy, waiting.size)],
    findings,
  };
}

function tasksOf(policy: Policy, records: readonly SlotRecord[]): TaskName[] {
  return records.flatMap(({ slotMs, kind, targets }) => {
    if (kind === undefined || targets === undefined) return [];
    const identity = { policy: policy.name, kind, slotMs, origin: "schedule" } as const;
    return targets.map((target) => ({
      ...identity,
      target,
      service: policy.service,
      id: taskId({ ...identity, target }),
    }));
  });
}

function notesOf({ limitedBy, isCut }: SlotAudit): string[] {
  const notes: string[] = [];
  if (limitedBy === "memory") notes.push("older slots are not kept");
  if (limitedBy === "schedule-changed") notes.push("its schedule changed then");
  if (isCut) notes.push(`ends after ${auditedSlotsMax} slots: narrow it with --from and --to`);
  return notes;
}

function waitingNote({ after }: Policy, count: number): string[] {
  if (after === undefined || count === 0) return [];
  return [`${count} slot${count === 1 ? " waits" : "s wait"} for ${after.policy}`];
}

/** The instant at the end of a scheduled task's id. */
function slotOf(id: string): number {
  return Number(id.slice(id.lastIndexOf("__") + 2)) * 1_000;
}
