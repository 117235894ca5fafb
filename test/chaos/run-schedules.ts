// One chaos of schedules from its seed to its findings: policies, a fleet and its storm, the end,
// the checker.
import { openFixture } from "./chaos-fixture.ts";
import { checkSchedules } from "./check-schedules.ts";
import { findShownSecrets } from "./check-secrets.ts";
import { tellScript } from "./fault-script.ts";
import { planScheduleChaos } from "./plan-schedules.ts";
import type { RunSeed } from "./run-seeds.ts";

/** Every so many seeds are also held against the command that operators have. */
const auditedEvery = 20;
const toldEventsMax = 200;

/** Runs the chaos of schedules of this seed. */
export const runScheduleChaos: RunSeed = async (seed, redisUrl, stormIsOver) => {
  const { policies, script, endsWith, hasWorkers } = planScheduleChaos(seed);
  const fixture = await openFixture({ redisUrl, name: `schedules-${seed}`, policies, sandbox: { seed } });
  try {
    const fleet = fixture.fleet(script);
    fleet.start();
    const beganMs = await fixture.untilBegun();
    await fleet.storm();
    const report = await fleet.end(endsWith);
    stormIsOver();
    const endMs = await fixture.lookUntilQuiet();
    if (hasWorkers) await fixture.workOff();
    const verdict = await checkSchedules(fixture, { beganMs, endMs, hasWorkers });
    const audit = seed % auditedEvery === 0 ? await fixture.auditByCommand(endMs) : [];
    return {
      seed,
      findings: [...report.unexpectedEnds, ...verdict.findings, ...audit, ...(await findShownSecrets(fixture))],
      story: () => [
        policies,
        ...tellScript(script),
        ...report.story,
        ...fixture.events.slice(-toldEventsMax).map((event) => JSON.stringify(event)),
      ],
      counts: { starts: report.starts, strikes: report.strikes, slots: verdict.slots, tasks: verdict.tasks },
    };
  } finally {
    await fixture.close();
  }
};
