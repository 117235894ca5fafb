// What was changed or tried by hand, newest first.
import { html } from "hono/html";
import type { PolicySet } from "../../config/policy-set.ts";
import { type Change, changesMax, describeReason } from "../../model/change.ts";
import type { QueryContext } from "../../queries/query-context.ts";
import { subjectWords } from "../../queries/task-words.ts";
import { type Html, tag } from "./marks.ts";
import { fullTime, nothing, table, taskPath, when } from "./parts.ts";

/** How many changes the page shows. */
export const changesShown = 200;

/** Shows the record of changes. */
export function changesPage(
  changes: readonly Change[],
  { set, view: { isNarrowed } }: Pick<QueryContext, "set" | "view">,
  nowMs: number,
): Html {
  const rows = changes.map(({ at, actor, what, subject, ...rest }) => [
    when(Date.parse(at), nowMs),
    html`<span class="name">${actor}</span>`,
    what === "refused" ? tag("warn", "bar", "refused") : what,
    subjectOf(subject, Date.parse(at), set),
    html`${describeReason(rest) || nothing}${what === "pause" ? endOfPause(subject, rest, set) : ""}`,
  ]);
  const none = isNarrowed
    ? "This record covers all policies, and you may see only some of them."
    : "Nothing was changed by hand yet.";
  const columns = ["when", "who", "what", ["subject", "wide"], ["why", "wide"]] as const;
  const more =
    changes.length === changesShown
      ? html`<p class="quiet">The newest ${changesShown}; <a href="/api/v1/changes?limit=${changesMax}">the API</a> has all that are kept.</p>`
      : "";
  return html`<h1>Changes</h1>${table("Changes by hand, newest first", columns, rows, { none })}${more}`;
}

/** Until when, as it was recorded. */
function endOfPause(subject: string, { after }: Pick<Change, "after">, { policies }: PolicySet): Html | "" {
  if (typeof after !== "object" || after === null || !("untilMs" in after)) return "";
  const timezone = policies.find(({ name }) => subject === `policy ${name}`)?.timezone ?? "UTC";
  const { untilMs } = after;
  return html`<span class="under">${typeof untilMs === "number" ? html`until ${fullTime(untilMs, timezone)}` : "until it is resumed"}</span>`;
}

function subjectOf(subject: string, atMs: number, { policies }: PolicySet): Html | string {
  const id = /^task (.+)$/.exec(subject)?.[1];
  const words = subjectWords(subject, atMs, policies);
  return id === undefined ? words : html`<a href="${taskPath(id)}">${words}</a>`;
}
