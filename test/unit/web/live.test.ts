import { expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { LiveHub } from "../../../src/web/live.ts";
import { TestLog } from "../../support/test-log.ts";

const ana = { caller: "ana", end: () => {}, mayStay: async () => true };

it("tells open pages once that Redis cannot be read, and once that it can again", async () => {
  const ticks: (() => void)[] = [];
  const every = (_ms: number, tick: () => void) => {
    ticks.push(tick);
    return () => {};
  };
  const clock = { ...systemClock, every };
  const log = new TestLog();
  let read = async () => "one";
  const hub = new LiveHub(() => read(), clock, log);
  const sent: string[] = [];
  hub.join((text) => void sent.push(text), ana);
  const poll = async () => {
    ticks[0]?.();
    await new Promise((resolve) => setImmediate(resolve));
  };
  await poll();
  expect(sent.splice(0)).toEqual(["event: changed\ndata:\n\n"]);
  await poll();
  expect(sent).toEqual([]);
  read = async () => Promise.reject(new TypeError("a mistake"));
  await poll();
  await poll();
  expect(sent).toEqual(["event: changed\ndata:\n\n"]);
  expect(log.named("web.failed")).toHaveLength(1);
  read = async () => "one";
  await poll();
  expect(sent).toHaveLength(2);
});

it("tells a page what changed between its making and its stream", async () => {
  let tick = () => {};
  const every = (ms: number, act: () => void) => {
    if (ms === 2_000) tick = act;
    return () => {};
  };
  const hub = new LiveHub(async () => "one", { ...systemClock, every }, new TestLog());
  const told: string[] = [];
  hub.beforeChange(() => told.push("forget") > 0);
  const join = (caller: string) => hub.join(() => void told.push(caller), { ...ana, caller });
  const poll = async () => {
    tick();
    await new Promise((resolve) => setImmediate(resolve));
    return told.splice(0);
  };
  join("ana");
  expect(await poll()).toEqual(["forget", "ana"]);
  join("bob");
  expect(await poll()).toEqual(["bob"]);
  expect(await poll()).toEqual([]);
});

it("ends the pages of those who are let in no longer, where that is known", async () => {
  let tick = () => {};
  const every = (ms: number, act: () => void) => {
    if (ms === 15_000) tick = act;
    return () => {};
  };
  const hub = new LiveHub(async () => "one", { ...systemClock, every }, new TestLog());
  const ended: string[] = [];
  const join = (caller: string, mayStay: () => Promise<boolean>) =>
    hub.join(() => {}, { caller, mayStay, end: () => void ended.push(caller) });
  join("ana", async () => true);
  join("bob", async () => Promise.reject(new Error("Redis is out of reach")));
  join("eve", async () => false);
  const leave = join("gone", async () => false);
  tick();
  leave();
  await new Promise((resolve) => setImmediate(resolve));
  expect(ended).toEqual(["eve"]);
});
