import { describe, expect, it } from "vitest";
import { commandFixture } from "../support/command-fixture.ts";
import { commandHere } from "../support/simulate-command.ts";

const fixture = commandFixture(`
  - { name: head, service: main, run: { syncJobs: [1] }, schedule: { every: 1s }, overlap: allow, follow: { until: accepted } }
  - { name: tail, service: main, run: { syncJobs: [2] }, after: { policy: head, on: [accepted] }, overlap: allow, follow: { until: accepted } }
  - { name: never, service: main, poll: { list: triggers }, after: { policy: tail, on: [failed] } }
`);

describe("the commands over a chain", () => {
  it("plan, audit and explain it; pause and run its policies", async () => {
    const { prefix } = fixture.redis;
    const command = (...args: string[]) => fixture.command(prefix, ...args, "--config", fixture.file());
    const here = (...args: string[]) => fixture.command(prefix, ...args, "--config", fixture.file());
    const story = async (...args: string[]) => JSON.parse((await here("explain", ...args, "--json")).out);
    const plan = await commandHere(["plan", "--config", fixture.file()], { settings: fixture.settings() });
    expect(plan.text).toContain("after head (accepted), within 1d of its slot");

    const one = await fixture.serve(prefix);
    // On a busy machine several slots of the head come due at once, and only the newest is started.
    const ended = await one.until(
      ({ event, policy, note }) =>
        event === "slot.skipped" && policy === "never" && String(note).endsWith("ended accepted"),
    );
    await fixture.command(prefix, "pause", "tail", "--reason", "release 14");
    const paused = await one.until(
      ({ event, policy, reason }) => event === "slot.skipped" && policy === "tail" && reason === "paused",
    );
    one.kill("SIGTERM");
    await one.ended();
    const worker = await fixture.serve(prefix, "--roles", "worker");
    const skipped = String(ended["slot"]);
    const tail = await story("tail", skipped);
    expect(tail).toMatchObject({
      verdict: "started: head ended: 1 accepted",
      tasks: [{ outcome: { status: "accepted" } }],
    });
    expect(tail.tasks[0].taskId).toBe(`tail__run__2__${Date.parse(skipped) / 1_000}`);
    expect((await story("never", skipped)).verdict).toBe(
      `not started: its predecessor did not end as after.on asks: ${tail.tasks[0].taskId} ended accepted`,
    );
    expect((await story("tail", String(paused["slot"]))).verdict).toMatch(/^not started: paused: release 14/);

    const until = ["--until", String(paused["slot"])];
    const audit = await command("audit", ...until, "--json");
    const report = JSON.parse(audit.out);
    expect(report).toMatchObject({ ok: true, findings: [] });
    expect(report.policies.map(({ policy }: { policy: string }) => policy)).toEqual(["head", "tail", "never"]);
    const [head, ...followers] = report.policies;
    for (const { slots } of followers) expect(slots).toBe(head.slots);
    expect((await command("run", "tail", "--wait")).code).toBe(0);
    worker.kill("SIGTERM");
    await worker.ended();
  });
});
