// `syncline import` of CronJobs and crontabs as people have them (test/support/cron-samples): what
// becomes a policy, and that all the rest is said. What comes out is a valid policy file.
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { policyChecks } from "../../src/cli/shared-options.ts";
import { loadPolicies } from "../../src/config/load-policies.ts";
import type { Policy } from "../../src/config/policy-set.ts";
import { runHere } from "../support/commands-here.ts";
import { folderForTest } from "../support/folder.ts";

const samples = join(import.meta.dirname, "../support/cron-samples");
const variables = { SYNC_TOKEN: "t", TOKEN: "t", A: "a", B: "b" };

/** Imports a sample; what comes out must be a valid policy file. */
async function imported(sample: string, ...args: string[]) {
  const option = sample.endsWith(".crontab") ? "--crontab" : "--cron-jobs";
  const ran = await runHere(["import", ...args, option, join(samples, sample)], variables);
  expect(`${ran.out}${ran.err}`).not.toContain("canary");
  const file = join(folderForTest(), "policies.yaml");
  writeFileSync(file, ran.out);
  const loaded = await loadPolicies(file, { variables, checks: policyChecks });
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  const services = [...loaded.set.services.values()].map(({ name, baseUrl, token, pathForm }) => {
    const from = token.kind === "env" ? token.variable : token.kind === "file" ? token.path : token.kind;
    return `${name} ${baseUrl} ${from} ${pathForm}`;
  });
  return { ...ran, services, policies: loaded.set.policies.map(show) };
}

function show({ name, service, repository, action, schedule, overlap, catchUpWindowMs }: Policy): string {
  const what = "syncJobs" in action ? `${action.kind} ${action.syncJobs.join(",")}` : action.kind;
  const first = "activate" in action ? " after activate" : "";
  const when =
    schedule?.kind === "cron"
      ? `${schedule.expressions.join()} ${schedule.timezone}`
      : schedule?.kind === "every"
        ? `every ${schedule.everyMs / 60_000}m`
        : "by hand";
  const where = repository === undefined ? service : `${service}/${repository}`;
  return `${name}: ${where} ${what}${first}, ${when}, ${overlap} ${catchUpWindowMs / 1_000}s`;
}

interface Expected {
  readonly code: number;
  readonly services: readonly string[];
  readonly policies: readonly string[];
  /** Lines on standard error, each as a part of it. */
  readonly said: readonly string[];
}

