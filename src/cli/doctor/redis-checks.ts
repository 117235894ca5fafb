// The part of `syncline doctor` about Redis: is it there, and may it be trusted. Called by doctor.ts. Reads only.
import { withDeadline } from "../../core/clock.ts";
import { errorText, OutOfReachError } from "../../core/errors.ts";
import { openStore, type RedisTarget, type Store } from "../../store/redis.ts";
import { findRedisFaults, type RedisFacts, readRedisFacts } from "../../store/redis-facts.ts";
import type { Finding } from "./finding.ts";

const answerWithinMs = 5_000;
/** As app/redis-guard.ts, which warns of the same. */
const skewMsMax = 1_000;

/** What came of the look at Redis. Without a store nothing else can be asked of it; close it afterwards. */
export interface RedisLook {
  readonly findings: readonly Finding[];
  readonly store: Store | undefined;
}

/** Connects to Redis and looks at it. A Redis that is not there is a finding. @throws UsageError when the address is none. */
export async function checkRedis(target: RedisTarget): Promise<RedisLook> {
  let store: Store | undefined;
  try {
    store = await openStore(target);
    const late = () => new OutOfReachError(`Redis did not answer within ${answerWithinMs / 1_000} s`);
    const facts = await withDeadline(readRedisFacts(store), answerWithinMs, late);
    return { findings: judge(facts), store };
  } catch (error) {
    await store?.close();
    if (store === undefined && !(error instanceof OutOfReachError)) throw error;
    const what = errorText(error);
    const cure = "check REDIS_URL or --redis-url, passwords and network policies; docs/redis.md";
    return { findings: [{ check: "redis", subject: "", level: "problem", what, cure }], store: undefined };
  }
}

function judge(facts: RedisFacts): readonly Finding[] {
  const faults = findRedisFaults(facts);
  const findings: Finding[] = faults.map(({ level, about, what, cure }) => ({
    check: "redis",
    subject: about,
    level,
    what,
    cure,
  }));
  const { clockAheadMs, version, evictionPolicy, appendOnly, replicas } = facts;
  if (Math.abs(clockAheadMs) > skewMsMax) {
    const side = clockAheadMs > 0 ? "ahead of" : "behind";
    const what = `this machine's clock is ${(Math.abs(clockAheadMs) / 1_000).toFixed(1)} s ${side} that of Redis`;
    const cure = "set the clocks by NTP; slots follow the clock of Redis, tokens and certificates that of this machine";
    findings.push({ check: "redis", subject: "clock", level: "warning", what, cure });
  }
  if (faults.some(({ level }) => level === "problem")) return findings;
  const parts = [
    `version ${version ?? "unknown"}`,
    ...(evictionPolicy === undefined ? [] : [evictionPolicy]),
    ...(appendOnly === true ? ["append-only file"] : []),
    replicas === 0 ? "no replicas: a start waits for none" : `${replicas} in step: a start waits for one of them`,
  ];
  return [{ check: "redis", subject: "", level: "ok", what: parts.join(", ") }, ...findings];
}
