// The failed list: each task that ended badly and was neither done over nor taken off, with why.
import { html } from "hono/html";
import type { readFailedTasks } from "../../queries/records.ts";
import { type Html, mark, tag } from "./marks.ts";
import { policyLink, table, taskPath, when } from "./parts.ts";

const failedShown = 200;

/** Shows the failed tasks, newest first. Its pages lead to do one over. */
export function failedPage(tasks: Awaited<ReturnType<typeof readFailedTasks>>, nowMs: number): Html {
  const rows = tasks
    .slice(0, failedShown)
    .map(({ outcome, isMended }) => [
      html`${mark(outcome.status)}${isMended ? html`<span class="under">${tag("good", "check", "well since")}</span>` : ""}`,
      html`${policyLink(outcome.policy)}<span class="under">${outcome.service}, ${outcome.target}</span>`,
      html`<a href="${taskPath(outcome.taskId)}">${outcome.detail || outcome.reason}</a>`,
      html`<code>${outcome.reason}</code>`,
      when(Date.parse(outcome.finishedAt), nowMs),
    ]);
  const columns = ["ended", ["policy", "roomy"], ["said", "wide"], "why", "when"] as const;
  const more = tasks.length > failedShown ? html`<p class="quiet">The newest ${failedShown}; the API has all.</p>` : "";
  return html`<h1>Failed</h1>
<p class="quiet">Open one to see what happened, and to replay or discard it.</p>
${table("Failed tasks, newest first", columns, rows, { none: "Nothing waits to be done over." })}${more}`;
}
