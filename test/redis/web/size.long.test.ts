// What the pages and the API cost where there is much: bytes on the wire, and commands of Redis, by
// the number of policies and of viewers. bench/web.ts measures the same at full size.
import { Redis } from "ioredis";
import { describe, expect, it, vi } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { History } from "../../../src/store/history.ts";
import { viewPaths, webSet, writeInstallation } from "../../bench/web-installation.ts";
import { testOutcome } from "../../support/outcomes.ts";
import { webForTest } from "../../support/web-fixture.ts";

let shiftMs = 0;
// It stands still but for the shifts: on a slow machine, what is kept would end between two asks.
const clock = { ...systemClock, monotonicMs: () => shiftMs };
/** Longer than anything read is kept. */
const staleMs = 301_000;
const wireBytesMax = 150 * 1_024;

/** An application over so many policies. */
async function installationOf(count: number) {
  const set = webSet(count, 1);
  const web = await webForTest({ story: {}, set, clock });
  await writeInstallation(web.store, set, { days: 400, slots: 30 });
  const ask = async (path: string) => {
    const answer = await web.ask(path, { headers: { "accept-encoding": "gzip" } });
    return { status: answer.status, bytes: (await answer.arrayBuffer()).byteLength };
  };
  return { web, set, ask };
}

/** How many commands this process sends meanwhile. */
async function commandsOf(act: () => Promise<unknown>): Promise<number> {
  const send = vi.spyOn(Redis.prototype, "sendCommand");
  await act();
  const { length } = send.mock.calls;
  send.mockRestore();
  return length;
}

const [some, many] = [await installationOf(300), await installationOf(1_200)];

describe("with many policies", () => {
  it("each page and list is small on the wire", async () => {
    for (const path of viewPaths(many.set)) {
      shiftMs += staleMs;
      const { status, bytes } = await many.ask(path);
      expect([path, status, bytes < wireBytesMax]).toEqual([path, 200, true]);
    }
  });

  it.each(viewPaths(many.set))("%s costs no command a policy", async (path) => {
    const again = async ({ ask }: typeof some) => {
      await ask(path);
      shiftMs += staleMs;
      return commandsOf(() => ask(path));
    };
    const [few, more] = [await again(some), await again(many)];
    // Batches of 200 names, and lists of the repositories, of which there are four in both.
    expect(more - few).toBeLessThan(30);
  });
});

it("the first look once it listens costs no command a policy", async () => {
  const { web, set } = await installationOf(300);
  await web.serve();
  expect(await commandsOf(() => web.ask("/"))).toBeLessThan(set.policies.length / 2);
});

it("64 live pages cost Redis as much as one", async () => {
  const { live } = many.web.parts;
  const history = new History(many.web.store);
  let ended = 0;
  /** What an outcome costs that so many viewers of the first page are told of. */
  const costOf = async (viewers: number) => {
    const told = Array.from({ length: viewers }, () => Promise.withResolvers<void>());
    const leave = told.map(({ resolve }, index) =>
      live.join(() => resolve(), { caller: `caller-${index % 8}`, end: resolve, mayStay: async () => true }),
    );
    await Promise.all(told.map(({ promise }) => promise));
    shiftMs += staleMs;
    const commands = await commandsOf(() => Promise.all(told.map(() => many.ask("/"))));
    for (const one of leave) one();
    ended += 1;
    await history.record(testOutcome({ taskId: `x__run__42__${ended}`, policy: many.set.policies[ended]?.name ?? "" }));
    return commands;
  };
  await costOf(1);
  const [one, all] = [await costOf(1), await costOf(64)];
  // A poll of the open pages may fall into it.
  expect(all).toBeLessThan(one * 1.1 + 30);
});

const pages = viewPaths(many.set).filter((path) => !path.startsWith("/api/"));

it.each(pages)("64 who look at %s at once cost Redis as much as one", async (path) => {
  const costOf = (viewers: number) => {
    shiftMs += staleMs;
    return commandsOf(() => Promise.all(Array.from({ length: viewers }, () => many.ask(path))));
  };
  await costOf(1);
  const [one, all] = [await costOf(1), await costOf(64)];
  expect(all - one).toBeLessThan(30);
});
