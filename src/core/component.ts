// Components: the background parts that app/app.ts starts and stops.
import { untilAborted } from "./clock.ts";

/**
 * A background part of the process. `start` resolves when it works; call it once, never after
 * `stop`. `stop` resolves when everything is released; a second or early `stop` is no error.
 */
export interface Component {
  readonly name: string;
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Several components as one: started and stopped side by side. A stop waits for all of them. */
export function together(name: string, components: readonly Component[]): Component {
  return {
    name,
    start: async () => {
      await Promise.all(components.map((component) => component.start()));
    },
    stop: async () => {
      const stopped = await Promise.allSettled(components.map((component) => component.stop()));
      for (const result of stopped) if (result.status === "rejected") throw result.reason;
    },
  };
}

/**
 * Starts components in order; when one fails, stops the started ones in reverse and throws. When
 * `stopping` aborts, it returns at once with a start half done: its caller stops all components.
 */
export async function startInOrder(components: readonly Component[], stopping?: AbortSignal): Promise<void> {
  const started: Component[] = [];
  const isStopping = () => stopping?.aborted === true;
  for (const component of components) {
    if (isStopping()) return;
    try {
      await untilAborted(component.start(), stopping);
      started.push(component);
    } catch (error) {
      if (isStopping()) return;
      await stopInReverse(started);
      throw error;
    }
  }
}

/** Stops components in reverse order, all of them; throws the first failure at the end. */
export async function stopInReverse(components: readonly Component[]): Promise<void> {
  const failures: unknown[] = [];
  for (const component of components.toReversed()) {
    await component.stop().catch((error: unknown) => failures.push(error));
  }
  if (failures.length > 0) throw failures[0];
}
