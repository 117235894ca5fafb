// What Redis reports of itself, and whether Syncline may trust it. It needs INFO only: CONFIG is
// often forbidden.
import { systemClock } from "../core/clock.ts";
import type { Store } from "./redis.ts";
import { asList, asTexts, createScript } from "./script.ts";

/** The facts of a Redis; undefined: it does not report this one. */
export interface RedisFacts {
  /** E.g. `7.0.15`. */
  readonly version: string | undefined;
  /** Its policy when memory is full; only `noeviction` keeps our data. */
  readonly evictionPolicy: string | undefined;
  /** Whether it appends every write to a file. */
  readonly appendOnly: boolean | undefined;
  readonly role: "master" | "replica";
  /** Replicas in step with it. */
  readonly replicas: number;
  /** Takes writes without its replicas: cut off, it would not notice another master. */
  readonly writesAlone: boolean;
  /** How far this machine's clock is ahead of Redis's, as far as the round trip makes it sure. */
  readonly clockAheadMs: number;
}

/** `problems`: Syncline starts nothing. `warnings`: it works, with less safety or speed. */
export interface RedisJudgement {
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

/** One fault of a Redis, with its cure. */
export interface RedisFinding {
  readonly level: "problem" | "warning";
  readonly about: "eviction" | "version" | "role" | "persistence" | "replication";
  readonly what: string;
  readonly cure: string;
}

const oldestVersion = [6, 2] as const;

const factsScript = createScript("redis-facts", asList);

/** Reads the facts of a Redis. */
export async function readRedisFacts(store: Store): Promise<RedisFacts> {
  const beforeMs = systemClock.nowMs();
  const [time, ...texts] = await factsScript(store, [store.key("clock")]);
  const afterMs = systemClock.nowMs();
  const [seconds, microseconds] = asTexts(time);
  const redisMs = Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
  // Redis read its clock between the two.
  const clockAheadMs = Math.max(beforeMs - redisMs, Math.min(afterMs - redisMs, 0));
  return { ...parseInfo(texts.map(String).join("\n")), clockAheadMs };
}

/** Reads the text of INFO. */
export function parseInfo(text: string): Omit<RedisFacts, "clockAheadMs"> {
  const fields = new Map<string, string>();
  for (const line of text.split(/\r?\n/)) {
    const colon = line.indexOf(":");
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  const appendOnly = fields.get("aof_enabled");
  const inStep = [...fields].filter(([name, value]) => /^slave\d+$/.test(name) && value.includes("state=online"));
  // INFO names the good replicas only with min-replicas-to-write.
  const stopsAlone = fields.has("min_slaves_good_slaves") || fields.get("redis_mode") === "cluster";
  return {
    version: fields.get("redis_version"),
    evictionPolicy: fields.get("maxmemory_policy"),
    appendOnly: appendOnly === undefined ? undefined : appendOnly === "1",
    role: fields.get("role") === "slave" ? "replica" : "master",
    replicas: inStep.length,
    writesAlone: inStep.length > 0 && !stopsAlone,
  };
}

/** Judges the facts, except the clock: the guard warns of that by itself. */
export function judgeRedis(facts: RedisFacts): RedisJudgement {
  const findings = findRedisFaults(facts);
  const textsOf = (level: RedisFinding["level"]) =>
    findings.filter((finding) => finding.level === level).map(({ what, cure }) => `${what}; ${cure}`);
  return { problems: textsOf("problem"), warnings: textsOf("warning") };
}

/** Lists the faults. */
export function findRedisFaults(facts: RedisFacts): readonly RedisFinding[] {
  const findings: RedisFinding[] = [];
  const { evictionPolicy, version, role, appendOnly } = facts;
  if (evictionPolicy === undefined) {
    // Without INFO the guard sees neither a restart nor replicas, so a loss could go unnoticed.
    const what = "maxmemory-policy is unknown: INFO is not allowed or does not show it";
    findings.push({ level: "problem", about: "eviction", what, cure: "allow +info to Syncline's user" });
  } else if (evictionPolicy !== "noeviction") {
    const what = `maxmemory-policy is ${evictionPolicy}: Redis may throw away slots and tasks`;
    findings.push({ level: "problem", about: "eviction", what, cure: "set it to noeviction" });
  }
  if (version !== undefined && isOlder(version)) {
    const what = `Redis is ${version}: ${oldestVersion.join(".")} is the oldest that works`;
    findings.push({ level: "problem", about: "version", what, cure: "upgrade it" });
  }
  if (role === "replica")
    findings.push({
      level: "problem",
      about: "role",
      what: "this Redis is a replica",
      cure: "give the address of its master",
    });
  if (appendOnly === false) {
    const what = "appendonly is off: a restart of Redis loses what was written since the last snapshot";
    findings.push({ level: "warning", about: "persistence", what, cure: "set appendonly yes" });
  }
  if (facts.writesAlone) {
    const what = "a master cut off from its replicas keeps taking writes after another one has replaced it";
    const cure = "set min-replicas-to-write 1";
    findings.push({ level: "warning", about: "replication", what, cure });
  }
  return findings;
}

function isOlder(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major < oldestVersion[0] || (major === oldestVersion[0] && minor < oldestVersion[1]);
}