const expected: Readonly<Record<string, Expected>> = {
  "plain.yaml": {
    code: 0,
    services: ["main https://sync.example.com SYNC_TOKEN parentheses"],
    policies: ["contracts-nightly: main/HR run 42, 30 2 * * 1-5 Europe/Vienna, skip 600s"],
    said: [
      "CronJob hr/contracts-nightly: its image curlimages/curl:8.10.1 is taken to run curl",
      "SYNC_TOKEN is the key token of the secret sync-token",
      "1 policy of 1 job",
    ],
  },
  "script.yaml": {
    code: 0,
    services: ["main https://sync.example.com/ecm /run/secrets/token parentheses"],
    policies: ["masks-and-jobs: main run 7 after activate, 0 */6 * * * Etc/UTC, allow 3600s"],
    said: ["activeDeadlineSeconds 120 ended the request", "sleep (schedule.spread", "--retry (", "the header X-Trace"],
  },
  "list.yaml": {
    code: 0,
    services: ["main https://sync.example.com TOKEN segment"],
    policies: [
      "board-weekly: main run 11, by hand, skip 3600s",
      "board-weekly-2: main run 12, @weekly Europe/Berlin, skip 3600s",
    ],
    said: ["CronJob hr/board-weekly: it is suspended", "list.yaml: 1 of kind ConfigMap: no CronJob"],
  },
  "documents.yaml": {
    code: 0,
    services: ["main https://sync.example.com TOKEN parentheses"],
    policies: ["departments: main/SALES run 21,22,23, 15 4 * * * Europe/Vienna, skip 2678400s"],
    said: [
      "concurrencyPolicy Replace: a run cannot be stopped here",
      "startingDeadlineSeconds 5000000 is not within 1 s and 31 d",
      "backoffLimit 4: ",
      "the variables of envFrom of the container wget are not known",
      "one sync job after the other, a policy all at once",
      "1 of kind Secret: no CronJob",
    ],
  },
  "every.yaml": {
    code: 0,
    services: ["main http://sync.hr.svc.cluster.local:8080 TOKEN parentheses"],
    policies: ["job-20211: main run 42, every 90m, skip 3600s", "tokyo: main run 43, 0 6 * * * Asia/Tokyo, skip 3600s"],
    said: [
      "CronJob tokyo: no startingDeadlineSeconds: a missed time started however late; here within 1h",
      "no concurrencyPolicy (Allow)",
      "--insecure (certificates are always checked",
      "@every counts from another",
    ],
  },
  "foreign.yaml": {
    code: 1,
    services: [],
    policies: [],
    said: [
      "CronJob script-from-a-map: no call of run or activate is found in its command: left out",
      "CronJob only-reads: run(42) is sent as GET, and a run is a POST",
      "CronJob unknown-id: run($JOB_ID): the id of the sync job is not known here",
      "CronJob python: run(42) is called by none of curl, wget and httpie",
      "foreign.yaml, document 5: this CronJob cannot be read (spec.schedule",
      "0 policies of 4 jobs; 4 left out",
    ],
  },
  "user.crontab": {
    code: 0,
    services: ["main https://sync.example.com TOKEN parentheses"],
    policies: [
      "run-hr-42: main/HR run 42, 30 2 * * 1-5 Europe/Vienna, skip 3600s",
      "run-43: main run 43, @daily Europe/Vienna, skip 3600s",
      "activate-44: main activate 44, */15 6-20 * * MON-FRI Europe/Vienna, skip 3600s",
    ],
    said: [
      "user.crontab: a crontab starts a job beside one that goes on, and never later than its time: here",
      "user.crontab:4: MAILTO is not kept",
      "user.crontab:10: not kept of the command: mail (notify tells people",
    ],
  },
  "system.crontab": {
    code: 0,
    services: ["main https://sync.example.com SYNC_TOKEN parentheses"],
    policies: ["run-hr-5: main/HR run 5, */10 * * * * UTC, skip 3600s"],
    said: [
      "system.crontab:2: no call of run or activate",
      "not kept of the command: www-data, -m (services.*.timeouts.request), -u (",
      "the query parameter trace, a user in the address",
      "system.crontab:3: no time zone is named: it is read as UTC",
      "service main: put its access token into the environment variable SYNC_TOKEN",
    ],
  },
  "wget.crontab": {
    code: 1,
    services: ["main https://sync.example.com SYNC_TOKEN parentheses"],
    policies: ["run-8: main run 8, 0 4 1 * * UTC, skip 3600s", "run-9: main run 9, 6 4 1 * * UTC, skip 3600s"],
    said: [
      "2: an unescaped % ends the command",
      "wget.crontab:2: a call in wget is not understood: left out",
      "an access token stands in a command in plain text",
    ],
  },
  "odd.crontab": {
    code: 1,
    services: ["main https://sync.example.com SYNC_TOKEN segment"],
    policies: [
      "run-1: main run 1, by hand, skip 3600s",
      "run-2: main run 2, by hand, skip 3600s",
      "run-5: main run 5, 0 6 * * * UTC, skip 3600s",
    ],
    said: [
      "odd.crontab:1: its schedule cannot be kept: @reboot is no instant",
      "odd.crontab:2: its schedule cannot be kept: an hour is 0 to 23",
      "odd.crontab:3: no line of a crontab",
      "odd.crontab:4: run(4): the address $SYNC_URL is not known here",
      ". (what it sets is not known), another request by curl (heartbeat",
      "3 policies of 4 jobs; 4 left out",
    ],
  },
  "tricky.crontab": {
    code: 1,
    services: ["main https://sync.example.com SYNC_TOKEN segment"],
    policies: ["run-1-2: main run 1,2, 0 1 * * * UTC, skip 3600s", "run-5: main run 5, 0 4 * * * UTC, skip 3600s"],
    said: [
      "tricky.crontab:2: not kept of the command: the variable TOKEN, -u (a bearer token signs in here: services.*.token), -L (a",
      "tricky.crontab:3: run(3): the repository $REPOSITORY is not known here: left out",
      "tricky.crontab:4: a call in python3 is not understood: left out",
      "tricky.crontab:6: run(@): the id of the sync job is not known here: left out",
      "2 policies of 5 jobs; 3 left out",
    ],
  },
  "variables.crontab": {
    code: 1,
    services: ["main https://sync.example.com SYNC_TOKEN parentheses"],
    policies: [
      "run-1-2: main run 1,2, 0 1 * * * UTC, skip 3600s",
      "run-3-4: main run 3,4, 0 2 * * * UTC, skip 3600s",
      "run-42: main run 42, 0 6 * * * UTC, skip 3600s",
    ],
    said: [
      "variables.crontab:6: run($ID): the id of the sync job is not known here: left out",
      "variables.crontab:7: run($ID): the id of the sync job is not known here: left out",
      "variables.crontab:8: run($ID): the id of the sync job is not known here: left out",
      "3 policies of 6 jobs; 3 left out",
    ],
  },
  "containers.yaml": {
    code: 1,
    services: ["main https://sync.example.com SYNC_TOKEN parentheses"],
    policies: ["one-each: main run 41,42, 0 1 * * * UTC, skip 600s"],
    said: [
      "CronJob one-each: run($(ID)): the id of the sync job is not known here: left out",
      "1 policy of 1 job; 1 left out",
    ],
  },
  "either-day.crontab": {
    code: 1,
    services: ["main https://sync.example.com SYNC_TOKEN segment"],
    policies: [
      "run-1: main run 1, by hand, skip 3600s",
      "run-2: main run 2, by hand, skip 3600s",
      "run-3: main run 3, 0 3 */2 * * UTC, skip 3600s",
      "run-4: main run 4, 0 5 1 * 1 UTC, skip 3600s",
    ],
    said: [
      "either-day.crontab:2: its schedule cannot be kept: cron starts it only when day of month and weekday both fit",
      "either-day.crontab:3: its schedule cannot be kept: cron",
      "4 policies of 4 jobs; 2 left out",
    ],
  },
  "comments.crontab": {
    code: 0,
    services: ["main https://sync.example.com SYNC_TOKEN segment"],
    policies: [
      "run-1: main run 1, 0 1 * * * UTC, skip 3600s",
      "run-3: main run 3, 0 2 * * * UTC, skip 3600s",
      "run-5: main run 5, 0 3 * * * UTC, skip 3600s",
    ],
    said: ["comments.crontab:3: not kept of the command: [, the header X-Note", "3 policies of 3 jobs"],
  },
  "two-services.crontab": {
    code: 0,
    services: ["main https://a.example.com A parentheses", "main-2 https://b.example.com B parentheses"],
    policies: [
      "run-hr-1: main/HR run 1, 0 1 * * * UTC, skip 3600s",
      "run-sales-2: main/SALES run 2, 0 1 * * * UTC, skip 3600s",
      "run-1-2: main-2 run 1,2, 0 2 * * * UTC, skip 3600s",
      "run-2: main-2 run 2, 0 3 * * * UTC, skip 3600s",
      "activate-1: main-2 activate 1, 0 3 * * * UTC, skip 3600s",
    ],
    said: ["service main-2: its calls take the token from the environment variable B and the environment variable B2"],
  },
};

