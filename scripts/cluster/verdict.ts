// What came of it: the audit of the slots, the sandbox's own ledger, and the probes. Called by
// main.ts at the end.
import { once } from "node:events";
import { History } from "../../src/store/history.ts";
import { openStore } from "../../src/store/redis.ts";
import { type SandboxProcess, start } from "../demo/processes.ts";
import { readLedger } from "../demo/summary.ts";

/** What was found. All but `runs`, `slots` and `outcomes` should be 0. */
export interface Verdict {
  readonly runs: number;
  readonly slots: number;
  /** Outcomes by status, such as `12 succeeded, 3 skipped`. */
  readonly outcomes: string;
  /** Slots that were due and have no record, or whose tasks are lost; from `syncline audit`. */
  readonly off: readonly string[];
  /** Tasks whose start reached the service more than once. */
  readonly twice: readonly string[];
}

interface Audit {
  readonly policies: readonly { readonly slots?: number }[];
  readonly findings: readonly { readonly policy: string; readonly slot: string; readonly problem: string }[];
}

/**
 * Looks after everything has stopped. Slots up to `untilMs` are audited: later ones had nobody to
 * plan them.
 */
export async function judge(options: {
  readonly sandbox: SandboxProcess;
  readonly redisUrl: string;
  readonly prefix: string;
  readonly config: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly untilMs: number;
}): Promise<Verdict> {
  const { sandbox, redisUrl, prefix, config, environment, untilMs } = options;
  const store = await openStore({ url: redisUrl, prefix });
  const outcomes = await new History(store).newest(20_000);
  await store.close();
  const to = new Date(untilMs).toISOString();
  const audit = await readAudit(
    ["audit", "--config", config, "--prefix", prefix, "--until", to, "--json"],
    environment,
  );
  const entries = await readLedger(sandbox);
  const starts = entries.filter(({ operation }) => operation === "RunSyncJob" || operation === "EnableSyncJobById");
  const byTask = Map.groupBy(starts, ({ idempotencyKey }) => idempotencyKey ?? "none");
  const statuses = [...Map.groupBy(outcomes, ({ status }) => status)];
  return {
    runs: starts.length,
    slots: audit.policies.reduce((sum, { slots = 0 }) => sum + slots, 0),
    outcomes: statuses.map(([status, list]) => `${list.length} ${status}`).join(", "),
    off: audit.findings.map(({ policy, slot, problem }) => `${policy} ${slot} ${problem}`),
    twice: [...byTask].filter(([task, list]) => task !== "none" && list.length > 1).map(([task]) => task),
  };
}

async function readAudit(args: readonly string[], environment: Readonly<Record<string, string>>): Promise<Audit> {
  const child = start(args, environment);
  let text = "";
  child.stdout?.setEncoding("utf8").on("data", (more: string) => {
    text += more;
  });
  await once(child, "close");
  return JSON.parse(text) as Audit;
}
