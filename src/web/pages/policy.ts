// One policy: how it is, its last slots, its next ones, its settings.
import { html } from "hono/html";
import { describeExpectation } from "../../config/policy-set.ts";
import { formatDuration } from "../../core/duration.ts";
import type { Change } from "../../model/change.ts";
import { describePolicy, nextStepOf, sinceOf } from "../../queries/attention.ts";
import type { ComingSlot } from "../../queries/coming-slots.ts";
import { healsByItself } from "../../queries/outages.ts";
import { needsPerson, type PolicyLine } from "../../queries/policy-lines.ts";
import type { HandRun } from "../../queries/records.ts";
import type { EndedSlot, PolicyDay } from "../../queries/slot-strips.ts";
import { handRunTable } from "./hand-runs.ts";
import { besideMark, type Html, mark } from "./marks.ts";
import {
  actionText,
  actLink,
  care,
  evidenceText,
  factList,
  fullTime,
  nothing,
  pauseLink,
  pauseMark,
  policyLink,
  policyPath,
  runPath,
  scheduleText,
  section,
  slotPath,
  table,
  tookText,
  untilWords,
  when,
  withCode,
} from "./parts.ts";
import { countsOf, legend, linkedStrip } from "./pictures.ts";
import { daysSection, slotTable } from "./slots.ts";

/** How many slots the page shows, back and ahead, and how many runs by hand. */
export const policySlots = { past: 60, coming: 20, byHand: 5 } as const;

/** What the page is made of. */
export interface PolicyView {
  readonly line: PolicyLine;
  readonly slots: readonly EndedSlot[];
  /** Fewer slots are shown than fit: each has many tasks. */
  readonly isCut: boolean;
  readonly coming: readonly ComingSlot[];
  readonly days: readonly PolicyDay[];
  /** The newest; the page of its own has more. */
  readonly byHand: readonly HandRun[];
  /** What was changed by hand about it, newest first. */
  readonly changes: readonly Change[];
  /** The policies that run after it. */
  readonly followers: readonly string[];
  /** Whether its service shows which sync jobs are active. */
  readonly showsActive: boolean;
  readonly nowMs: number;
}

const followersMax = 20;
/** Next slots that stand open; the others are a click away. */
const comingOpen = 10;

/** Shows a policy. `mayOperate`: the caller may change something. */
export function policyPage(
  { line, slots, isCut, coming, days, byHand, changes, followers, showsActive, nowMs }: PolicyView,
  mayOperate: boolean,
): Html {
  const { policy, health, worst, pauses } = line;
  const sinceMs = sinceOf(line);
  const since = sinceMs === undefined ? "" : html` <span class="quiet">since ${when(sinceMs, nowMs)}</span>`;
  const paused = pauses.map(
    (pause) =>
      html`<p class="notice">${pauseMark(pause)} by ${pause.actor} since ${when(pause.sinceMs, nowMs)}, ${untilWords(pause, policy.timezone)}: ${pause.note}</p>`,
  );
  const words = besideMark(health, describePolicy(line, nowMs));
  const state = worst === undefined ? words : html`<a href="${runPath(policy.name, worst.last)}">${words}</a>`;
  const all = html`<p><a href="${policyPath(policy.name)}/by-hand">All runs by hand</a></p>`;
  return html`<p class="crumbs"><a href="/policies">Policies</a></p>
<h1>${policy.name}</h1>
${pauses.length > 0 && !needsPerson[health] ? "" : html`<p class="state">${mark(health)} ${state}${since}</p>`}
${paused}
<div id="care">${careOf(line)}</div>
${worst === undefined ? "" : lastFacts(worst, nowMs)}
${mayOperate ? acts(line) : ""}
${section(
  "slots",
  "Last slots",
  html`${linkedStrip(slots, ({ slotMs }) => slotPath(policy.name, slotMs))}
<p class="quiet">${countsOf(slots)}${isCut ? html`; only the newest ${slots.length} slots, as each has many tasks: <a href="/api/v1/policies/${policy.name}/slots">the API</a> has the others` : ""}</p>
${legend()}
${slotTable(line, slots, { changes, nowMs })}`,
)}
${daysSection(policy.name, days)}
<div class="columns">
${section("coming", "Next slots", nextSlots(line, coming, nowMs))}
${section("settings", "Settings in force", settings(line, followers, showsActive))}
</div>
${byHand.length === 0 ? "" : section("by-hand", "By hand", html`${handRunTable(byHand, nowMs)}${all}`)}`;
}

