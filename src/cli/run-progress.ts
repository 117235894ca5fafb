// Shows on standard error how tasks that a person has queued come along: a line for each change,
// and on a terminal a live line. Called by `run --wait` and `delete --yes`.
import type { PolicySet } from "../config/policy-set.ts";
import { formatDuration } from "../core/duration.ts";
import { showInstant } from "../core/instant.ts";
import type { Outcome } from "../model/outcome.ts";
import type { Task } from "../model/task.ts";
import { type RunningTask, readRunning } from "../queries/running.ts";
import { readPresence, redisTimeMs, type Store } from "../store/redis.ts";
import { StartJournal } from "../store/start-journal.ts";
import type { CommandIo } from "./command-io.ts";

/** Tasks that are shown one by one; of more, only how many have ended. */
const shownMax = 20;

/** Looks once, and shows what is new. `open`: the tasks without an outcome. */
export type ShowProgress = (open: readonly Task[], outcomes: readonly Outcome[]) => Promise<void>;

/** Makes the progress of some tasks of one policy. */
export function createProgress(set: PolicySet, store: Store, io: CommandIo): ShowProgress {
  const journal = new StartJournal(store);
  const said = new Map<string, string>();
  // A figure that runs down is no news.
  const say = (about: string, text: string, news = text.replaceAll(/\d/g, "")) => {
    if (said.get(about) === news) return;
    said.set(about, news);
    io.progress?.("");
    io.err(text);
  };
  return async (open, outcomes) => {
    const count = open.length + outcomes.length;
    const label = ({ target }: Pick<Task, "target">) => (count === 1 ? "" : `${target}: `);
    for (const { taskId, status, reason, target } of outcomes.slice(0, shownMax))
      say(taskId, `${label({ target })}${status} (${reason})`);
    if (count > shownMax) say("all", `${outcomes.length} of ${count} have ended`, String(outcomes.length));
    const nowMs = await redisTimeMs(store);
    const looked = open.slice(0, shownMax).map((task) => ({ task, state: "waiting", queuedAtMs: nowMs }) as const);
    const running = await readRunning(looked, set, store);
    for (const one of running) {
      // A request under way may still turn out to have never left.
      if (one.sent !== null && one.step !== "sending")
        say(`${one.id} sent`, `${label(one)}sent ${showInstant(Date.parse(one.sent))}`);
      const isSeen = one.step === "following" && one.kind === "run" && (await journal.hasActivity(one));
      if (one.step !== "queued") say(one.id, `${label(one)}${describeStep(one, isSeen)}`);
    }
    const { workers } = await readPresence(store);
    if (open.length > 0 && workers === 0) say("workers", "no worker is alive: nothing goes on until one starts");
    const [first] = running;
    if (first !== undefined) io.progress?.(`${first.step}${sinceOf(first, nowMs)}; Ctrl-C ends the wait, not the run`);
  };
}

function describeStep({ step, waitsFor, kind }: RunningTask, isSeen: boolean): string {
  if (waitsFor === null) return step;
  if (step === "held back" || step === "waits for sync job") return `${step}: ${waitsFor}`;
  if (step !== "following") return `${step}; waits for ${waitsFor}`;
  const seen = isSeen ? ", and its first activity is seen" : "";
  return `answered: the service took the ${kind}${seen}; waits for ${waitsFor}`;
}

function sinceOf({ since }: RunningTask, nowMs: number): string {
  const forMs = since === null ? 0 : Math.max(nowMs - Date.parse(since), 0);
  return forMs < 1_000 ? "" : ` for ${formatDuration(Math.floor(forMs / 1_000) * 1_000)}`;
}
