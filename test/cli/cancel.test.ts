// Cancelled while no worker is alive: nothing is sent, and the next worker records it. A poll and a
// run over masks are cancelled like a run.
import { expect, it } from "vitest";
import { commandFixture } from "../support/command-fixture.ts";
import { often } from "../support/processes.ts";

const fixture = commandFixture(`
  - { name: nightly, service: main, repository: HR, run: { syncJobs: [1] } }
  - { name: by-masks, service: main, repository: HR, run: { fromMasks: { type: DocMask } } }
  - { name: poll, service: main, repository: HR, poll: { list: approvals, expect: "count == 0" } }`);

it("takes off what is queued; the next worker says who and why, and sends nothing", async () => {
  const prefix = `${fixture.redis.prefix}-off`;
  const config = ["--config", fixture.file()];
  const here = (...args: string[]) => fixture.command(prefix, ...args);
  const policies = ["nightly", "by-masks", "poll"];
  for (const policy of policies) expect((await here("run", policy, ...config)).code).toBe(0);
  const running = await here("running", ...config);
  expect(running.out.match(/queued/g)).toHaveLength(3);
  expect(running.err).toContain("no worker is alive");
  for (const policy of policies) {
    const { code, out, err } = await here("cancel", policy, "--yes", "--reason", "freeze", ...config);
    expect({ code, out, err }).toEqual({
      code: 0,
      out: expect.stringMatching(`^${policy}__.+ is cancelled: nothing is sent$`),
      err: "no worker is alive: its outcome is recorded when one starts",
    });
  }
  expect((await here("running", ...config)).out.match(/cancelling .* by .+@.+: freeze/g)).toHaveLength(3);
  expect((await here("explain", "nightly", ...config)).out).toMatch(/cancelled by .+@.+: freeze; no outcome yet/);
  await fixture.serve(prefix, "--roles", "worker");
  const outcomes = async () => {
    const { out } = await here("history", "--json");
    const found: readonly Record<string, string>[] = JSON.parse(out);
    return found.map(({ policy, status, reason }) => `${policy} ${status} ${reason}`).toSorted();
  };
  const ended = policies.map((policy) => `${policy} skipped cancelled`).toSorted();
  await expect.poll(outcomes, often).toEqual(ended);
  expect(fixture.sandbox().requests()).toEqual({});
});
