// One policy: how it is, its last slots, its next ones, its settings.
import { html } from "hono/html";
import { describeExpectation } from "../../config/policy-set.ts";
import { formatDuration } from "../../core/duration.ts";
import type { Change } from "../../model/change.ts";
import { describePolicy, sinceOf } from "../../queries/attention.ts";
import type { ComingSlot } from "../../queries/coming-slots.ts";
import type { HandRun } from "../../queries/hand-runs.ts";
import type { PolicyDay } from "../../queries/policy-days.ts";
import { needsPerson, type PolicyLine } from "../../queries/policy-lines.ts";
import type { EndedSlot } from "../../queries/slot-strips.ts";
import { handRunTable } from "./hand-runs.ts";
import { type Html, mark } from "./marks.ts";
import {
  actionText,
  actLink,
  fullTime,
  nothing,
  pauseLink,
  policyLink,
  policyPath,
  scheduleText,
  slotPath,
  table,
  tookText,
  when,
} from "./parts.ts";
import { countsOf, legend, linkedStrip } from "./pictures.ts";
import { daysSection, slotTable } from "./slots.ts";

/** How many slots the page shows, back and ahead, and how many runs by hand. */
export const policySlots = { past: 60, coming: 20, byHand: 5 } as const;

/** What the page is made of. */
export interface PolicyView {
  readonly line: PolicyLine;
  readonly slots: readonly EndedSlot[];
  readonly coming: readonly ComingSlot[];
  readonly days: readonly PolicyDay[];
  /** The newest; the page of its own has more. */
  readonly byHand: readonly HandRun[];
  /** What was changed by hand about it, newest first. */
  readonly changes: readonly Change[];
  /** The policies that run after it. */
  readonly followers: readonly string[];
  readonly nowMs: number;
}

const followersMax = 20;

/** Shows a policy. `mayOperate`: the asker may change something. */
export function policyPage(
  { line, slots, coming, days, byHand, changes, followers, nowMs }: PolicyView,
  mayOperate: boolean,
): Html {
  const { policy, health, worst, pauses } = line;
  const sinceMs = sinceOf(line);
  const since = sinceMs === undefined ? "" : html` <span class="quiet">since ${when(sinceMs, nowMs)}</span>`;
  const paused = pauses.map(
    ({ actor, note, sinceMs: fromMs, untilMs, cause }) =>
      html`<p class="notice">${mark(cause === undefined ? "paused" : "quarantined")} by ${actor} since ${when(fromMs, nowMs)}, ${untilMs === null ? "until it is resumed" : html`until ${fullTime(untilMs, policy.closed.timezone)}`}: ${note}</p>`,
  );
  return html`<p class="crumbs"><a href="/policies">Policies</a></p>
<h1>${policy.name}</h1>
<p class="state">${mark(health)} ${describePolicy(line, nowMs)}${since}</p>
${paused}
${mayOperate ? acts(line) : ""}
<section aria-labelledby="slots"><h2 id="slots">Last slots</h2>
${linkedStrip(slots, ({ slotMs }) => slotPath(policy.name, slotMs))}
<p class="quiet">${countsOf(slots)}</p>
${legend()}
${slotTable(line, slots, { changes, nowMs })}</section>
${daysSection(policy.name, days)}
<div class="columns">
<section aria-labelledby="coming"><h2 id="coming">Next slots</h2>${comingTable(line, coming, nowMs)}</section>
<section aria-labelledby="settings"><h2 id="settings">Settings in force</h2>${settings(line, followers)}</section>
</div>
${byHand.length === 0 ? "" : html`<section aria-labelledby="by-hand"><h2 id="by-hand">By hand</h2>${handRunTable(byHand, nowMs)}<p><a href="${policyPath(policy.name)}/by-hand">All runs by hand</a></p></section>`}
${worst === undefined ? "" : targetFacts(line, nowMs)}`;
}

