// How a worker of the queue is stopped: nothing new is taken, what is in work ends or is told to, and nobody waits for a Redis that is gone.
import type { Worker } from "bullmq";
import { withDeadline } from "../core/clock.ts";
import type { EventLog } from "../core/event-log.ts";

/** How long stopping may wait. */
export interface StopOptions {
  readonly queue: string;
  /** How long items in work may end by themselves before they are told to stop; 0 for at once. */
  readonly graceMs: number;
  readonly drainMs: number;
  readonly log: EventLog;
}

/** Stops a worker within `drainMs`. Whatever is left is taken over by another worker. */
export async function stopWorker(worker: Worker, { queue, graceMs, drainMs, log }: StopOptions): Promise<void> {
  const done = drain(worker, graceMs);
  await withDeadline(done, drainMs, () => new Error("still busy")).catch(() => {
    log.warn("queue.drain-incomplete", { queue });
    done.catch(() => {});
    worker.disconnect().catch(() => {});
  });
}

async function drain(worker: Worker, graceMs: number): Promise<void> {
  await worker.pause(true);
  if (graceMs > 0) {
    const closing = worker.close();
    const isClosed = await withDeadline(closing, graceMs, () => new Error("busy")).then(
      () => true,
      () => false,
    );
    if (isClosed) return;
    closing.catch(() => {});
  }
  worker.cancelAllJobs("shutdown");
  await worker.close();
}
