// What the chart's README shows, tried out without a cluster: what `helm template` gives is run as
// the kubelet would, with a real Redis and the sandbox.
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { parse } from "yaml";
import { startSandbox } from "../../src/sandbox/sandbox.ts";
import { render, type Values } from "../support/chart/helm.ts";
import { podSpecsOf } from "../support/chart/pod-specs.ts";
import { runHere } from "../support/commands-here.ts";
import { Syncline, syncline } from "../support/processes.ts";
import { freePort, ownFolder, startServer, until } from "../support/redis-servers.ts";

/** For a machine several times as busy as ours, on which a process takes long to start. */
const withinMs = 60_000;

/** The values in the chart's README. */
function valuesOfReadme(): Values {
  const readme = readFileSync(resolve(import.meta.dirname, "../../helm/syncline/README.md"), "utf8");
  const [, text = expect.fail("README has no values.yaml")] = /```yaml\n(# values\.yaml\n[^`]*)```/.exec(readme) ?? [];
  return parse(text);
}

/**
 * Lays the files of a pod's volumes under `root`, as a kubelet would: ConfigMaps from the rendered
 * objects, secrets from `secrets`.
 */
function layFiles(root: string, files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    const file = join(root, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    chmodSync(file, 0o440);
  }
}

it("the chart README's values render pods that start the sync job and show it", async () => {
  const sandbox = await startSandbox({ repositories: ["HR"], jobs: 50, runMs: [100, 200] });
  onTestFinished(() => sandbox.stop());
  const redis = await startServer();
  const root = ownFolder();
  const port = await freePort();

  const webPort = await freePort();
  const web = { enabled: true, port: webPort, tokensSecret: { name: "web-tokens" } };
  const objects = await render({ ...valuesOfReadme(), health: { port }, web });
  const [pod, webPod] = objects.filter(({ kind }) => kind === "Deployment").flatMap(podSpecsOf);
  const [container = expect.fail("no container")] = pod?.spec.containers ?? [];
  const { data } = objects.find(({ kind }) => kind === "ConfigMap") as unknown as { data: Record<string, string> };
  const text = (data["contracts.yaml"] ?? expect.fail("no policies"))
    .replace("https://sync.example.com", sandbox.baseUrl)
    .replace('cron: "30 2 * * 1-5"', "every: 1s")
    .replace("/run/secrets", join(root, "run/secrets"));
  layFiles(root, {
    "etc/syncline/policies/contracts.yaml": text,
    "run/secrets/syncline/sync-token/token": sandbox.token,
  });
  expect(container.volumeMounts.map(({ mountPath }) => mountPath)).toContain("/run/secrets/syncline/sync-token");

  const variables = Object.fromEntries((container.env ?? []).map(({ name, value = "" }) => [name, value]));
  const args = container.args.map((word) => word.replace("/etc/syncline", join(root, "etc/syncline")));
  const serve = new Syncline(args, { ...variables, REDIS_URL: redis.url });
  onTestFinished(() => serve.kill("SIGKILL"));
  await serve.until(({ event }) => event === "serve.ready");
  const ready = await until(
    () => fetch(`http://127.0.0.1:${port}/readyz`),
    ({ status }) => status === 200,
    withinMs,
  );
  expect(await ready.json()).toMatchObject({ ready: true });
  await until(
    () => sandbox.ledger(),
    (entries) => entries.some(({ operation, key }) => operation === "RunSyncJob" && key === "42"),
    withinMs,
  );
  // As `kubectl exec` runs it: the pod's variables say which keys are this release's.
  const told = async (more: Readonly<Record<string, string>>) => {
    const { out } = await runHere(["history", "--json"], { ...variables, REDIS_URL: redis.url, ...more });
    return out.includes(`"contracts-nightly"`);
  };
  await until(
    () => told({}),
    (some) => some,
    withinMs,
  );
  expect(await told({ SYNCLINE_PREFIX: "{syncline.sync.other}" })).toBe(false);
  // The dashboard looks into the same Redis; its health has a port of its own here only.
  const { out: line, err: shown } = await syncline(["token", "ana"], {});
  const [token] = /syncline_\S+/.exec(shown) ?? [];
  layFiles(root, { "run/secrets/web/tokens": line });
  const webArgs = webPod?.spec.containers[0]?.args.map((word) =>
    word
      .replace("/etc/syncline", join(root, "etc/syncline"))
      .replace("/run/secrets", join(root, "run/secrets"))
      .replace(`--health-port=${port}`, "--health-port=0"),
  );
  const dashboard = new Syncline(webArgs ?? [], { ...variables, REDIS_URL: redis.url });
  onTestFinished(() => dashboard.kill("SIGKILL"));
  await dashboard.until(({ event }) => event === "serve.ready");
  const ask = async (headers: Readonly<Record<string, string>>) =>
    (await fetch(`http://127.0.0.1:${webPort}/api/v1/outcomes`, { headers })).status;
  expect([await ask({}), await ask({ authorization: `Bearer ${token}` })]).toEqual([401, 200]);
  serve.kill("SIGTERM");
  expect(await serve.ended()).toMatchObject({ code: 0 });
});
