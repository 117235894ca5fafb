// The part of `syncline doctor` about what goes on: who is alive, what is paused or in quarantine, which breakers are open. Called by
// doctor.ts with a store that answers. Reads only.
import type { PolicySet } from "../../config/policy-set.ts";
import { readGateStatus } from "../../store/gate-status.ts";
import { Pauses } from "../../store/pauses.ts";
import { type Presence, readPresence } from "../../store/presence.ts";
import { Quarantines } from "../../store/quarantines.ts";
import { redisTimeMs, type Store } from "../../store/redis.ts";
import { isAbout, isInForce, type Pause } from "../../tasks/pause.ts";
import { cureOf, findDeletedTargets, tellDeleted } from "../deleted-targets.ts";
import { showSubject } from "../pause-subject.ts";
import { showInstant } from "../table.ts";
import { type Finding, withinLines } from "./finding.ts";

/** Looks at what goes on with these services and policies. */
export async function checkPresence(set: PolicySet, store: Store): Promise<readonly Finding[]> {
  return [
    ...judgePresence(await readPresence(store)),
    ...(await checkPauses(set, store)),
    ...(await checkBreakers(set, store)),
    ...(await checkDeleted(set, store)),
  ];
}

/** Who is missing. Nobody at all is how it is before the installation, so that alone is no problem. */
export function judgePresence({ schedulers, workers, unnamed }: Presence): readonly Finding[] {
  const counted = `${schedulers} with the role scheduler, ${workers} with the role worker`;
  const more = unnamed === 0 ? "" : `, ${unnamed} of an older version`;
  const base = { check: "replicas", subject: "" } as const;
  if (schedulers + workers + unnamed === 0) {
    const what = "no process of Syncline is alive on this Redis with this prefix";
    return [{ ...base, level: "warning", what, cure: "start `syncline serve`, or check --prefix and --redis-url" }];
  }
  const findings: Finding[] = [];
  if (schedulers === 0 && unnamed === 0)
    findings.push({
      ...base,
      level: "problem",
      what: "no scheduler is alive: no slot is planned",
      cure: "start `syncline serve` with the role scheduler; what was due meanwhile is caught up as the policies say",
    });
  if (workers === 0 && unnamed === 0)
    findings.push({
      ...base,
      level: "problem",
      what: "no worker is alive: nothing that is planned starts",
      cure: "start `syncline serve` with the role worker",
    });
  return findings.length > 0 ? findings : [{ ...base, level: "ok", what: `${counted}${more}` }];
}

async function checkPauses({ policies }: PolicySet, store: Store): Promise<readonly Finding[]> {
  const nowMs = await redisTimeMs(store);
  const all = [...(await new Pauses(store).all()), ...(await new Quarantines(store).all())];
  const mine = all.filter((pause) => isInForce(pause, nowMs) && policies.some((policy) => isAbout(pause, policy)));
  if (mine.length === 0)
    return [{ check: "pauses", subject: "", level: "ok", what: "nothing is paused or in quarantine" }];
  return withinLines(mine.map(tellPause));
}

function tellPause(pause: Pause): Finding {
  const until = pause.untilMs === null ? "until it is resumed" : `until ${showInstant(pause.untilMs)}`;
  const how = pause.cause === undefined ? `paused by ${pause.actor}` : "in quarantine";
  const argument = { policy: pause.name, service: `--service ${pause.name}`, all: "--all" }[pause.scope];
  return {
    check: "pauses",
    subject: showSubject(pause),
    level: "warning",
    what: `${how} ${until}: ${pause.note}`,
    cure: `its slots are skipped; \`syncline resume ${argument}\` ends that`,
  };
}

/** Whose sync jobs Syncline has deleted; nothing is said when there are none. */
async function checkDeleted(set: PolicySet, store: Store): Promise<readonly Finding[]> {
  const found = await findDeletedTargets(set, store);
  const findings = found.map(
    (target): Finding => ({
      check: "deleted",
      subject: target.policy.name,
      level: "warning",
      what: `${tellDeleted(target)} (${target.policy.where.file}:${target.policy.where.line})`,
      cure: cureOf(target),
    }),
  );
  return withinLines(findings);
}

async function checkBreakers({ services }: PolicySet, store: Store): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  for (const service of services.keys()) {
    const { breaker, lastFailure, throttledUntilMs } = await readGateStatus(store, service);
    const base = { check: "breakers", subject: service, level: "warning" } as const;
    if (breaker === "open") {
      const what = `its breaker is open (${lastFailure ?? "unknown"}): tasks sleep until it answers a probe`;
      findings.push({
        ...base,
        what,
        cure: "the line `service` says what is wrong with it; `syncline status` when it is asked again",
      });
    }
    if (throttledUntilMs !== undefined) {
      const what = `it asked for patience until ${showInstant(throttledUntilMs)}`;
      findings.push({ ...base, what, cure: "lower limits.requestsPerSecond, or spread the policies" });
    }
  }
  if (findings.length > 0) return withinLines(findings);
  return [{ check: "breakers", subject: "", level: "ok", what: "all closed, no service asked for patience" }];
}
