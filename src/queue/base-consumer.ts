// The shell of the consumers: one BullMQ worker of one queue, from its start to its end. It
// depends on nothing in the jobs. On a stop it takes nothing new, what is in work ends or is
// cancelled, and it does not wait for a Redis that is gone.
import type { Job, Worker, WorkerOptions } from "bullmq";
import { withTimeLimit } from "../core/clock.ts";
import type { Component } from "../core/component.ts";
import type { EventLog } from "../core/event-log.ts";
import type { WorkerConnections } from "./worker-connections.ts";

/** What every consumer is told. */
export interface ConsumerBase {
  readonly connections: WorkerConnections;
  /** How long a worker may stay silent before another one takes its items. */
  readonly takeOverAfterMs: number;
  /** How long a stop may wait for items in work. */
  readonly drainMs: number;
  readonly log: EventLog;
}

/** How one consumer works. */
export interface ConsumerParts {
  readonly queue: string;
  /**
   * How long items in work may go on when it stops. 0: their signal aborts at once. A step that
   * ignores it, such as a start in flight, is waited for up to `drainMs`.
   */
  readonly graceMs: number;
  readonly options: Pick<WorkerOptions, "concurrency" | "maxStalledCount" | "settings" | "limiter"> &
    Pick<WorkerOptions, "maximumRateLimitDelay">;
  /** Done before it takes anything. */
  readonly before?: () => Promise<void>;
  /** Works on a job; `isStopping`: the job had been asked for, and goes back untouched. */
  readonly process: (job: Job<unknown>, how: JobContext) => Promise<string>;
  /** Adds listeners to a new worker. */
  readonly listen: (worker: Worker) => void;
}

/** What comes with a job. */
export interface JobContext {
  readonly token: string | undefined;
  readonly signal: AbortSignal;
  readonly isStopping: boolean;
}

/** The consumer of one queue. */
export interface Consumer extends Component {
  /** Changes how many items are worked on at once; items in work go on. */
  resize(concurrency: number): void;
}

/** Makes the component of one worker. */
export function createBaseConsumer(base: ConsumerBase, parts: ConsumerParts): Consumer {
  const { queue, before } = parts;
  let worker: Worker | undefined;
  const stopping = new AbortController();
  return {
    name: `consumer ${queue}`,
    start: async () => {
      await before?.();
      if (stopping.signal.aborted) return;
      worker = openWorker(base, parts, stopping.signal);
      await worker.waitUntilReady();
    },
    resize: (concurrency) => {
      if (worker !== undefined) worker.concurrency = concurrency;
    },
    stop: async () => {
      const drained = worker;
      worker = undefined;
      stopping.abort();
      if (drained !== undefined) await stopWorker(drained, base, parts);
    },
  };
}

function openWorker(base: ConsumerBase, parts: ConsumerParts, stopping: AbortSignal): Worker {
  const { connections, takeOverAfterMs, log } = base;
  const { queue, options, process, listen } = parts;
  // Three parameters: only then BullMQ passes the signal.
  const processor = (job: Job<unknown>, token: string | undefined, given: AbortSignal | undefined) =>
    process(job, { token, signal: given ?? new AbortController().signal, isStopping: stopping.aborted });
  const stalledInterval = Math.ceil(takeOverAfterMs / 2);
  const worker = connections.open(queue, processor, { ...options, lockDuration: takeOverAfterMs, stalledInterval });
  worker.on("error", (error) => log.warn("queue.unreachable", { queue, message: error.message }));
  listen(worker);
  return worker;
}

/** Stops a worker within `drainMs`. Another worker takes over what is left. */
async function stopWorker(worker: Worker, { drainMs, log }: ConsumerBase, parts: ConsumerParts): Promise<void> {
  const done = drain(worker, parts.graceMs);
  await withTimeLimit(done, drainMs, () => new Error("still busy")).catch(() => {
    log.warn("queue.drain-incomplete", { queue: parts.queue });
    done.catch(() => {});
  });
}

async function drain(worker: Worker, graceMs: number): Promise<void> {
  await worker.pause(true);
  if (graceMs > 0) {
    const closing = worker.close();
    const isClosed = await withTimeLimit(closing, graceMs, () => new Error("busy")).then(
      () => true,
      () => false,
    );
    if (isClosed) return;
    closing.catch(() => {});
  }
  worker.cancelAllJobs("shutdown");
  await worker.close();
}
