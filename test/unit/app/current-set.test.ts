// The policies in force: for how long they are, which says how sure it is that one is gone.
import { expect, it, onTestFinished, vi } from "vitest";
import { CurrentSet } from "../../../src/app/current-set.ts";
import { setOf } from "../../support/kept-set.ts";
import { testPolicy } from "../../support/policies.ts";

it("counts from when a policy left, however many reloads come after it", () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const [left, stays] = ["left", "stays"].map((name) => testPolicy({ name }));
  if (left === undefined || stays === undefined) throw new Error("no policies");
  const current = new CurrentSet(setOf([left, stays]));
  const unchangedForMs = () => ["left", "stays"].map((name) => current.unchangedForMs(name));
  current.adopt(setOf([stays]));
  vi.advanceTimersByTime(60_000);
  current.adopt(setOf([{ ...stays, owner: "Ana" }]));
  vi.advanceTimersByTime(1_000);
  expect(unchangedForMs()).toEqual([61_000, 1_000]);
  current.adopt(setOf([left, stays]));
  expect(unchangedForMs()).toEqual([0, 0]);
});
