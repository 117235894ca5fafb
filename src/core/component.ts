// What app.ts starts and stops. Anything that runs in the background is a component.
import { untilAborted } from "./abortable.ts";

/**
 * A background part of the process. `start` resolves when it works and may be called once.
 * `stop` resolves when it has let go of everything; stopping twice or before the start is no error.
 * Starting after `stop` is an error of the caller.
 */
export interface Component {
  readonly name: string;
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Several components as one: started and stopped side by side. */
export function together(name: string, components: readonly Component[]): Component {
  return {
    name,
    start: async () => {
      await Promise.all(components.map((component) => component.start()));
    },
    stop: async () => {
      await Promise.all(components.map((component) => component.stop()));
    },
  };
}

/**
 * Starts components in order; when one fails, those already started are stopped in reverse and the error is thrown. When `stopping`
 * aborts it ends at once, without an error and with a start perhaps half done: whoever was told to stop then stops them all.
 */
export async function startInOrder(components: readonly Component[], stopping?: AbortSignal): Promise<void> {
  const started: Component[] = [];
  const isToldToStop = () => stopping?.aborted === true;
  for (const component of components) {
    if (isToldToStop()) return;
    try {
      await untilAborted(component.start(), stopping);
      started.push(component);
    } catch (error) {
      if (isToldToStop()) return;
      await stopInReverse(started);
      throw error;
    }
  }
}

/** Stops components in reverse order. One that fails to stop does not keep the others from stopping; the first failure is thrown at the end. */
export async function stopInReverse(components: readonly Component[]): Promise<void> {
  const failures: unknown[] = [];
  for (const component of components.toReversed()) {
    await component.stop().catch((error: unknown) => failures.push(error));
  }
  if (failures.length > 0) throw failures[0];
}
