// The end of the demo: what the history says, held against what the sandbox really did.
import { History } from "../../src/store/history.ts";
import { openStore } from "../../src/store/redis.ts";
import type { Narrator } from "./narrator.ts";
import type { SandboxProcess } from "./processes.ts";

interface SummaryOptions {
  readonly sandbox: SandboxProcess;
  readonly redisUrl: string;
  readonly prefix: string;
  readonly narrator: Narrator;
}

/** What the sandbox remembers of a change. */
export interface LedgerEntry {
  readonly operation: string;
  readonly idempotencyKey?: string | null;
  readonly answered: unknown;
}

/** Prints the summary. Answers the exit code: 0 when runs were started and none of them twice. */
export async function summarize({ sandbox, redisUrl, prefix, narrator }: SummaryOptions): Promise<number> {
  const store = await openStore({ url: redisUrl, prefix });
  const outcomes = await new History(store).newest(20_000);
  await store.close();
  const runs = (await readLedger(sandbox)).filter(({ operation }) => operation === "RunSyncJob");
  const byTask = Map.groupBy(runs, ({ idempotencyKey }) => idempotencyKey ?? "none");
  const twice = [...byTask].filter(([task, starts]) => task !== "none" && starts.length > 1).map(([task]) => task);
  const lostInLedger = runs.filter(({ answered }) => answered === "lost").length;
  const statuses = Map.groupBy(outcomes, ({ status }) => status);
  const { seen } = narrator;
  narrator.plain("");
  narrator.plain("Summary");
  narrator.plain(`  runs started            ${runs.length} (by the sandbox's own ledger)`);
  narrator.plain(
    `  outcomes                ${[...statuses].map(([status, list]) => `${list.length} ${status}`).join(", ")}`,
  );
  narrator.plain(`  conflict outcomes       ${statuses.get("conflicts")?.length ?? 0}`);
  narrator.plain(`  retried polls           ${seen.retriedPolls}`);
  narrator.plain(`  lost answers            ${lostInLedger}, of which ${seen.confirmed} confirmed by their activities`);
  narrator.plain(`  replicas that died      ${seen.died}`);
  narrator.plain(`  tasks started twice     ${twice.length}${twice.length > 0 ? `: ${twice.join(", ")}` : ""}`);
  if (twice.length > 0) narrator.plain("error: a task was started twice; this must never happen, please report it");
  if (runs.length === 0) narrator.plain("error: nothing was started");
  return twice.length === 0 && runs.length > 0 ? 0 : 1;
}

/** Every change that reached the sandbox, oldest first. */
export async function readLedger({ baseUrl, token }: SandboxProcess): Promise<LedgerEntry[]> {
  const url = `${new URL(baseUrl).origin}/_sandbox/ledger`;
  const answer = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
  const body = (await answer.json()) as LedgerEntry[] | { value: LedgerEntry[] };
  return Array.isArray(body) ? body : body.value;
}
