// `npm run trial:alerts [-- --only REGEXP]`: thirteen incidents in real processes, and a real
// Prometheus with the chart's rules over two releases of 200 policies each. Each cause must be one
// page in its time, its runbook must lead to the cause word by word, and it must end; before them
// an hour in which all is well. Exits 1 unless all of it holds. A minute of the rules is two
// seconds here, so the run of a quarter of an hour stands for most of a day.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { parseFault } from "../../src/sandbox/faults.ts";
import { openStore } from "../../src/store/redis.ts";
import { troublesKey } from "../../src/store/troubles.ts";
import { followRunbook, type Step } from "../support/chart/follow-runbook.ts";
import { minuteMs, Prometheus } from "../support/chart/trial-prometheus.ts";
import { Release } from "../support/chart/trial-release.ts";

interface Incident {
  readonly name: string;
  readonly alert: string;
  /** How long it may take until the alert fires, in minutes of the rules. */
  readonly within: number;
  readonly begin: () => unknown;
  readonly end: () => unknown;
  /** What the steps of the runbook must print. */
  readonly cause: readonly RegExp[];
  /** The policy and service that it is about; the alert must name the policy. */
  readonly policy?: string;
  readonly service?: string;
  /** A command of the runbook's cure, run after the end; it must succeed. */
  readonly cure?: string;
}

const folder = mkdtempSync(join(tmpdir(), "syncline-alert-trial-"));
const hurt = await Release.start("hurt", join(folder, "hurt"), ["scheduler", "worker"]);
const calm = await Release.start("calm", join(folder, "calm"), ["all"]);
await Promise.all([hurt.ready(), calm.ready()]);
const prometheus = await Prometheus.start(folder, [hurt, calm]);
const { main, other, hook, redis } = hurt.parts;

/** How long what was held back for a quarter of an hour may still show. */
const restMs = 8 * minuteMs;
const endsWithinMs = 60 * minuteMs;
const readTwiceAfterMs = 4_000;
/** A policy set needs some seconds until it is adopted. */
const nightInMs = 12_000;

const faults = (target: typeof main, ...texts: string[]) => target.setFaults(texts.map(parseFault));
const nightOf = (policy: string) => hurt.writePolicies({ [policy]: new Date(Date.now() + nightInMs) });

/**
 * Ages the notes of missed slots by the hour for which they show: that hour is the product's, not
 * the rules'.
 */
async function passAnHour(): Promise<void> {
  const store = await openStore({ url: redis.url, prefix: "{syncline}" });
  const key = troublesKey(store);
  for (const note of await store.redis.zrange(key, "0", "-1"))
    if (note.startsWith("missed/")) await store.redis.zincrby(key, -3_600_000, note);
  await store.close();
}

async function solveConflicts(): Promise<void> {
  const headers = { authorization: `Bearer ${main.token}` };
  await fetch(`${main.baseUrl}/_sandbox/conflicts/clear`, { method: "POST", headers });
}

