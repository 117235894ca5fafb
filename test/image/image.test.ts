import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GenericContainer, Network, type StartedNetwork, type StartedTestContainer, Wait } from "testcontainers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildImage, docker, dockerOrThrow, removeStarted, runDetached, whyNoDocker } from "../support/docker.ts";
import { until } from "../support/redis-servers.ts";

const image = "syncline:test";
const packagesMax = 80;
const megabytesMax = 160;
const graceSeconds = 40;
const why = await whyNoDocker();
if (why !== undefined) process.stderr.write(`The image is not tested: ${why}\n`);

const policies = `apiVersion: syncline/v1
services:
  main:
    baseUrl: http://sandbox:4711
    token: { file: /run/secrets/syncline/sync-token/token }
    mapping:
      activity: { id: item.activityId, syncJobId: item.syncJobId, finished: 'item.state in ["Finished", "Failed"]', succeeded: item.state == "Finished" }
sinks:
  log: { file: { path: /var/log/syncline/notices.jsonl } }
policies:
  - { name: often, service: main, repository: HR, run: { syncJobs: [1, 2, 3] }, schedule: { every: 2s }, overlap: allow, follow: { until: settled, deadline: 30s }, notify: [{ sink: log, on: [every] }] }
`;

interface LedgerEntry {
  readonly idempotencyKey: string;
}

