// The story of one slot or task: what became of it, and of each of its tasks step by step, with
// evidence.
import { html } from "hono/html";
import type { Policy } from "../../config/policy-set.ts";
import { showInstant } from "../../core/instant.ts";
import { isGood, replayable } from "../../model/outcome.ts";
import type { UsualRun } from "../../queries/records.ts";
import { describeMissingRoles } from "../../queries/service-words.ts";
import type { SlotStory } from "../../queries/slot-story.ts";
import { isOnlyPermitted, storyTasksMax, type TaskStory, whyLost } from "../../queries/task-story.ts";
import { type Html, mark, tag, toneOf } from "./marks.ts";
import {
  actLink,
  factList,
  fullTime,
  pauseMark,
  policyLink,
  policyPath,
  slotPath,
  taskPath,
  tookText,
} from "./parts.ts";
import { timeLine } from "./pictures.ts";

const tasksMax = 100;

/** What the page is made of. */
export interface RunView {
  /** Undefined: a task without one, or of one that is gone. */
  readonly policy: Policy | undefined;
  readonly story: SlotStory;
  /** By sync job. */
  readonly usual: ReadonlyMap<string, UsualRun>;
  readonly nowMs: number;
  /** Its tasks on the failed list. */
  readonly failed: ReadonlySet<string>;
  /** Those that were replayed, with the task that did. */
  readonly replays: ReadonlyMap<string, string>;
  /** Whether the caller may see the changes. */
  readonly seesChanges: boolean;
}

/** Shows the story. `mayOperate`: the caller may change something. */
export function runPage({ policy, story, ...view }: RunView, mayOperate: boolean): Html {
  const { slot, verdict, deadline, covers, tasks, held, pauses, previous, next, isSlot, reasons } = story;
  const zone = policy?.timezone ?? "UTC";
  const slotMs = slot === null ? undefined : Date.parse(slot);
  const notASlot = isSlot
    ? ""
    : html`<p class="notice">${tag("warn", "triangle", "no slot then")} There is no slot at ${story.asked ?? "that time"}; the nearest is shown. ${reasons.join("; ")}</p>`;
  const missing = tasks.some(({ isInFlight }) => isInFlight) ? describeMissingRoles(story.processes) : [];
  const more =
    tasks.length > tasksMax
      ? html`<p class="quiet">and ${tasks.length - tasksMax} more tasks; the API has up to ${storyTasksMax.toLocaleString("en")}</p>`
      : "";
  return html`<p class="crumbs">${crumbs(policy, story)}</p>
<h1>${titleOf(story)} ${slotMs === undefined ? "" : showInstant(slotMs, zone)}</h1>
${notASlot}
${verdict === "started" && tasks.length > 0 ? "" : html`<p class="state">${stateOf(story)} ${verdict}</p>`}
${deadline === null ? "" : html`<p>${deadline}</p>`}
${held === null ? "" : html`<p class="notice">${tag("warn", "bar", "held back now")} ${held}</p>`}
${missing.map((words) => html`<p class="notice">${tag("bad", "cross", "role missing")} ${words}</p>`)}
${pauses.map((pause) => html`<p class="notice">${pauseMark(pause, " now")} by ${pause.actor}: ${pause.note}</p>`)}
${covers.length === 0 ? "" : html`<p>It stands for ${covers.length} older: ${covers.slice(-5).map((one) => html`${fullTime(Date.parse(one), zone)} `)}${covers.length > 5 ? "and more" : ""}</p>`}
${worstFirst(tasks).map((task) => taskSection(task, { ...view, zone, mayOperate }))}
${more}
${policy === undefined ? "" : html`<nav class="pages" aria-label="Slots around">${slotLink(policy, previous, "Slot before")} ${slotLink(policy, next, "Slot after")}</nav>`}`;
}

/** What needs a look stands first. */
function worstFirst(tasks: readonly TaskStory[]): readonly TaskStory[] {
  const isBad = ({ outcome }: TaskStory) => outcome !== null && ["bad", "warn"].includes(toneOf(outcome.status));
  return [...tasks.filter(isBad), ...tasks.filter((task) => !isBad(task))].slice(0, tasksMax);
}

