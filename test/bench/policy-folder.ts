// A folder of policy files as a large installation has it: for measurements of commands. Written by
// commands.ts and test/redis/cli/scale.long.test.ts. None of its policies is due within the hour.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A chain stands in one file: a multiple of 20. */
const perFile = 60;

/** How a folder differs from the usual one. */
interface FolderShape {
  readonly followsEach?: number;
  readonly services?: number;
}

/**
 * Writes so many policies of four services, or as told: a quarter hourly, the others by night in
 * Vienna; each 20th, or as told, follows the one before, each 10th has a deadline, each 50th shares
 * the sync job of the one before.
 */
export function writePolicyFolder(
  folder: string,
  count: number,
  nowMs: number,
  { followsEach = 20, services: servicesCount = 4 }: FolderShape = {},
): void {
  mkdirSync(folder, { recursive: true });
  const services = Array.from(
    { length: servicesCount },
    (_, index) => `  service-${index}: { baseUrl: "http://127.0.0.1:9", token: { env: BENCH_TOKEN } }`,
  );
  const head = "apiVersion: syncline/v1\n";
  writeFileSync(join(folder, "services.yaml"), `${head}services:\n${services.join("\n")}\n`);
  for (let from = 0; from < count; from += perFile) {
    const policies = Array.from({ length: Math.min(perFile, count - from) }, (_, at) =>
      policyText(from + at, nowMs, { followsEach, services: servicesCount }),
    );
    writeFileSync(join(folder, `region-${from}.yaml`), `${head}policies:\n${policies.join("")}`);
  }
}

/** The name of a policy. */
export function policyName(index: number): string {
  return `contracts-of-region-${String(index).padStart(5, "0")}`;
}

function policyText(index: number, nowMs: number, { followsEach, services }: Required<FolderShape>): string {
  const isShared = index % 50 === 49;
  return `  - name: ${policyName(index)}
    service: service-${Math.floor(index / 50) % services}
    repository: HR-${Math.floor(index / 200) % 25}
    labels: { team: team-${index % 40} }
    owner: data-platform
    run: { syncJobs: [${1_000 + (isShared ? index - 1 : index)}] }
${whenText(index, nowMs, followsEach)}    follow: { until: settled, deadline: 2h }
`;
}

function whenText(index: number, nowMs: number, followsEach: number): string {
  if (index % followsEach === followsEach - 1) return `    after: { policy: ${policyName(index - 1)}, within: 6h }\n`;
  const [nowHour, nowMinute] = [new Date(nowMs).getUTCHours(), new Date(nowMs).getUTCMinutes()];
  const expect = index % 10 === 2 ? "    expect: { within: 4h }\n" : "";
  // Hourly: half an hour from now; by night: some hours from now, whatever the zone.
  if (index % 4 === 0) return `    schedule: { cron: "${(nowMinute + 30 + (index % 20)) % 60} * * * *" }\n${expect}`;
  const hour = (nowHour + 5 + (index % 8)) % 24;
  return `    schedule: { cron: "${(index * 7) % 60} ${hour} * * *", timezone: Europe/Vienna }\n${expect}`;
}
