// The checks of `syncline doctor` about the running installation: processes alive, pauses,
// quarantines, open breakers, expensive lists. Reads only. Called by doctor-command.ts with a
// connected store.
import type { PolicySet } from "../../config/policy-set.ts";
import { isAbout, isInForce, type Pause } from "../../model/pause.ts";
import { readLimiterStatus } from "../../store/limiter-status.ts";
import { foreignOwner, type Owners, readOwners } from "../../store/owners.ts";
import { Pauses } from "../../store/pauses.ts";
import { Quarantines } from "../../store/quarantines.ts";
import { type Presence, readPresence, redisTimeMs, type Store } from "../../store/redis.ts";
import { readDearFeeds, tellFeed } from "../dear-feeds.ts";
import { cureOf, findDeletedTargets, tellDeleted } from "../deleted-targets.ts";
import { showSubject } from "../pause-subject.ts";
import { showInstant } from "../table.ts";
import { type Finding, withinLines } from "./finding.ts";

/** Checks the running installation for these services and policies. */
export async function checkPresence(set: PolicySet, store: Store): Promise<readonly Finding[]> {
  return [
    ...judgePresence(await readPresence(store)),
    ...judgeOwners(await readOwners(store)),
    ...(await checkPauses(set, store)),
    ...(await checkBreakers(set, store)),
    ...(await checkFeeds(set, store)),
    ...(await checkDeleted(set, store)),
  ];
}

/**
 * Roles without a process. No process at all is normal before the installation, so that is no
 * problem.
 */
export function judgePresence({ schedulers, workers }: Presence): readonly Finding[] {
  const counted = `${schedulers} with the role scheduler, ${workers} with the role worker`;
  const base = { check: "replicas", subject: "" } as const;
  if (schedulers + workers === 0) {
    const what = "no process of Syncline is alive on this Redis with this prefix";
    return [{ ...base, level: "warning", what, cure: "start `syncline serve`, or check --prefix and --redis-url" }];
  }
  const findings: Finding[] = [];
  if (schedulers === 0)
    findings.push({
      ...base,
      level: "problem",
      what: "no scheduler is alive: no slot is planned",
      cure: "start `syncline serve` with the role scheduler; what was due meanwhile is caught up as the policies say",
    });
  if (workers === 0)
    findings.push({
      ...base,
      level: "problem",
      what: "no worker is alive: no planned slot starts",
      cure: "start `syncline serve` with the role worker",
    });
  return findings.length > 0 ? findings : [{ ...base, level: "ok", what: counted }];
}

function judgeOwners({ holder, others }: Owners): readonly Finding[] {
  if (holder === undefined || others.length === 0) return [];
  const [what, cure] = foreignOwner([holder, ...others]).split("; ");
  return [{ check: "replicas", subject: "owner", level: "problem", what: what ?? "", cure: cure ?? "" }];
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

/** Lists that are read whole again and again, or not readable; no finding when there are none. */
async function checkFeeds(set: PolicySet, store: Store): Promise<readonly Finding[]> {
  const dear = await readDearFeeds(set, store);
  return withinLines(
    dear.map(({ feed, what, cure }) => ({ check: "feeds", subject: tellFeed(feed), level: "warning", what, cure })),
  );
}

/** Policies whose sync jobs Syncline has deleted; no finding when there are none. */
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
    const { breaker, lastFailure, throttledUntilMs } = await readLimiterStatus(store, service);
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