describe("import of CronJobs and crontabs", () => {
  it("has an expectation for every sample", () => {
    expect(readdirSync(samples).sort()).toEqual([...Object.keys(expected), "chart.yaml"].sort());
  });

  it.each(Object.entries(expected))("keeps what it can and says the rest: %s", async (sample, { said, ...rest }) => {
    const { code, services, policies, err } = await imported(sample);
    expect({ code, services, policies }).toEqual(rest);
    for (const line of said) expect(err).toContain(line);
  });

  it("takes the zone of those that name none, and says no more that it guessed", async () => {
    const { policies, err } = await imported("wget.crontab", "--timezone", "America/Lima");
    expect(policies).toEqual([
      "run-8: main run 8, 0 4 1 * * America/Lima, skip 3600s",
      "run-9: main run 9, 6 4 1 * * America/Lima, skip 3600s",
    ]);
    expect(err).not.toContain("read as UTC");
  });

  it("finds services of --config by their addresses, and takes no other one for them", async () => {
    const config = join(folderForTest(), "services.yaml");
    const service = (url: string) => `{ baseUrl: "${url}", token: { env: TOKEN } }`;
    const services = `{ hr: ${service("https://b.example.com/")}, other: ${service("https://sync.example.com")} }`;
    const policy = "{ name: run-2, service: hr, run: { syncJobs: [9] } }";
    writeFileSync(config, `apiVersion: syncline/v1\nservices: ${services}\npolicies: [${policy}]\n`);
    const run = (...args: string[]) => runHere(["import", "--config", config, ...args], variables);
    const two = await run("--crontab", join(samples, "two-services.crontab"));
    expect(two.code).toBe(1);
    expect(two.err).toContain("two-services.crontab:2: run(1): no service of --config has the address https://a.ex");
    expect(two.out.match(/service: \w+/g)).toEqual(["service: hr", "service: hr", "service: hr"]);
    expect(two.out).not.toContain("baseUrl");
    // The name of a policy of these files is not given twice.
    expect(two.out.match(/name: \S+/g)).toEqual(["name: run-1-2", "name: run-2-2", "name: activate-1"]);
    // An address that stands in a variable is the service that the user names.
    const odd = await run("--service", "hr", "--crontab", join(samples, "odd.crontab"));
    expect(odd.err).toContain("odd.crontab:4: the address $SYNC_URL is not known here: taken as hr");
    expect(odd.out.match(/service: \w+/g)).toEqual([
      "service: other",
      "service: other",
      "service: hr",
      "service: other",
    ]);
  });

  it("says each note once on a terminal, where the file says it, too", async () => {
    const args = ["import", "--crontab", join(samples, "odd.crontab")];
    const [piped, shown] = [await runHere(args, variables), await runHere(args, variables, { columns: 80 })];
    const [sum = "", ...notes] = piped.err.split("\n").toReversed();
    expect(shown.err.replaceAll(/\n */g, " ")).toBe(sum);
    expect(notes.length).toBeGreaterThan(2);
    for (const note of notes) expect(shown.out).toContain(note.replace(/^\S+: /, ""));
  });

  it.each([
    [["--cron-jobs", join(samples, "chart.yaml")], "render a chart first: helm template"],
    [["--crontab", "/no/such/crontab"], "--crontab: /no/such/crontab cannot be read (ENOENT)"],
    [["--crontab", join(samples, "odd.crontab"), "--runs"], "--runs does nothing with --cron-jobs or --crontab"],
    [[], "say what to import"],
  ])("refuses %j and says what to do", async (args, message) => {
    const { code, err, out } = await runHere(["import", ...args], variables);
    expect([code, out, err]).toEqual([2, "", expect.stringContaining(message)]);
  });
});