function acts({ policy: { name }, health, pauses, acknowledged }: PolicyLine): Html {
  const known =
    acknowledged === undefined
      ? actLink("acknowledge", name, "Acknowledge…")
      : actLink("unacknowledge", name, "Take back the acknowledgement…");
  return html`<p class="acts">${actLink("run", name, "Run now…")}${pauseLink({ scope: "policy", name }, pauses)}${needsPerson[health] ? known : ""}</p>`;
}

function comingTable({ policy, pauses }: PolicyLine, coming: readonly ComingSlot[], nowMs: number): Html {
  if (coming.length === 0)
    return html`<p class="none">${policy.after === undefined ? "None: it runs by hand only." : "None is ahead."}</p>`;
  const rows = coming.map(({ slotMs, closed, dst }) => [
    fullTime(slotMs, policy.closed.timezone),
    when(slotMs, nowMs),
    closed !== undefined
      ? mark("skipped", closed)
      : pauses.some(({ untilMs }) => untilMs === null || slotMs < untilMs)
        ? mark("paused", "pause: will be skipped")
        : (dst ?? ""),
  ]);
  return table("Next slots", [{ label: "due", isWide: true }, { label: "when" }, { label: "note" }], rows);
}

function settings({ policy, usualMs }: PolicyLine, followers: readonly string[]): Html {
  const { action, closed, follow, where, labels = {}, after } = policy;
  const facts: [string, Html | string][] = [
    ["does", actionText(policy)],
    [
      "service",
      policy.repository === undefined ? policy.service : `${policy.service}, repository ${policy.repository}`,
    ],
    ["due", after === undefined ? scheduleText(policy) : html`after ${policyLink(after.policy)}`],
    ...(followers.length === 0
      ? []
      : [
          [
            "then",
            html`${followers.slice(0, followersMax).map((one) => html`${policyLink(one)} `)}${followers.length > followersMax ? `and ${followers.length - followersMax} more` : ""}`,
          ] as [string, Html],
        ]),
    ["zone", closed.timezone],
    ["catch-up", `${policy.catchUp}, within ${formatDuration(policy.catchUpWindowMs)}`],
    ["overlap", policy.overlap],
    [
      "followed",
      action.kind === "run" ? `until ${follow.until}, at most ${formatDuration(follow.deadlineMs)}` : "until answered",
    ],
    ["usually takes", usualMs === undefined ? nothing : tookText(usualMs)],
    ["stands in", html`<code>${where.file}:${where.line}</code>`],
  ];
  if (policy.owner !== undefined) facts.push(["owner", html`${policy.owner}`]);
  if (policy.expect !== undefined) facts.push(["must end well", describeExpectation(policy.expect)]);
  if (policy.needs !== undefined)
    facts.push(["needs", html`${policyLink(policy.needs.policy)} within ${formatDuration(policy.needs.withinMs)}`]);
  const named = Object.entries(labels).map(([name, value]) => html`<span class="label">${name}=${value}</span> `);
  if (named.length > 0) facts.push(["labels", html`${named}`]);
  return html`<dl class="facts">${facts.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** Which sync job, list or object speaks for the policy, and since when. */
function targetFacts({ policy, worst }: PolicyLine, nowMs: number): Html {
  if (worst === undefined) return html``;
  const { target, last, inARow, lastGoodMs, lastBadMs } = worst;
  const rows = [
    [
      mark(last.status),
      target,
      `${last.reason}, evidence ${last.evidence}${last.confidence === undefined ? "" : `, ${last.confidence}`}`,
      `${inARow}`,
      when(lastGoodMs, nowMs),
      when(lastBadMs, nowMs),
    ],
  ];
  const columns = [
    { label: "ended last" },
    { label: policy.action.kind === "poll" ? "list" : "sync job" },
    { label: "why", isWide: true as const },
    { label: "in a row", isNumber: true as const },
    { label: "last good" },
    { label: "last bad" },
  ];
  return html`<section aria-labelledby="speaks"><h2 id="speaks">What speaks for it</h2>${table("The target that speaks for this policy", columns, rows)}</section>`;
}
