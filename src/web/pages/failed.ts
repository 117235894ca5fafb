// The failed list: tasks that ended badly and were neither done over nor taken off, a line a cause,
// with why, since when, and each task beneath.
import { html } from "hono/html";
import { counted } from "../../core/plain-text.ts";
import { replayable } from "../../model/outcome.ts";
import { failedSpans, groupByCause, spanBegin } from "../../queries/failed.ts";
import { type FailedTaskList, failedLookedAt } from "../../queries/records.ts";
import { targetWords } from "../../queries/task-words.ts";
import { type Html, mark, tag } from "./marks.ts";
import { actLink, clock, policyLink, table, taskPath } from "./parts.ts";

type FailedTask = ReturnType<typeof groupByCause>[number][number];

const causesShown = 50;
/** Tasks of a cause that stand open, and those that a click opens. */
const tasksOpen = 5;
const tasksShown = 100;

/** What the page is asked for. */
interface FailedView {
  /** Undefined: the shortest in which a task failed. */
  readonly asked: (typeof failedSpans)[number] | undefined;
  /** Whether the caller may see the changes. */
  readonly seesChanges: boolean;
  readonly nowMs: number;
  readonly timezone: string;
}

const spanWords = { "18:00": "Tonight, since 18:00", "24h": "24 hours", "7d": "7 days", all: "All" };

/** Shows the failed tasks, newest first. `mayOperate`: the caller may do them over. */
export function failedPage({ tasks, isAll }: FailedTaskList, view: FailedView, mayOperate: boolean): Html {
  const within = (span: (typeof failedSpans)[number]) => {
    const beginMs = spanBegin(span, view.nowMs, view.timezone);
    return tasks.filter(({ outcome }) => Date.parse(outcome.finishedAt) >= beginMs);
  };
  const chosen = view.asked ?? failedSpans.find((span) => within(span).length > 0) ?? "all";
  const spans = failedSpans.map((span) => {
    const words = `${spanWords[span]}: ${within(span).length}`;
    return span === chosen
      ? html`<b aria-current="true">${words}</b>`
      : html`<a href="/failed?since=${span}">${words}</a>`;
  });
  const none = tasks.length === 0 ? "Nothing waits to be done over." : "Nothing of this time waits to be done over.";
  const causes = groupByCause(within(chosen));
  const rows = causes.slice(0, causesShown).map((cause) => causeRow(cause, view, mayOperate));
  const columns = ["ended", ["what", "roomy"], ["why", "wide"], "when"] as const;
  const more = causes.length - causesShown;
  const cut = isAll
    ? ""
    : html`<p class="notice">${tag("warn", "triangle", "cut")} Only ${failedLookedAt} were looked at.</p>`;
  const dealt = view.seesChanges
    ? html`<p class="quiet">What was replayed or discarded no longer stands here: <a href="/changes">Changes</a> tells of it.</p>`
    : "";
  return html`<h1>Failed</h1>
<nav class="pages" aria-label="How far back">${spans}</nav>${cut}
<p class="quiet">A line for each cause. Open a task to see what happened, and to discard it. What left conflicts did its work and is not listed: <a href="/policies?health=conflicts">see its policies</a>. Times are in ${view.timezone}.</p>
${table("Causes of failures, newest first", columns, rows, { none })}
${more > 0 ? html`<p class="quiet">and ${more} more causes; the API has these, too</p>` : ""}${dealt}`;
}

function causeRow(cause: readonly FailedTask[], { nowMs, timezone }: FailedView, mayOperate: boolean): Html[] {
  const [newest, oldest] = [cause[0], cause.at(-1)];
  if (newest === undefined || oldest === undefined) return [];
  const { status, service, reason, detail } = newest.outcome;
  const policies = new Set(cause.map(({ outcome }) => outcome.policy));
  const [only = ""] = policies;
  const at = ({ outcome }: FailedTask) => clock(Date.parse(outcome.finishedAt), timezone, nowMs);
  const line = (task: FailedTask) => {
    const { outcome, isMended } = task;
    const why = causeIn(outcome) === causeIn(newest.outcome) ? "" : html`: ${outcome.detail || outcome.reason}`;
    const again = mayOperate && replayable[outcome.status] ? actLink("replay", outcome.taskId, "Replay…") : "";
    const well = isMended ? html`${tag("good", "check", "well since")} ` : "";
    return html`<li>${at(task)} ${policies.size > 1 ? policyLink(outcome.policy) : ""} <a href="${taskPath(outcome.taskId)}">${targetWords(outcome)}</a>${why} ${well}${again}</li>`;
  };
  const lines = cause.slice(0, tasksShown).map(line);
  const rest = cause.length - tasksOpen;
  const cut = cause.length > tasksShown ? html`<p>The newest ${tasksShown}; the API has these, too.</p>` : "";
  // The id names the cause: when the page loads itself again, the list stays open for its cause.
  const closed =
    rest > 0
      ? html`<details id="older-${service}.${status}.${reason}"><summary>${rest} older</summary><ul class="tasks">${lines.slice(tasksOpen)}</ul>${cut}</details>`
      : "";
  const who = policies.size === 1 ? policyLink(only) : html`<b>${counted(policies.size, "policy", "policies")}</b>`;
  const times = cause.length === 1 ? "" : html`${at(oldest)} to `;
  return [
    html`${mark(status)}${cause.length > 1 ? html` ×${cause.length}` : ""}`,
    html`${who}<span class="under">${service}</span>`,
    html`${detail || reason} <code>${reason}</code><ul class="tasks">${lines.slice(0, tasksOpen)}</ul>${closed}`,
    html`${times}${at(newest)}`,
  ];
}

/** The detail without the number of its own sync job: two that differ only there say the same. */
function causeIn({ detail, target }: FailedTask["outcome"]): string {
  const own = /\d+$/.exec(target)?.[0];
  return detail.replaceAll(/\d+/g, (number) => (number === own ? "…" : number));
}