function crumbs(policy: Policy | undefined, { origin }: SlotStory): Html {
  const policies = html`<a href="/policies">Policies</a>`;
  if (policy === undefined) return html`${policies} / <a href="/by-hand">Without a policy</a>`;
  const byHand = html` / <a href="${policyPath(policy.name)}/by-hand">By hand</a>`;
  return html`${policies} / ${policyLink(policy.name)}${origin === "manual" ? byHand : ""}`;
}

/** `Slot`, or what a run by hand does. */
function titleOf({ origin, tasks }: SlotStory): string {
  const [first] = tasks;
  return origin === "schedule"
    ? "Slot"
    : `By hand: ${tasks.length === 1 && first !== undefined ? first.name : `${tasks.length} tasks`},`;
}

function slotLink({ name }: Policy, slot: string | null, words: string): Html {
  return slot === null
    ? html`<span class="quiet">${words}: none</span>`
    : html`<a href="${slotPath(name, Date.parse(slot))}">${words}</a>`;
}

function stateOf({ record, tasks, origin }: SlotStory): Html {
  const [only] = tasks;
  if (origin === "schedule" && record === null && tasks.every(({ outcome }) => outcome === null))
    return mark("new", "no record");
  if (record !== null && record.state !== "started") return mark(record.state);
  return tasks.length === 1 && only?.outcome != null ? mark(only.outcome.status) : mark("started", "started");
}

interface TaskView extends Omit<RunView, "policy" | "story"> {
  readonly zone: string;
  readonly mayOperate: boolean;
}

function taskSection(task: TaskStory, view: TaskView): Html {
  const { zone, nowMs, usual, mayOperate } = view;
  const { usualMs } = usual.get(task.target) ?? {};
  const dueMs = Date.parse(task.due);
  const sentMs = task.sent === null ? undefined : Date.parse(task.sent);
  const endMs = task.finished === null ? nowMs : Date.parse(task.finished);
  const tone = task.outcome === null ? "calm" : toneOf(task.outcome.status);
  const ended =
    task.outcome === null ? mark("started", task.isInFlight ? "under way" : "no outcome") : mark(task.outcome.status);
  return html`<section class="task"><h2>${task.name} ${ended}</h2>
${timeLine({ dueMs, sentMs, endMs, usualMs, tone })}
${compare(task, view)}
<ol class="steps">${steps(task, zone)}</ol>
${outcomeFacts(task)}
${mayOperate ? acts(task, view) : ""}
<p class="quiet"><a href="${taskPath(task.taskId)}"><code>${task.taskId}</code></a></p></section>`;
}

function acts({ taskId, outcome, isInFlight }: TaskStory, { failed, replays, seesChanges }: TaskView): Html | "" {
  if (isInFlight) return html`<p class="acts">${actLink("cancel", taskId, "Cancel…")}</p>`;
  if (outcome === null || replayable[outcome.status] === undefined) return "";
  const into = replays.get(taskId);
  if (into !== undefined)
    return html`<p class="quiet">It was replayed: <a href="${taskPath(into)}">see how that went</a>.</p>`;
  if (!failed.has(taskId)) {
    const who = seesChanges ? html`: <a href="/changes">Changes</a> says who dealt with it` : "";
    return html`<p class="quiet">It is not on the failed list${who}.</p>`;
  }
  return html`<p class="acts">${actLink("replay", taskId, "Replay…")}${actLink("discard", taskId, "Discard…")}</p>`;
}

/** Endings of a run: after others what passed is the wait for an end. */
const ranStatuses: ReadonlySet<string> = new Set(["succeeded", "conflicts", "accepted", "failed", "timed-out"]);

