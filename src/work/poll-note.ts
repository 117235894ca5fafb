// What a poll's outcome says of the polls before it, and what it leaves for the next one. Called by process-task.ts right before the
// outcome is recorded; the note is written in that same step, if the memory is still what it rests on.
import { listNames } from "../core/list-name.ts";
import type { PollNote, PollState } from "../store/poll-memories.ts";
import type { Outcome } from "../tasks/outcome.ts";
import type { Task } from "../tasks/task.ts";
import { feedOf } from "./evidence.ts";
import type { WorkParts } from "./parts.ts";
import type { Ending } from "./step.ts";

/** Whether the outcome differs from the last one, and what is to be remembered. */
export interface PollChange {
  readonly changed: boolean;
  readonly note: PollNote;
}

/** Undefined for what is no poll, and for one that did not look. */
export async function pollChange(task: Task, ending: Ending, parts: WorkParts): Promise<PollChange | undefined> {
  if (task.kind !== "poll" || ending.status === "skipped" || ending.status === "missed") return undefined;
  const action = parts.policy(task.policy)?.action;
  const list = action?.kind === "poll" ? action.list : listNames.find((name) => name === task.target);
  if (list === undefined) return undefined;
  const feed = feedOf(task, list);
  const { state: before = "good", revision } = ending.poll?.basis ?? (await parts.polls.read(task.policy, feed));
  const state = stateOf(ending);
  const changed = state !== before || (state === "bad" && ending.poll?.isNews === true);
  return { changed, note: { revision, feed, state, sight: ending.poll?.sight } };
}

function stateOf({ status }: Pick<Outcome, "status">): PollState {
  return status === "succeeded" ? "good" : status === "failed" ? "bad" : "unknown";
}
