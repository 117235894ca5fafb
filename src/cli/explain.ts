// `syncline explain POLICY [TIME]` or `explain TASK`: why it ran, did not run, or ran late.
import type { Command } from "commander";
import type { Policy, PolicySet } from "../config/policy-set.ts";
import { formatTook } from "../core/duration.ts";
import { UsageError } from "../core/errors.ts";
import { showBoth, showInstant } from "../core/instant.ts";
import { showSubject } from "../model/pause.ts";
import { isByHand, parseTaskId } from "../model/task.ts";
import { taskStores } from "../queries/audit-policy.ts";
import { describeMissingRoles } from "../queries/service-words.ts";
import { readHandStory, readSlotStory, readStoryOfTask, type SlotStory } from "../queries/slot-story.ts";
import { isOnlyPermitted, type StoryStores, type TaskStory, whyLost } from "../queries/task-story.ts";
import { type AskedTime, slotsAround, slotsUpTo } from "../schedule/explain-slot.ts";
import { redisTimeMs } from "../store/redis.ts";
import type { CommandIo } from "./command-io.ts";
import { showUntil } from "./pause.ts";
import { findPolicy, redisCommand, type SetOptions, withPolicies, withProducer } from "./shared-options.ts";
import { alarming } from "./table.ts";
import { readTime, timeForms, timezoneFor } from "./time-argument.ts";

const tasksShownMax = 50;

const coversShownMax = 5;

const help = `
Of a policy the slot at TIME is told, or without TIME its newest slot or run by hand; of a task the task alone. TIME is read in the policy's zone: ${timeForms}. Of a day, the first slot is meant.
Tells what became of it, of its tasks, and what they wait for; or why there is no slot at that time.
Exit code 1 while no process with the role scheduler, or none with the role worker, is alive.

Examples:
  $ syncline explain contracts-nightly
  $ syncline explain contracts-nightly yesterday
  $ syncline explain contracts-nightly 2027-03-28T02:30
  $ syncline explain contracts-nightly__run__42__1795228200`;

/** The command `explain`. */
export function explainCommand(io: CommandIo): Command {
  return redisCommand("explain", "set")
    .argument("<policy|task>", "the name of a policy, or the id of a task")
    .argument("[time]", "of the slot, in the policy's zone")
    .option("--json", "print JSON")
    .addHelpText("after", help)
    .action((name: string, time: string | undefined, options: SetOptions) =>
      withPolicies(options, io, async ({ set, store, target }) => {
        const question = { set, time, nowMs: await redisTimeMs(store) };
        const story = await withProducer(target, (producer) =>
          findStory(name, question, { ...taskStores({ store, producer, set }), set }),
        );
        const policies = set.policies.filter((policy) => policy.name === story.policy);
        const timezone = timezoneFor(undefined, policies);
        io.out(options.json ? JSON.stringify({ v: 1, ...story }) : storyText(story, timezone, io.colours));
        if (describeMissingRoles(story.processes).length > 0) io.exitCode = 1;
      }),
    );
}

interface Question {
  readonly set: PolicySet;
  readonly time: string | undefined;
  readonly nowMs: number;
}

/** @throws UsageError when nothing is known of it. */
async function findStory(name: string, { set, time, nowMs }: Question, places: StoryStores): Promise<SlotStory> {
  if (parseTaskId(name) !== undefined) {
    if (time !== undefined) throw new UsageError(`${name} is a task, which has its time: leave ${time} out`);
    const story = await readStoryOfTask(name, { set, nowMs }, places);
    if (story !== undefined) return story;
    throw new UsageError(`nothing is known of a task ${name}; \`syncline history --ids\` shows those that have ended`);
  }
  if (isByHand(name))
    throw new UsageError(
      `${name} is no policy: \`syncline history ${name} --ids\` shows its tasks, and explain takes their ids`,
    );
  const policy = findPolicy(set, name);
  const isScheduled = policy.schedule !== undefined || policy.after !== undefined;
  if (time !== undefined && !isScheduled)
    throw new UsageError(
      `${name} has no schedule, so no slot at any time: leave ${time} out for its newest run by hand`,
    );
  const around = time === undefined ? slotsUpTo(policy, nowMs) : slotsAround(policy, askedTime(time, policy, nowMs));
  const afterMs = around.previousMs ?? 0;
  const byHand = time === undefined ? await readHandStory(policy, { afterMs, nowMs }, places) : undefined;
  if (byHand !== undefined) return byHand;
  if (isScheduled) return readSlotStory(policy, { asked: time ?? null, around, nowMs }, places);
  throw new UsageError(`${name} has no schedule, and no run by hand is known: \`syncline run ${name}\` starts it`);
}

function askedTime(text: string, policy: Policy, nowMs: number): AskedTime {
  const timezone = policy.timezone;
  const time = readTime(text, { nowMs, timezone, side: "past" });
  if (time === undefined) throw new UsageError(`${text} is no time: write ${timeForms}, in the zone ${timezone}`);
  return { text, ...time };
}

