// Stops a BullMQ worker: it takes nothing new, what is in work ends or is cancelled, and no stop
// waits for a Redis that is gone.
import type { Worker } from "bullmq";
import { withDeadline } from "../core/clock.ts";
import type { EventLog } from "../core/event-log.ts";

/** How long a stop may wait. */
export interface StopOptions {
  readonly queue: string;
  /** How long items in work may go on before they are cancelled; 0: cancelled at once. */
  readonly graceMs: number;
  readonly drainMs: number;
  readonly log: EventLog;
}

/** Stops a worker within `drainMs`. Another worker takes over what is left. */
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