describe.skipIf(why !== undefined)("the image", () => {
  const started: StartedTestContainer[] = [];
  const folder = mkdtempSync(join(tmpdir(), "syncline-image-"));
  let network: StartedNetwork;
  let sandbox: StartedTestContainer;

  beforeAll(async () => {
    await buildImage(image);
    // A numeric user that is not ours must be able to read them.
    chmodSync(folder, 0o755);
    for (const [name, file, text] of [
      ["policies", "policies.yaml", policies],
      ["token", "token", "test-token"],
    ] as const) {
      mkdirSync(join(folder, name));
      writeFileSync(join(folder, name, file), text);
    }
    network = await new Network().start();
    const redis = new GenericContainer("redis:7-alpine")
      .withNetwork(network)
      .withNetworkAliases("redis")
      .withCommand(["redis-server", "--appendonly", "yes", "--maxmemory-policy", "noeviction"])
      .withWaitStrategy(Wait.forLogMessage("Ready to accept connections"));
    const service = new GenericContainer(image)
      .withNetwork(network)
      .withNetworkAliases("sandbox")
      .withExposedPorts(4711)
      .withCommand(["sandbox", "--host", "0.0.0.0", "--port", "4711", "--token", "test-token", "--run-time", "1s..3s"])
      .withWaitStrategy(Wait.forLogMessage(/4711/));
    started.push(...(await Promise.all([redis.start(), service.start()])));
    sandbox = started[1] ?? expect.fail("no sandbox");
  });
  afterAll(async () => {
    await removeStarted();
    await Promise.all(started.map((container) => container.stop()));
    await network?.stop();
    rmSync(folder, { recursive: true });
  });

  /**
   * As the chart runs it: nothing writable but /tmp and the volume of sinks, no capabilities, a
   * user that is only a number.
   */
  const serve = (user: string) =>
    runDetached([
      ...[
        "--read-only",
        "--tmpfs",
        "/tmp:size=64m",
        "--tmpfs",
        "/var/log/syncline:size=16m,mode=1777",
        "--cap-drop",
        "ALL",
        "--security-opt",
        "no-new-privileges",
      ],
      ...["--user", user, "--network", network.getName(), "-p", "127.0.0.1::9464"],
      ...[
        "-v",
        `${folder}/policies:/etc/syncline/policies:ro`,
        "-v",
        `${folder}/token:/run/secrets/syncline/sync-token:ro`,
      ],
      ...["-e", "REDIS_URL=redis://redis:6379", image, "serve", "--config=/etc/syncline/policies"],
      ...[
        "--roles=scheduler,worker",
        "--prefix={syncline}",
        "--drain=25s",
        "--take-over-after=10s",
        "--health-port=9464",
      ],
    ]);
  const readyz = async (id: string) => {
    const port = (await dockerOrThrow(["port", id, "9464/tcp"])).split(":").at(-1);
    return fetch(`http://127.0.0.1:${port}/readyz`).then(
      ({ status }) => status,
      () => 0,
    );
  };
  const ledger = async (): Promise<readonly LedgerEntry[]> => {
    const url = `http://${sandbox.getHost()}:${sandbox.getMappedPort(4711)}/_sandbox/ledger`;
    const answer = await fetch(url, { headers: { authorization: "Bearer test-token" } });
    const { value } = (await answer.json()) as { value: readonly LedgerEntry[] };
    return value;
  };
  const syncline = (id: string, ...words: string[]) => docker(["exec", id, "syncline", ...words]);

  it("is small, has no shell, runs node as a numeric user and shows its version", async () => {
    const [inspected] = JSON.parse(await dockerOrThrow(["image", "inspect", image]));
    const { version } = JSON.parse(readFileSync("package.json", "utf8"));
    expect(inspected.Config).toMatchObject({
      User: "10001:10001",
      Entrypoint: ["/usr/bin/node", "/app/dist/main.js"],
      Labels: { "org.opencontainers.image.version": version },
    });
    const megabytes = Math.round(inspected.Size / 1e6);
    process.stderr.write(`image size: ${megabytes} MB\n`);
    expect(megabytes).toBeLessThan(megabytesMax);
    expect((await docker(["run", "--rm", "--entrypoint", "/bin/sh", image, "-c", "true"])).code).not.toBe(0);
  });

  it("asks its own hosts before DNS", async () => {
    const find = 'require("node:dns").lookup("service.test", (_, address) => console.log(address))';
    const added = ["--add-host", "service.test:192.0.2.7", "--entrypoint", "/usr/bin/node"];
    expect(await dockerOrThrow(["run", "--rm", ...added, image, "-e", find])).toBe("192.0.2.7");
  });

  it("holds the packages that its bill of materials names, and few of them", async () => {
    const list = `
      const { globSync, readFileSync } = require("node:fs");
      const read = (file) => JSON.parse(readFileSync(file, "utf8"));
      const found = globSync("/app/node_modules/**/package.json")
        .filter((file) => /node_modules\\/(@[^/]+\\/)?[^/@]+\\/package\\.json$/.test(file))
        .map((file) => { const { name, version } = read(file); return name + "@" + version; });
      const billed = read("/app/sbom.cdx.json").components.map(({ name, version }) => name + "@" + version);
      console.log(JSON.stringify({ found: found.sort(), billed: billed.sort() }));`;
    const { found, billed } = JSON.parse(
      await dockerOrThrow(["run", "--rm", "--entrypoint", "/usr/bin/node", image, "-e", list]),
    );
    process.stderr.write(`packages in the image: ${found.length}\n`);
    expect(found).toEqual(billed);
    expect(found.length).toBeGreaterThan(30);
    expect(found.length).toBeLessThanOrEqual(packagesMax);
  });

  it("becomes ready, starts runs, and ends in its grace period on docker stop", async () => {
    const first = await serve("10001:10001");
    await until(
      () => readyz(first),
      (status) => status === 200,
    );
    await until(ledger, (entries) => entries.length >= 4);

    const stoppedAfter = performance.now();
    await dockerOrThrow(["stop", "-t", `${graceSeconds}`, first], (graceSeconds + 20) * 1000);
    const seconds = (performance.now() - stoppedAfter) / 1000;
    const state = JSON.parse(await dockerOrThrow(["inspect", "--format", "{{json .State}}", first]));
    expect([state.ExitCode, state.OOMKilled]).toEqual([0, false]);
    expect(seconds).toBeLessThan(graceSeconds);
    process.stderr.write(`docker stop took ${seconds.toFixed(1)} s\n`);
    const log = await dockerOrThrow(["logs", first]);
    expect(JSON.parse(log.split("\n").at(-1) ?? "")).toMatchObject({ event: "serve.stopped" });

    // What was under way is ended by the next one, here as a user that no file knows.
    const before = (await ledger()).map(({ idempotencyKey }) => idempotencyKey);
    expect(before).toEqual([...new Set(before)]);
    const second = await serve("54321:54321");
    const outcomes = async () => {
      const { code, out } = await syncline(second, "history", "--json", "--limit", "1000");
      const list: readonly { readonly taskId: string }[] = code === 0 ? JSON.parse(out) : [];
      return list.map(({ taskId }) => taskId);
    };
    const ended = await until(outcomes, (tasks) => before.every((task) => tasks.includes(task)));
    expect(ended).toEqual([...new Set(ended)]);
    const doctor = await syncline(second, "doctor", "--config", "/etc/syncline/policies", "--json");
    const { checks }: { checks: readonly { check: string }[] } = JSON.parse(doctor.out);
    expect(checks.filter(({ check }) => check === "sinks")).toMatchObject([
      { level: "ok", subject: "log", what: "/var/log/syncline/notices.jsonl can be written" },
    ]);
    const read = "process.stdout.write(require('node:fs').readFileSync('/var/log/syncline/notices.jsonl', 'utf8'))";
    const notices = () => docker(["exec", second, "/usr/bin/node", "-e", read]);
    const { out } = await until(notices, ({ code }) => code === 0);
    expect(JSON.parse(out.split("\n")[0] ?? "")).toMatchObject({ type: "syncline.outcome", subject: "often" });
    const audit = await syncline(second, "audit", "--config", "/etc/syncline/policies");
    expect([audit.code, audit.out]).toEqual([0, expect.stringContaining("often")]);
    await dockerOrThrow(["stop", "-t", `${graceSeconds}`, second]);
    const keys = (await ledger()).map(({ idempotencyKey }) => idempotencyKey);
    expect(keys).toEqual([...new Set(keys)]);
  });
});