/** Of a trouble what to do and whom to ask, else only the owner. Its place stays for the morph. */
function careOf(line: PolicyLine): Html | "" {
  const { policy, health, waitingMs } = line;
  if (needsPerson[health] || waitingMs !== undefined)
    return html`<p>${withCode(nextStepOf(line))}</p><p class="facts">${care({ about: "policy", touches: [line], state: line.health, heals: healsByItself(line) })}</p>`;
  return policy.owner === undefined ? "" : html`<p class="quiet">owner: ${policy.owner}</p>`;
}

/** When the sync job, list or object that speaks for the policy ended, and how sure that is. */
function lastFacts({ last, lastSuccessMs, lastBadMs }: NonNullable<PolicyLine["worst"]>, nowMs: number): Html {
  const bad = lastBadMs === undefined ? "" : html` <span>last bad ${when(lastBadMs, nowMs)}</span>`;
  return html`<p class="quiet facts"><span>last ${last.status} ${when(last.finishedMs, nowMs)}${evidenceText(last)}</span> <span>last good ${when(lastSuccessMs, nowMs)}</span>${bad}</p>`;
}

function acts({ policy: { name }, health, pauses, acknowledged }: PolicyLine): Html {
  const known =
    acknowledged === undefined
      ? actLink("acknowledge", name, "Acknowledge…")
      : actLink("unacknowledge", name, "Take back the acknowledgement…");
  return html`<p class="acts">${actLink("run", name, "Run now…")}${pauseLink({ scope: "policy", name }, pauses)}${needsPerson[health] ? known : ""}</p>`;
}

function nextSlots({ policy, pauses }: PolicyLine, coming: readonly ComingSlot[], nowMs: number): Html {
  const rows = coming.map(({ slotMs, closed, dst }) => [
    fullTime(slotMs, policy.timezone),
    when(slotMs, nowMs),
    closed !== undefined
      ? mark("skipped", closed)
      : pauses.some(({ untilMs }) => untilMs === null || slotMs < untilMs)
        ? mark("paused", "pause: will be skipped")
        : (dst ?? ""),
  ]);
  const columns = [["due", "wide"], "when", "note"] as const;
  const isByHand = policy.after === undefined && policy.schedule === undefined;
  const none = isByHand ? "None: it runs by hand only." : "None is ahead.";
  const first = table("Next slots", columns, rows.slice(0, comingOpen), { none, isBrief: true });
  if (rows.length <= comingOpen) return first;
  const later = table("Slots after those", columns, rows.slice(comingOpen), { isBrief: true });
  return html`${first}<details><summary>${rows.length - comingOpen} more</summary>${later}</details>`;
}

function settings({ policy, usualMs }: PolicyLine, followers: readonly string[], showsActive: boolean): Html {
  const { action, timezone, follow, where, labels = {}, after } = policy;
  const place = policy.repository === undefined ? policy.service : `${policy.service}, repository ${policy.repository}`;
  const facts: [string, Html | string][] = [
    ["does", actionText(policy)],
    ["service", place],
    ["due", after === undefined ? scheduleText(policy) : html`after ${policyLink(after.policy)}`],
    ["zone", timezone],
    ["catch-up", `${policy.catchUp}, within ${formatDuration(policy.catchUpWindowMs)}`],
    ["overlap", policy.overlap],
    [
      "followed",
      action.kind === "run"
        ? `until ${follow.until}, at most ${formatDuration(follow.deadlineMs)}`
        : `until the service answers${action.kind === "activate" && showsActive ? ", and shows the sync job as active" : ""}`,
    ],
    ["usually takes", usualMs === undefined ? nothing : tookText(usualMs)],
    ["stands in", html`<code>${where.file}:${where.line}</code>`],
  ];
  const more = followers.length - followersMax;
  const then = followers.slice(0, followersMax).map((one) => html`${policyLink(one)} `);
  if (followers.length > 0) facts.push(["then", html`${then}${more > 0 ? `and ${more} more` : ""}`]);
  if (policy.owner !== undefined) facts.push(["owner", policy.owner]);
  if (policy.expect !== undefined) facts.push(["must end well", describeExpectation(policy.expect)]);
  if (policy.needs !== undefined)
    facts.push(["needs", html`${policyLink(policy.needs.policy)} within ${formatDuration(policy.needs.withinMs)}`]);
  const named = Object.entries(labels).map(([name, value]) => html`<span class="label">${name}=${value}</span> `);
  if (named.length > 0) facts.push(["labels", html`${named}`]);
  return factList(facts);
}