const incidents: readonly Incident[] = [
  {
    name: "a nightly run fails",
    alert: "SynclinePolicyFailing",
    within: 35,
    policy: "nightly",
    service: "main",
    begin: () => nightOf("nightly"),
    end: () => {},
    cause: [/nightly .*failed .*activity \d+ did not succeed/, /failed \(run-failed/],
    cure: "syncline run POLICY",
  },
  {
    name: "a run leaves conflicts",
    alert: "SynclineConflicts",
    within: 25,
    policy: "conflicted",
    service: "main",
    begin: () => nightOf("conflicted"),
    end: solveConflicts,
    cause: [/conflicted .*conflicts/, /Draft 3-1-1\.docx/],
    cure: "syncline run POLICY",
  },
  {
    name: "a sink is stuck",
    alert: "SynclineSinkStuck",
    within: 30,
    begin: () => {
      hook.answer = () => ({ status: 500 });
    },
    end: () => {
      hook.answer = () => ({ status: 204 });
    },
    cause: [/"event":"sink.failing".*500/, /^ops +\d+ +\d{4}-/m],
  },
  {
    name: "a slot is missed, since the policy before it took too long",
    alert: "SynclineSlotMissed",
    within: 35,
    policy: "follower",
    service: "other",
    begin: () => faults(other, "latency,op=GetTriggers,ms=15000,times=1"),
    end: passAnHour,
    cause: [/follower .* was missed: .*later than 10s after its slot/, /slow .*1[5-9]s/],
  },
  {
    name: "the policy files are wrong",
    alert: "SynclineConfigRejected",
    within: 12,
    begin: () => hurt.write("apiVersion: nonsense\n"),
    end: () => hurt.writePolicies(),
    cause: [/"event":"config.rejected".*apiVersion/, /all\.yaml:1.*apiVersion/],
  },
  {
    name: "another release has the same prefix",
    alert: "SynclineForeignOwner",
    within: 8,
    begin: () => hurt.serveForeign(),
    end: () => {},
    cause: [
      /"event":"owner.foreign".*sync\/newcomer/,
      /policies of sync\/hurt and sync\/newcomer run under one prefix/,
    ],
  },
  {
    name: "one service of two is down",
    alert: "SynclineBreakerOpen",
    within: 15,
    service: "main",
    begin: () => faults(main, "503"),
    end: () => faults(main),
    cause: [/^main +open.*server/m],
  },
  {
    name: "the token is refused",
    alert: "SynclineAuthFailing",
    within: 12,
    service: "main",
    begin: () => faults(main, "401"),
    end: () => faults(main),
    cause: [/^main +open .*unauthorized/m, /"GetApprovals","outcome":"unauthorized"\} [1-9]/],
    cure: "syncline api GetApprovals",
  },
  {
    name: "a service throttles",
    alert: "SynclineServiceThrottled",
    within: 20,
    service: "main",
    begin: () => faults(main, "429,retryAfter=3"),
    end: () => faults(main),
    cause: [/^main +closed +until /m],
  },
  {
    name: "no worker",
    alert: "SynclineNoWorker",
    within: 12,
    begin: () => hurt.end("worker"),
    end: () => hurt.serve("worker"),
    cause: [/ 0 with the role worker/],
  },
  {
    name: "no scheduler",
    alert: "SynclineNoScheduler",
    within: 12,
    begin: () => hurt.end("scheduler"),
    end: () => hurt.serve("scheduler"),
    cause: [/ 0 with the role scheduler/],
  },
  {
    name: "Redis hangs",
    alert: "SynclineRedisDown",
    within: 12,
    begin: () => process.kill(redis.pid, "SIGSTOP"),
    end: () => process.kill(redis.pid, "SIGCONT"),
    cause: [/"event":"redis.unreachable"/],
  },
  {
    name: "all pods are gone",
    alert: "SynclineDown",
    within: 10,
    begin: () => Promise.all((["scheduler", "worker"] as const).map((pod) => hurt.end(pod))),
    end: () => {
      for (const pod of ["scheduler", "worker"] as const) hurt.serve(pod);
    },
    cause: [/"__name__":"up".*"pod":"scheduler"\} 0/, /"__name__":"up".*"pod":"worker"\} 0/],
  },
];

/** Waits until something holds; undefined when it does not in time. */
async function until<T>(look: () => Promise<T | undefined>, withinMs: number): Promise<T | undefined> {
  for (const endMs = Date.now() + withinMs; Date.now() < endMs; await sleep(500)) {
    const found = await look();
    if (found !== undefined) return found;
  }
  return undefined;
}

interface Played {
  readonly incident: Incident;
  readonly fromMs: number;
  readonly endedMs: number;
  readonly steps: readonly Step[];
  readonly wrong: readonly string[];
}

/** Plays an incident from its beginning to the end of its alert. */
async function play(incident: Incident): Promise<Played> {
  const { alert, cause, policy = "", service = "", within, cure } = incident;
  const wrong: string[] = [];
  const fromMs = Date.now();
  await incident.begin();
  const description = await until(() => prometheus.description(hurt.job, alert), within * minuteMs);
  if (description === undefined) wrong.push(`${alert} does not fire within ${within} minutes`);
  else if (!description.includes(policy)) wrong.push(`it does not name ${policy}: ${description}`);
  const words = { POLICY: policy, NAME: service, REPOSITORY: "HR", PREDECESSOR: "slow", NAMESPACE: "sync" };
  const followed = { release: hurt, prometheus, words, sinceMs: fromMs };
  const page = prometheus.runbooks.get(alert) ?? "";
  const read = () => followRunbook(page, "First look", followed);
  const isUnsaid = (steps: readonly Step[]) => cause.filter((one) => !steps.some(({ said }) => one.test(said ?? "")));
  let steps = await read();
  // Who is alive is known with a delay that is not shortened here.
  for (let again = 0; again < 3 && isUnsaid(steps).length > 0; again += 1) {
    await sleep(readTwiceAfterMs);
    steps = await read();
  }
  for (const one of isUnsaid(steps)) wrong.push(`${page} does not lead to ${one}: ${JSON.stringify(steps)}`);
  await incident.end();
  const endedMs = Date.now();
  if (cure !== undefined) {
    const [cured] = await followRunbook(page, "Cure", followed, cure);
    if (cured === undefined || cured.isWrong) wrong.push(`${page}: the cure fails: ${cured?.said}`);
    else steps = [...steps, cured];
  }
  wrong.push(...steps.filter(({ isWrong }) => isWrong).map(({ what, said }) => `${page}: ${what}: ${said}`));
  const gone = async () => ((await prometheus.description(hurt.job, alert)) === undefined ? true : undefined);
  if ((await until(gone, endsWithinMs)) === undefined) wrong.push(`${alert} does not end`);
  await sleep(restMs);
  return { incident, fromMs, endedMs, steps, wrong };
}

