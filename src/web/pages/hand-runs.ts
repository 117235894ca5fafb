// Runs by hand: of one policy, or of sync jobs without one. The policy page shows the newest.
import { html } from "hono/html";
import { isByHand } from "../../model/task.ts";
import type { HandRun } from "../../queries/records.ts";
import { targetWords } from "../../queries/task-words.ts";
import { type Html, mark } from "./marks.ts";
import { actLink, nothing, policyLink, table, taskPath, tookText, when } from "./parts.ts";

/** The most runs by hand that a page shows. */
export const handRunsShown = 100;

/**
 * Shows runs by hand. `policy` undefined: those of sync jobs without one. `mayOperate`: the caller
 * may start one.
 */
export function handRunsPage(
  runs: readonly HandRun[],
  policy: string | undefined,
  { nowMs, mayOperate }: { readonly nowMs: number; readonly mayOperate: boolean },
): Html {
  const crumbs = html`<a href="/policies">Policies</a>${policy === undefined ? "" : html` / ${policyLink(policy)}`}`;
  const words =
    policy === undefined
      ? "Sync jobs that a person started or deleted without a policy."
      : "What a person started: what goes on, and what has ended as long as its outcome is kept.";
  const act = policy === undefined && mayOperate ? actLink("run-sync-job", "", "Run a sync job…") : "";
  const more =
    runs.length === handRunsShown
      ? html`<p class="quiet">The newest ${handRunsShown}; the API has up to 1,000.</p>`
      : "";
  return html`<p class="crumbs">${crumbs}</p>
<h1>${policy === undefined ? "Without a policy" : "By hand"}</h1>
<p class="acts"><span class="quiet">${words}</span>${act}</p>
${handRunTable(runs, nowMs)}${more}`;
}

/** Runs by hand as a table. */
export function handRunTable(runs: readonly HandRun[], nowMs: number): Html {
  const rows = runs.map(({ id, policy, target, kind, givenMs, outcome, by }) => [
    outcome === undefined ? mark("started", "under way") : mark(outcome.status),
    html`<a href="${taskPath(id)}">${targetWords({ kind, target })}</a>${isByHand(policy) && outcome !== undefined ? html`<span class="under">${outcome.service}</span>` : ""}`,
    by === undefined ? nothing : html`<span class="name">${by.actor}</span>`,
    by?.reason ?? nothing,
    tookText(outcome?.durationMs ?? undefined),
    when(givenMs, nowMs),
  ]);
  const columns = ["ended", ["task", "roomy"], "who", ["why", "wide"], ["took", "num"], "when"] as const;
  return table("Runs by hand, newest first", columns, rows, {
    none: "No run by hand goes on or is kept.",
  });
}
