import { describe, expect, it } from "vitest";
import { nextTurn } from "../../../src/core/clock.ts";
import { type Component, startInOrder, stopInReverse, together } from "../../../src/core/component.ts";

/** A component that notes what happens to it; `start` may take for ever or fail. */
function component(name: string, notes: string[], start: () => Promise<void> = async () => {}): Component {
  return {
    name,
    start: async () => {
      notes.push(`start ${name}`);
      await start();
    },
    stop: async () => {
      notes.push(`stop ${name}`);
    },
  };
}

describe("components", () => {
  it("start in order and stop in reverse", async () => {
    const notes: string[] = [];
    const components = ["store", "worker", "scheduler"].map((name) => component(name, notes));
    await startInOrder(components);
    await stopInReverse(components);
    expect(notes).toEqual([
      ...["start store", "start worker", "start scheduler"],
      ...["stop scheduler", "stop worker", "stop store"],
    ]);
  });

  it("that started are stopped when one fails to start, and its error is thrown", async () => {
    const notes: string[] = [];
    const failing = component("worker", notes, () => Promise.reject(new Error("no Redis")));
    await expect(startInOrder([component("store", notes), failing, component("scheduler", notes)])).rejects.toThrow(
      "no Redis",
    );
    expect(notes).toEqual(["start store", "start worker", "stop store"]);
  });

  it("start no more after a stop; one that is starting is not waited for", async () => {
    const notes: string[] = [];
    const told = new AbortController();
    const hanging = component("worker", notes, () => {
      told.abort();
      return new Promise(() => {});
    });
    await startInOrder([component("store", notes), hanging, component("scheduler", notes)], told.signal);
    await startInOrder([component("late", notes)], told.signal);
    expect(notes).toEqual(["start store", "start worker"]);
  });

  it("side by side are all waited for at the stop, also when one of them fails", async () => {
    const slow = Promise.withResolvers<void>();
    const failing = { ...component("failing", []), stop: () => Promise.reject(new Error("no Redis")) };
    const stopped = together("work", [failing, { ...component("slow", []), stop: () => slow.promise }]).stop();
    const first = await Promise.race([stopped.catch(() => "failed"), nextTurn()]);
    expect(first).toBeUndefined();
    slow.resolve();
    await expect(stopped).rejects.toThrow("no Redis");
  });
});
