// One chaos of schedules from its seed to its findings: policies, a fleet and its storm, the end, the checker.
import { openHouse } from "./chaos-house.ts";
import { checkSchedules } from "./check-schedules.ts";
import { findShownSecrets } from "./check-secrets.ts";
import { tellScript } from "./fault-script.ts";
import { planScheduleChaos } from "./plan-schedules.ts";
import type { RunSeed } from "./run-seeds.ts";

/** Every so many seeds are also held against the command that operators have. */
const auditedEvery = 20;
const toldEventsMax = 200;

/** Runs the chaos of schedules of this seed. */
export const runScheduleChaos: RunSeed = async (seed, redisUrl) => {
  const { policies, script, endsWith, hasWorkers } = planScheduleChaos(seed);
  const house = await openHouse({ redisUrl, name: `schedules-${seed}`, policies, sandbox: { seed } });
  try {
    const fleet = house.fleet(script);
    fleet.start();
    const beganMs = await house.untilBegun();
    await fleet.storm();
    const report = await fleet.end(endsWith);
    const endMs = await house.lookUntilQuiet();
    if (hasWorkers) await house.workOff();
    const verdict = await checkSchedules(house, { beganMs, endMs, hasWorkers });
    const audit = seed % auditedEvery === 0 ? await house.auditByCommand(endMs) : [];
    return {
      seed,
      findings: [...report.unexpectedEnds, ...verdict.findings, ...audit, ...(await findShownSecrets(house))],
      story: () => [
        policies,
        ...tellScript(script),
        ...report.story,
        ...house.events.slice(-toldEventsMax).map((event) => JSON.stringify(event)),
      ],
      counts: { starts: report.starts, strikes: report.strikes, slots: verdict.slots, tasks: verdict.tasks },
    };
  } finally {
    await house.close();
  }
};
