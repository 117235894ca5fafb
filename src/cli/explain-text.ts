// The story of a slot as people read it. Pure; called by explain.ts.
import { formatDuration } from "../core/duration.ts";
import { showUntil } from "./pause.ts";
import { showSubject } from "./pause-subject.ts";
import type { SlotStory, TaskStory } from "./slot-story.ts";
import { showInstant } from "./table.ts";

const tasksShownMax = 50;
const coversShownMax = 5;

/** A story in lines; local times in this zone. */
export function storyText(story: SlotStory, timezone: string): string {
  const both = (instant: string | null) => (instant === null ? "none" : showBoth(Date.parse(instant), timezone));
  const lines: string[] = [];
  if (!story.isSlot) lines.push(`${story.policy} has no slot at ${story.asked}`);
  for (const reason of story.reasons) lines.push(`  ${reason}`);
  if (!story.isSlot) lines.push(`  slot before: ${both(story.previous)}`, `  slot after: ${both(story.next)}`, "");
  lines.push(`${story.policy}, slot ${both(story.slot)}`, `  ${story.verdict}`);
  if (story.covers.length > 0) lines.push(`  stands for ${story.covers.length} older: ${someOf(story.covers)}`);
  for (const task of story.tasks.slice(0, tasksShownMax)) lines.push(...taskLines(task));
  if (story.tasks.length > tasksShownMax)
    lines.push(`  and ${story.tasks.length - tasksShownMax} more; --json has all`);
  if (story.held !== null) lines.push(`  held back now: ${story.held}`);
  for (const pause of story.pauses)
    lines.push(`  paused now: ${showSubject(pause)} ${showUntil(pause)}: ${pause.note} (${pause.actor})`);
  if (story.isSlot) lines.push(`  next slot: ${both(story.next)}`);
  return lines.join("\n");
}

function taskLines(task: TaskStory): string[] {
  const dueMs = Date.parse(task.due);
  const steps = (["queued", "sent", "answered", "finished"] as const).flatMap((step) => {
    const instant = task[step];
    return instant === null ? [] : [`${step} ${sinceDue(Date.parse(instant) - dueMs)}`];
  });
  const lines = [`  task ${task.taskId}`, `    due ${showInstant(dueMs)}${steps.map((step) => `, ${step}`).join("")}`];
  // Its first word is the kind of loss, for machines.
  if (task.lost !== null) lines.push(`    no good answer to its start: ${task.lost.replace(/^[a-z]+: /, "")}`);
  if (task.outcome !== null) {
    const { status, evidence, reason, detail, confidence, sends = 1 } = task.outcome;
    const known = [reason, `evidence ${evidence}`];
    if (confidence !== undefined) known.push(`confidence ${confidence}`);
    if (sends > 1) known.push(`${sends} requests`);
    lines.push(`    ${status} (${known.join(", ")}): ${detail}`);
  } else {
    const queue = task.queue === null ? "not in the queue" : `${task.queue} in the queue`;
    lines.push(`    no outcome yet: ${queue}, start ${task.journal === "none" ? "not begun" : task.journal}`);
  }
  if (task.waitsFor !== null) lines.push(`    waits for ${task.waitsFor}, which holds sync job ${task.target}`);
  return lines;
}

function sinceDue(laterMs: number): string {
  return laterMs < 0 ? `${formatDuration(-laterMs)} before` : `+${formatDuration(laterMs)}`;
}

function showBoth(instantMs: number, timezone: string): string {
  const utc = showInstant(instantMs);
  return timezone === "UTC" ? utc : `${utc} (${showInstant(instantMs, timezone)})`;
}

function someOf(instants: readonly string[]): string {
  const shown = instants.slice(-coversShownMax).map((instant) => showInstant(Date.parse(instant)));
  return instants.length > coversShownMax ? `…, ${shown.join(", ")} (--json has all)` : shown.join(", ");
}