/** This run beside the usual one. */
function compare({ sent, finished, outcome, target }: TaskStory, { usual }: TaskView): Html | "" {
  const { usualMs, of } = usual.get(target) ?? {};
  if (sent === null || finished === null || outcome === null || usualMs === undefined || usualMs === 0) return "";
  if (!ranStatuses.has(outcome.status)) return "";
  const ranMs = Date.parse(finished) - Date.parse(sent);
  if (of === 1 && isGood[outcome.status])
    return html`<p class="quiet">It took ${tookText(ranMs)}. It is the only good run so far: there is nothing to compare it with yet.</p>`;
  const ratio = ranMs / usualMs;
  const often =
    ratio >= 1.5 ? `${ratio.toFixed(1)} times as long as usual` : ratio <= 0.5 ? "much shorter than usual" : "as usual";
  return html`<p class="quiet">It took ${tookText(ranMs)}: ${often} (median of the last good runs: ${tookText(usualMs)}, the tick in the picture).</p>`;
}

const stepWords = {
  due: "came due",
  queued: "was queued",
  sent: "the start was sent",
  sentAgain: "the start was sent again",
  answered: "the service answered",
  confirmed: "an activity showed that it had started",
  finished: "ended",
} as const;

function steps(task: TaskStory, timezone: string): Html[] {
  const isShown = task.answered !== null || task.confirmed !== null;
  const wordsOf = {
    ...stepWords,
    sent: isOnlyPermitted(task) ? "the start was permitted" : stepWords.sent,
    // Of several requests one doubt alone is noted: whether the newest left is not known.
    sentAgain: isShown ? stepWords.sentAgain : "the start was permitted again",
  };
  const dueMs = Date.parse(task.due);
  const names = ["due", "queued", "sent", "sentAgain", "answered", "confirmed", "finished"] as const;
  const happened = names.flatMap((name) => {
    const at = task[name];
    return at === null ? [] : [{ name, atMs: Date.parse(at) }];
  });
  const list = happened
    .toSorted((a, b) => a.atMs - b.atMs)
    .map(
      ({ name, atMs }) =>
        html`<li><span class="offset">${atMs === dueMs ? "" : `${atMs < dueMs ? "−" : "+"}${tookText(Math.abs(atMs - dueMs))}`}</span> <span>${wordsOf[name]} <span class="quiet">${fullTime(atMs, timezone)}</span></span></li>`,
    );
  const open = openSteps(task).map(
    (words) => html`<li class="open"><span class="offset">now</span> <span>${words}</span></li>`,
  );
  return [...list, ...open];
}

/** Why it has not ended. */
function openSteps({ outcome, isInFlight, waitsFor, lost, now, droppedUpTo, cancelled }: TaskStory): string[] {
  if (outcome !== null) return [];
  const doubt = whyLost(lost);
  const words = doubt === undefined ? [] : [`no good answer to its start: ${doubt}`];
  if (cancelled !== null) words.push(cancelled);
  if (waitsFor !== null) words.push(`waits for ${waitsFor}, which holds the sync job`);
  if (isInFlight) words.push(now ?? "on its way into the queue");
  else if (droppedUpTo !== null) words.push("what became of it is no longer kept");
  else words.push("no outcome, and no worker has it: see syncline audit");
  return words;
}

const evidenceWords = {
  direct: "the service said so",
  inferred: "inferred from what was seen",
  none: "nothing proves it",
} as const;

const confidenceWords: Readonly<Record<string, string>> = {
  certain: "certain: the start was answered, and one activity began right then",
  likely: "likely: nothing speaks for another origin",
  ambiguous: "ambiguous: another start or a trigger may be behind the activities",
};

function outcomeFacts({ outcome, lost, sent }: TaskStory): Html | "" {
  if (outcome === null) return "";
  const { status, reason, detail, evidence, confidence, sends = 1 } = outcome;
  // Of what was never sent the service has said nothing.
  const isAsked = sent !== null || evidence !== "direct";
  const facts: [string, Html | string][] = [
    ["outcome", html`${mark(status)} <code>${reason}</code>`],
    ["said", detail],
  ];
  if (isAsked) facts.push(["evidence", `${evidence}: ${evidenceWords[evidence]}`]);
  const doubt = whyLost(lost) ?? "";
  if (!detail.includes(doubt)) facts.push(["no good answer", doubt]);
  if (confidence !== undefined) facts.push(["whose activities", confidenceWords[confidence] ?? confidence]);
  if (sends > 1) facts.push(["start requests", `${sends}`]);
  return factList(facts);
}