interface Firing {
  readonly alert: string;
  readonly severity: string;
  readonly job: string;
  readonly fromMs: number;
  toMs: number;
}

/** Each time that an alert fired. A gap of two evaluations makes another one. */
async function firings(fromMs: number, toMs: number): Promise<Firing[]> {
  const found: Firing[] = [];
  for (const { metric, values } of await prometheus.fired(fromMs, toMs)) {
    const { alertname: alert = "", severity = "", job = "" } = metric;
    for (const [second] of values) {
      const atMs = second * 1_000;
      const last = found.at(-1);
      const isSame = last?.alert === alert && last.severity === severity && last.job === job;
      if (last !== undefined && isSame && atMs >= last.toMs && atMs - last.toMs <= 2_000) last.toMs = atMs;
      else found.push({ alert, severity, job, fromMs: atMs, toMs: atMs });
    }
  }
  return found.toSorted((a, b) => a.fromMs - b.fromMs);
}

/**
 * Prints an incident: its page, what else fired, and where the runbook names the cause. Answers
 * what is wrong.
 */
function tell({ incident, fromMs, endedMs, steps, wrong }: Played, fired: readonly Firing[]): string[] {
  const { name, alert, cause } = incident;
  const lines = fired.map((one) => {
    const seconds = (ms: number) => `${Math.round(ms / 1_000)} s`;
    const ends = one.toMs > endedMs ? `, until ${seconds(one.toMs - endedMs)} after the cause` : "";
    return `  ${one.alert} ${one.severity}: after ${seconds(one.fromMs - fromMs)}, for ${seconds(one.toMs - one.fromMs + 1_000)}${ends}`;
  });
  const taken = steps.filter(({ said }) => said !== undefined);
  const naming = taken.filter(({ said }) => cause.some((one) => one.test(said ?? ""))).map(({ what }) => what);
  const left = steps.length - taken.length;
  const more = left === 0 ? "" : `, ${left} for a cluster left out`;
  lines.push(`  runbook: ${taken.length} steps done${more}; the cause is in: ${naming.join("; ")}`);
  process.stdout.write(`${name}\n${lines.join("\n")}\n`);
  const pages = fired.filter(({ severity, alert: other }) => severity === "critical" || other === alert);
  const isOnce = pages.length === 1 && pages[0]?.alert === alert;
  return [...wrong, ...(isOnce ? [] : [`pages: ${pages.map((page) => page.alert).join(", ")}`])].map(
    (one) => `${name}: ${one}`,
  );
}

const { only } = parseArgs({ options: { only: { type: "string", default: "" } } }).values;
const chosen = incidents.filter(({ name, alert }) => new RegExp(only).test(`${name} ${alert}`));
const wrong: string[] = [];
try {
  process.stdout.write(
    "a minute of the rules is 2 s, the 60 s and 90 s of heartbeats are 8 s; the hour for which a missed slot shows\nis taken off its note in Redis; kubectl is not run\n",
  );
  const beganMs = Date.now();
  // Long enough that Prometheus has scraped all pods, or a whole hour.
  const wellMinutes = only === "" ? 60 : 5;
  await sleep(wellMinutes * minuteMs);
  const early = await firings(beganMs, Date.now());
  process.stdout.write(`${wellMinutes} minutes in which all is well: ${early.length} alerts\n`);
  wrong.push(...early.map(({ alert }) => `all is well: ${alert}`));
  for (const incident of chosen) {
    const played = await play(incident);
    const fired = (await firings(beganMs, Date.now())).filter(({ fromMs }) => fromMs >= played.fromMs);
    const isHurt = ({ job }: Firing) => job === hurt.job;
    wrong.push(...tell(played, fired.filter(isHurt)));
    for (const { alert } of fired.filter((one) => !isHurt(one))) wrong.push(`the release that is well: ${alert}`);
  }
} finally {
  prometheus.stop();
  await Promise.all([hurt.stop(), calm.stop()]);
  rmSync(folder, { recursive: true, force: true });
}
const count = `${chosen.length} incidents, 200 policies in each of two releases`;
process.stdout.write(wrong.length === 0 ? `${count}: each cause was one page\n` : `WRONG\n  ${wrong.join("\n  ")}\n`);
process.exitCode = wrong.length === 0 ? 0 : 1;
