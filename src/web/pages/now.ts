// The first page: what needs a person now, what ended just before, and what comes next.
import { html } from "hono/html";
import { counted } from "../../core/plain-text.ts";
import type { Outcome } from "../../model/outcome.ts";
import type { Attention, AttentionItem } from "../../queries/attention.ts";
import { needsPerson, type PolicyLine, policyHealths } from "../../queries/policy-lines.ts";
import { taskWords } from "../../queries/task-words.ts";
import { type Html, type Marked, mark, tag, toneOf, wordOf } from "./marks.ts";
import { actionText, policyLink, policyPath, slotPath, table, taskPath, tookText, when } from "./parts.ts";

const itemsMax = 100;
const nextMax = 8;

/** Shows the state of everything. `newest`: outcomes, newest first. */
export function nowPage(attention: Attention, newest: readonly Outcome[]): Html {
  const { items, lines, nowMs } = attention;
  const shown = items.slice(0, itemsMax);
  const more = items.length - shown.length;
  return html`<h1>${headline(attention)}</h1>
${healthCounts(attention)}
${items.length === 0 ? "" : html`<section aria-labelledby="attention"><h2 id="attention">Needs a person</h2><ul class="attention">${shown.map((item) => attentionItem(item, nowMs))}</ul>${more > 0 ? html`<p class="quiet">and ${more} more: <a href="/policies">all policies, worst first</a></p>` : ""}</section>`}
<div class="columns">
<section aria-labelledby="next"><h2 id="next">Next</h2>${nextSlots(lines, nowMs)}</section>
<section aria-labelledby="ended"><h2 id="ended">Just ended</h2>${justEnded(newest, attention)}</section>
</div>`;
}

function headline({ items, lines }: Attention): string {
  if (items.length > 0) return `${counted(items.length, "thing needs", "things need")} a person`;
  if (lines.length === 0) return "No policies yet";
  return lines.length === 1 ? "The one policy is well" : `All ${lines.length} policies are well`;
}

function healthCounts({ counts }: Attention): Html {
  const chips = policyHealths.flatMap((health) => {
    const count = counts.get(health);
    return count === undefined
      ? []
      : [html`<li><a class="chip" href="/policies?health=${health}"><b>${count}</b> ${mark(health)}</a></li>`];
  });
  return html`<ul class="chips" aria-label="Policies by health">${chips}</ul>`;
}

const aboutWord = { installation: "installation", service: "service", sink: "sink", list: "list", policy: "" };

function attentionItem(item: AttentionItem, nowMs: number): Html {
  const { about, name, what, sinceMs, lastGoodMs, slotMs, nextStep } = item;
  const title = about === "policy" ? policyLink(name) : html`<span class="name">${aboutWord[about]} ${name}</span>`;
  const run =
    about === "policy" && slotMs !== undefined
      ? html` <a class="go" href="${slotPath(name, slotMs)}">Open the run</a>`
      : "";
  const since = sinceMs === undefined ? "" : html`<span>since ${when(sinceMs, nowMs)}</span>`;
  const good =
    about !== "policy"
      ? ""
      : html`<span>last good ${lastGoodMs === undefined ? "never" : when(lastGoodMs, nowMs)}</span>`;
  return html`<li class="${toneOfItem(item)}"><div class="what"><span>${markOfItem(item)}</span> ${title}<span class="facts">${since}${good}</span></div><p>${what}</p><p class="step">${withCode(nextStep)}${run}</p></li>`;
}

/** Words between backquotes are commands. */
function withCode(text: string): Html[] {
  return text.split("`").map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : html`${part}`));
}

function isHealth(state: string): state is Marked {
  return policyHealths.some((health) => health === state);
}

function markOfItem({ state }: Pick<AttentionItem, "state">): Html {
  return isHealth(state) ? mark(state) : tag(toneOfItem({ state }), "triangle", state);
}

function toneOfItem({ state }: Pick<AttentionItem, "state">): ReturnType<typeof toneOf> {
  return isHealth(state) ? toneOf(state) : state === "unusual" ? "warn" : "bad";
}

function nextSlots(lines: readonly PolicyLine[], nowMs: number): Html {
  const coming = lines
    .flatMap(({ policy, nextMs, pauses }) => (nextMs === undefined ? [] : [{ policy, nextMs, pauses }]))
    .toSorted((a, b) => a.nextMs - b.nextMs)
    .slice(0, nextMax);
  if (coming.length === 0) return html`<p class="none">No policy has a slot ahead.</p>`;
  const rows = coming.map(({ policy, nextMs, pauses }) => [
    when(nextMs, nowMs),
    policyLink(policy.name),
    pauses.length === 0 ? actionText(policy) : mark("paused", "paused: will be skipped"),
  ]);
  return table(
    "The next slots of all policies",
    [{ label: "due" }, { label: "policy" }, { label: "does", isWide: true }],
    rows,
    "brief",
  );
}

function justEnded(newest: readonly Outcome[], { nowMs, lines }: Attention): Html {
  if (newest.length === 0) return html`<p class="none">Nothing has ended yet.</p>`;
  const zones = new Map(lines.map(({ policy }) => [policy.name, policy.closed.timezone]));
  const rows = newest.map((outcome) => {
    const slotMs = Date.parse(outcome.slot);
    const words = taskWords({ ...outcome, slotMs }, zones.get(outcome.policy), nowMs);
    const known = zones.has(outcome.policy);
    const story =
      outcome.origin === "manual"
        ? html`<a href="${taskPath(outcome.taskId)}">${words}</a>`
        : known
          ? html`<a href="${slotPath(outcome.policy, slotMs)}">${words}</a>`
          : words;
    return [
      mark(outcome.status),
      known ? html`<a class="name" href="${policyPath(outcome.policy)}">${outcome.policy}</a>` : outcome.policy,
      story,
      tookText(outcome.durationMs ?? undefined),
      when(Date.parse(outcome.finishedAt), nowMs),
    ];
  });
  const columns = [
    { label: "ended" },
    { label: "policy" },
    { label: "task", isWide: true as const },
    { label: "took", isNumber: true as const },
    { label: "when" },
  ];
  return table("The newest outcomes", columns, rows, "brief");
}

/** The title for the browser's tab: how many things need a person. */
export function nowTitle({ items, lines }: Attention): string {
  const failing = lines.filter(({ health }) => needsPerson[health]).length;
  if (items.length === 0) return wordOf("ok");
  return failing === items.length ? `${failing} need a person` : `${items.length} need a person`;
}