/** A story in lines; local times in this zone. */
export function storyText(story: SlotStory, timezone: string, colours: boolean): string {
  const both = (instant: string | null) => (instant === null ? "none" : showBoth(Date.parse(instant), timezone));
  const lines: string[] = [];
  if (!story.isSlot) lines.push(`${story.policy} has no slot at ${story.asked}`);
  for (const reason of story.reasons) lines.push(`  ${reason}`);
  if (!story.isSlot) lines.push(`  slot before: ${both(story.previous)}`, `  slot after: ${both(story.next)}`, "");
  const what = story.origin === "manual" ? "by hand" : "slot";
  lines.push(`${story.policy}, ${what} ${both(story.slot)}`, `  ${story.verdict}`);
  if (story.deadline !== null) lines.push(`  ${story.deadline}`);
  if (story.owner !== null) lines.push(`  owner: ${story.owner}`);
  if (story.covers.length > 0) lines.push(`  stands for ${story.covers.length} older: ${someOf(story.covers)}`);
  for (const task of story.tasks.slice(0, tasksShownMax)) lines.push(...taskLines(task));
  if (story.tasks.length > tasksShownMax)
    lines.push(`  and ${story.tasks.length - tasksShownMax} more; --json has all`);
  if (story.held !== null) lines.push(`  held back now: ${story.held}`);
  for (const pause of story.pauses)
    lines.push(
      `  ${pause.cause ?? "paused"} now: ${showSubject(pause)} ${showUntil(pause)}: ${pause.note} (${pause.actor})`,
    );
  for (const line of describeMissingRoles(story.processes)) lines.push(`  ${alarming(line, colours)}`);
  if (story.isSlot && (story.origin === "schedule" || story.next !== null))
    lines.push(`  next slot: ${both(story.next)}`);
  return lines.join("\n");
}

const steps = ["queued", "sent", "sentAgain", "answered", "confirmed", "finished"] as const;

/** Of several requests one doubt alone is noted: an answer or an activity is a sign of all. */
function wordsOf(task: TaskStory): Readonly<Record<(typeof steps)[number], string>> {
  const isShown = task.answered !== null || task.confirmed !== null;
  return {
    queued: "queued",
    sent: isOnlyPermitted(task) ? "start permitted" : "sent",
    sentAgain: isShown ? "sent again" : "permitted again",
    answered: "answered",
    confirmed: "confirmed",
    finished: "finished",
  };
}

function taskLines(task: TaskStory): string[] {
  const dueMs = Date.parse(task.due);
  const words = wordsOf(task);
  const told = steps.flatMap((step) => {
    const instant = task[step];
    return instant === null ? [] : [`${words[step]} ${sinceDue(Date.parse(instant) - dueMs)}`];
  });
  const lines = [
    `  ${task.name}, task ${task.taskId}`,
    `    due ${showInstant(dueMs)}${told.map((step) => `, ${step}`).join("")}`,
  ];
  const doubt = whyLost(task.lost);
  if (doubt !== undefined && task.outcome?.detail.includes(doubt) !== true)
    lines.push(`    no good answer to its start: ${doubt}`);
  if (task.outcome !== null) {
    const { status, evidence, reason, detail, confidence, sends = 1 } = task.outcome;
    const known = [reason, `evidence ${evidence}`];
    if (confidence !== undefined) known.push(`confidence ${confidence}`);
    if (sends > 1) known.push(`${sends} requests`);
    lines.push(`    ${status} (${known.join(", ")}): ${detail}`);
  } else lines.push(`    ${task.cancelled === null ? "" : `${task.cancelled}; `}${withoutOutcome(task)}`);
  if (task.waitsFor !== null) lines.push(`    waits for ${task.waitsFor}, which holds sync job ${task.target}`);
  return lines;
}

/** What is known of a task without an outcome: it is running, too old, or lost. */
function withoutOutcome({ queue, journal, isInFlight, now, droppedUpTo }: TaskStory): string {
  if (isInFlight) return `no outcome yet: ${now ?? "on its way into the queue"}`;
  if (droppedUpTo !== null)
    return `no longer kept: what became of it; known of this policy since ${showInstant(Date.parse(droppedUpTo))} (docs/running.md, "How many outcomes are kept")`;
  const where = queue === null ? "not in the queue" : `${queue} in the queue`;
  const start = journal === "none" ? "not begun" : journal;
  return `no outcome, and no worker has it: ${where}, start ${start} (see syncline audit)`;
}

function sinceDue(laterMs: number): string {
  return laterMs < 0 ? `${formatTook(-laterMs)} before` : `+${formatTook(laterMs)}`;
}

function someOf(instants: readonly string[]): string {
  const shown = instants.slice(-coversShownMax).map((instant) => showInstant(Date.parse(instant)));
  return instants.length > coversShownMax ? `…, ${shown.join(", ")} (--json has all)` : shown.join(", ");
}
