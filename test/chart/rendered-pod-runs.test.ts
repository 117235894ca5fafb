// README's lines, tried out without a cluster: what `helm template` gives is run as the kubelet
// would, with a real Redis and the sandbox.
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { parse } from "yaml";
import { startSandbox } from "../../src/sandbox/sandbox.ts";
import { render, type Values } from "../support/chart/helm.ts";
import { podSpecsOf } from "../support/chart/pod-specs.ts";
import { runHere } from "../support/commands-here.ts";
import { Syncline } from "../support/processes.ts";
import { freePort, ownFolder, startServer, until } from "../support/redis-servers.ts";

/** The values in README's chapter. */
function valuesOfReadme(): Values {
  const readme = readFileSync(resolve(import.meta.dirname, "../../README.md"), "utf8");
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

it("README's values render a pod that becomes ready and starts the sync job", async () => {
  const sandbox = await startSandbox({ repositories: ["HR"], jobs: 50, runMs: [100, 200] });
  onTestFinished(() => sandbox.stop());
  const redis = await startServer();
  const root = ownFolder();
  const port = await freePort();

  const objects = await render({ ...valuesOfReadme(), health: { port } });
  const [pod] = objects.flatMap(podSpecsOf);
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
  );
  expect(await ready.json()).toMatchObject({ ready: true });
  await until(
    () => sandbox.ledger(),
    (entries) => entries.some(({ operation, key }) => operation === "RunSyncJob" && key === "42"),
  );
  // As `kubectl exec` runs it: the pod's variables say which keys are this release's.
  const told = async (more: Readonly<Record<string, string>>) => {
    const { out } = await runHere(["history", "--json"], { ...variables, REDIS_URL: redis.url, ...more });
    return out.includes(`"contracts"`);
  };
  await until(
    () => told({}),
    (some) => some,
  );
  expect(await told({ SYNCLINE_PREFIX: "{syncline.sync.other}" })).toBe(false);
  serve.kill("SIGTERM");
  expect(await serve.ended()).toMatchObject({ code: 0 });
});
