import { describe, expect, it } from "vitest";
import { policyLimits } from "../../src/config/rules/policy-limits.ts";
import { type KubeObject, render, type Values } from "../support/chart/helm.ts";
import { podSpecsOf } from "../support/chart/pod-specs.ts";
import { least } from "../support/chart/value-sets.ts";

const made = (values: Values) => render({ ...least, ...values });

async function one(values: Values, kind: string, name?: string): Promise<KubeObject & { readonly spec: unknown }> {
  const found = (await made(values)).filter(
    (object) => object.kind === kind && (name ?? object.metadata.name) === object.metadata.name,
  );
  expect(found).toHaveLength(1);
  return Object.assign({ spec: undefined }, found[0] ?? expect.fail());
}

async function pods(values: Values) {
  return (await made(values)).flatMap(podSpecsOf);
}

const redis = { url: "rediss://redis.data:6380", passwordSecret: { name: "pw" } };
const keda = { enabled: true, minReplicas: 3, keda: { prometheus: "http://prometheus:9090" } };

describe("Deployments", () => {
  it("are one with both roles, or two with one role each", async () => {
    const roles = async (split: boolean) =>
      (await pods({ split, tests: { enabled: false } })).map(({ spec }) =>
        spec.containers[0]?.args.filter((word) => word.startsWith("--roles")).join(),
      );
    expect(await roles(false)).toEqual(["--roles=scheduler,worker"]);
    expect(await roles(true)).toEqual(["--roles=scheduler", "--roles=worker"]);
  });

  it("put a new pod up before an old one goes", async () => {
    const { spec } = await one({}, "Deployment");
    expect(spec).toMatchObject({ replicas: 2, strategy: { rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } } });
  });

  it("leave the number of workers to the autoscaler, and never that of the schedulers", async () => {
    const values = { split: true, autoscaling: keda };
    expect((await one(values, "Deployment", "demo-syncline-worker")).spec).not.toHaveProperty("replicas");
    expect((await one(values, "Deployment", "demo-syncline-scheduler")).spec).toMatchObject({ replicas: 2 });
    expect((await one(values, "ScaledObject")).spec).toMatchObject({
      scaleTargetRef: { name: "demo-syncline-worker" },
      minReplicaCount: 3,
      triggers: [
        {
          metadata: {
            ignoreNullValues: "false",
            query:
              'sum(max by (service, queue) (syncline_queue_tasks{namespace="sync",job="demo-syncline",state="waiting"}))',
          },
        },
      ],
    });
  });

  it("get a grace period that is longer than the drain", async () => {
    const grace = async (values: Values) => (await pods(values))[0]?.spec.terminationGracePeriodSeconds;
    expect(await grace({})).toBe(40);
    expect(await grace({ drainSeconds: 100 })).toBe(115);
    expect(await grace({ drainSeconds: 100, terminationGracePeriodSeconds: 200 })).toBe(200);
  });
});

describe("policies and secrets", () => {
  it("are mounted as whole folders, so that changes arrive", async () => {
    const [pod] = await pods({ secrets: ["token", "a.b"] });
    const mounts = pod?.spec.containers[0]?.volumeMounts ?? [];
    expect(mounts.filter(({ subPath }) => subPath !== undefined)).toEqual([]);
    expect(mounts.map(({ mountPath }) => mountPath)).toEqual([
      "/etc/syncline/policies",
      "/run/secrets/syncline/token",
      "/run/secrets/syncline/a.b",
      "/tmp",
    ]);
  });

  it("keep the text of a policy file as it was, also braces and leading blanks", async () => {
    const text = '  a: "{{ .x }}"\n# é\n';
    const config = await one({ policies: { files: { "a.yaml": text } } }, "ConfigMap");
    expect(config["data"]).toEqual({ "a.yaml": text });
  });

  it("reach Redis's password and certificates as files, and no password as a variable", async () => {
    const tls = { caSecret: { name: "ca" }, clientSecret: { name: "client" } };
    for (const { spec } of await pods({ redis: { ...redis, tls } })) {
      expect(spec.containers[0]?.env).toEqual([
        { name: "REDIS_URL", value: "rediss://redis.data:6380" },
        { name: "REDIS_PASSWORD_FILE", value: "/run/secrets/redis/password" },
        { name: "REDIS_CA_FILE", value: "/run/secrets/redis/ca.crt" },
        { name: "REDIS_CERT_FILE", value: "/run/secrets/redis/tls.crt" },
        { name: "REDIS_KEY_FILE", value: "/run/secrets/redis/tls.key" },
        { name: "SYNCLINE_PREFIX", value: "{syncline.sync.demo}" },
        { name: "SYNCLINE_OWNER", value: "sync/demo" },
        { name: "SYNCLINE_OUTCOMES_KEPT", value: "1000" },
        { name: "SYNCLINE_OUTCOMES_FOR", value: "31d" },
        { name: "SYNCLINE_LOG_LEVEL", value: "info" },
      ]);
      expect(spec.volumes).toContainEqual({
        name: "redis",
        projected: {
          defaultMode: 0o440,
          sources: [
            { secret: { name: "pw", items: [{ key: "password", path: "password" }] } },
            { secret: { name: "ca", items: [{ key: "ca.crt", path: "ca.crt" }] } },
            {
              secret: {
                name: "client",
                items: [
                  { key: "tls.crt", path: "tls.crt" },
                  { key: "tls.key", path: "tls.key" },
                ],
              },
            },
          ],
        },
      });
    }
  });
});

describe("a set of policies for several ConfigMaps", () => {
  const line = `  - { name: contracts-of-a-certain-department-N, service: main, repository: HR, run: { syncJobs: [42] }, schedule: { every: 1h } }\n`;
  const manyFiles = (count: number, policiesOfFile: number) =>
    Object.fromEntries(
      Array.from({ length: count }, (_, at) => [
        `${String(at).padStart(3, "0")}.yaml`,
        `apiVersion: syncline/v1\npolicies:\n${line.repeat(policiesOfFile)}`,
      ]),
    );
  const layOut = async (files: Readonly<Record<string, string>>) => {
    const objects = await made({ policies: { files } });
    const configs = objects.filter(({ kind }) => kind === "ConfigMap") as unknown as {
      readonly metadata: { readonly name: string };
      readonly data: Readonly<Record<string, string>>;
    }[];
    const names = configs.map(({ metadata }) => metadata.name).toSorted();
    for (const { spec } of objects.flatMap(podSpecsOf))
      expect(spec.volumes?.find(({ name }) => name === "policies")).toEqual({
        name: "policies",
        projected: { sources: names.map((name) => ({ configMap: { name } })) },
      });
    return { names, configs, mounted: Object.assign({}, ...configs.map(({ data }) => data)) as Record<string, string> };
  };

  it("of 10,000 are all there, in one folder, with the marks of a whole set", async () => {
    const files = manyFiles(10, 1_000);
    const { names, configs, mounted } = await layOut(files);
    expect(names).toEqual(["demo-syncline-policies", "demo-syncline-policies-2"]);
    for (const { data } of configs) expect(Object.values(data).join("").length).toBeLessThan(1_048_576);
    const { ".part-1-of-2": one, ".part-2-of-2": two, ...rest } = mounted;
    expect(rest).toEqual(files);
    expect([one, one?.length]).toEqual([two, 64]);
    const other = await layOut({ ...files, "009.yaml": "apiVersion: syncline/v1\n" });
    expect(other.mounted[".part-1-of-2"] ?? other.mounted[".part-1-of-1"]).not.toBe(one);
  });

  it("of which each is as large as Syncline reads lie three by three", async () => {
    const files = Object.fromEntries(
      ["a", "b", "c", "d"].map((name) => [`${name}.yaml`, name.repeat(policyLimits.fileBytesMax)]),
    );
    const { configs } = await layOut(files);
    expect(configs.map(({ data }) => Object.keys(data))).toEqual([
      ["a.yaml", "b.yaml", "c.yaml", ".part-1-of-2"],
      ["d.yaml", ".part-2-of-2"],
    ]);
  });
});

describe("the prefix", () => {
  const prefixOf = async (release: string, namespace: string) => {
    const found = (await render(least, { release, namespace })).flatMap(podSpecsOf);
    const prefixes = found.map(
      ({ spec }) => spec.containers[0]?.env?.find(({ name }) => name === "SYNCLINE_PREFIX")?.value ?? "",
    );
    expect(new Set(prefixes).size).toBe(1);
    return prefixes[0] ?? "";
  };

  it("is one of each release's own, also where names join alike or are cut", async () => {
    const long = "a".repeat(52);
    const names = [
      ["c", "a-b"],
      ["b-c", "a"],
      ["b.c", "a"],
      [`${long}1`, "ns"],
      [`${long}2`, "ns"],
      [`${long}1`, "n".repeat(63)],
    ] as const;
    const prefixes: string[] = [];
    for (const [release, namespace] of names) prefixes.push(await prefixOf(release, namespace));
    expect(prefixes.slice(0, 3)).toEqual(["{syncline.a-b.c}", "{syncline.a.b-c}", "{syncline.a.b.c}"]);
    expect(new Set(prefixes).size).toBe(names.length);
    // What `--prefix` takes.
    for (const prefix of prefixes) expect(prefix).toMatch(/^(?=.{1,64}$)\{[\w.-]+\}$/);
  });

  it("is the one that was said, in the pods and in the test", async () => {
    for (const { spec } of await pods({ redis: { ...redis, prefix: "{team-a}" } }))
      expect(spec.containers[0]?.env).toContainEqual({ name: "SYNCLINE_PREFIX", value: "{team-a}" });
  });
});

describe("the role web", () => {
  it("answers while proxies hear of its end, and no other role waits for that", async () => {
    const found = await pods({ web: { enabled: true, tokensSecret: { name: "tokens" } }, tests: { enabled: false } });
    const waits = found.map(({ spec: { containers } }) => [
      containers[0]?.args.find((word) => word.startsWith("--roles")),
      JSON.stringify(containers[0]).includes("preStop"),
    ]);
    expect(waits).toEqual([
      ["--roles=scheduler,worker", false],
      ["--roles=web", true],
    ]);
  });
});

describe("probes", () => {
  it("ask for life and readiness, and each can be set and left out", async () => {
    const container = async (probes: object) => (await pods({ probes }))[0]?.spec.containers[0];
    expect(await container({})).toMatchObject({
      startupProbe: { httpGet: { path: "/livez" }, periodSeconds: 2, timeoutSeconds: 5, failureThreshold: 60 },
      livenessProbe: { httpGet: { path: "/livez" }, periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 3 },
      readinessProbe: { httpGet: { path: "/readyz" }, periodSeconds: 5, timeoutSeconds: 3, failureThreshold: 2 },
    });
    const changed = await container({ liveness: { initialDelaySeconds: 9 }, readiness: { enabled: false } });
    expect(changed).toMatchObject({ livenessProbe: { initialDelaySeconds: 9, periodSeconds: 10 } });
    expect(changed).not.toHaveProperty("readinessProbe");
  });
});

describe("sinks", () => {
  const file = (path: string) => ({ "a.yaml": `sinks: { log: { file: { path: ${path} } } }` });

  it("get a writable volume in those pods that deliver, and in the one that tries them", async () => {
    const found = await pods({ split: true, sinks: { volume: { kind: "claim", claimName: "notices" } } });
    const mounted = found.map(({ where, spec }) => [
      where,
      spec.containers[0]?.volumeMounts.filter(({ name }) => name === "sinks"),
      spec.volumes?.filter(({ name }) => name === "sinks"),
    ]);
    const mount = [{ name: "sinks", mountPath: "/var/log/syncline" }];
    const volume = [{ name: "sinks", persistentVolumeClaim: { claimName: "notices" } }];
    expect(mounted).toEqual([
      ["Deployment demo-syncline-scheduler", [], []],
      ["Deployment demo-syncline-worker", mount, volume],
      ["Pod demo-syncline-doctor", mount, volume],
    ]);
    const [pod] = await pods({ sinks: { volume: { kind: "emptyDir", sizeLimit: "1Gi" } } });
    expect(pod?.spec.volumes).toContainEqual({ name: "sinks", emptyDir: { sizeLimit: "1Gi" } });
  });

  it("may write below that volume, to /tmp and to further volumes", async () => {
    const volume = { kind: "emptyDir", mountPath: "/srv" };
    const extra = {
      extraVolumes: [{ name: "more", emptyDir: {} }],
      extraVolumeMounts: [{ name: "more", mountPath: "/more" }],
    };
    for (const path of ["/srv/a.jsonl", "/tmp/a.jsonl", "/more/a/b.jsonl", `"$\{SOMEWHERE}"`])
      expect((await pods({ policies: { files: file(path) }, sinks: { volume }, ...extra })).length).toBe(2);
  });

  it("get addresses out of secrets as variables, in the pods and in the test", async () => {
    const urls = [{ name: "CHAT_URL", secret: "hooks", key: "chat" }];
    for (const { spec } of await pods({ sinks: { urls } }))
      expect(spec.containers[0]?.env).toContainEqual({
        name: "CHAT_URL",
        valueFrom: { secretKeyRef: { name: "hooks", key: "chat" } },
      });
  });
});

describe("selectors", () => {
  it("find Syncline's pods and neither Redis nor the test", async () => {
    const objects = await made({ redis: { url: "", embedded: { enabled: true } } });
    const selects = (name: string) => {
      const service =
        objects.find(({ kind, metadata }) => kind === "Service" && metadata.name === name) ?? expect.fail();
      const { selector } = service["spec"] as { selector: Record<string, string> };
      const fits = (labels: Readonly<Record<string, string>>) =>
        Object.entries(selector).every(([key, value]) => labels[key] === value);
      return objects.flatMap(podSpecsOf).flatMap(({ where, labels }) => (fits(labels) ? [where] : []));
    };
    expect(selects("demo-syncline")).toEqual(["Deployment demo-syncline"]);
    expect(selects("demo-syncline-redis")).toEqual(["StatefulSet demo-syncline-redis"]);
  });
});

describe("the network policy", () => {
  const ports = async (values: Values) => {
    const { spec } = await one({ networkPolicy: { enabled: true }, ...values }, "NetworkPolicy", "demo-syncline");
    const { egress } = spec as { egress: { ports: { port: number }[] }[] };
    return egress.map((rule) => rule.ports.map(({ port }) => port));
  };

  it("opens names, Redis and services, with the ports that Redis's address names", async () => {
    expect(await ports({})).toEqual([[53, 53, 5353, 5353], [6379], [443]]);
    expect(await ports({ redis })).toEqual([[53, 53, 5353, 5353], [6380], [443]]);
    expect(await ports({ redis: { url: "redis+sentinel://a,b:26380/main" } })).toEqual([
      [53, 53, 5353, 5353],
      [26379, 26380, 6379],
      [443],
    ]);
    expect(await ports({ redis: { url: "redis+cluster://u:p@a:7000,b:7001" } })).toEqual([
      [53, 53, 5353, 5353],
      [7000, 7001],
      [443],
    ]);
  });

  it("opens receivers of outcomes when they are named", async () => {
    const networkPolicy = { enabled: true, sinksTo: [{ ipBlock: { cidr: "10.0.0.0/8" } }], sinkPorts: [9443] };
    expect(await ports({ networkPolicy })).toEqual([[53, 53, 5353, 5353], [6379], [443], [9443]]);
  });
});

describe("metrics", () => {
  it("keep Syncline's own label service, and leave out alerts by name", async () => {
    const metrics = { serviceMonitor: { enabled: true }, prometheusRule: { enabled: true } };
    const monitor = await one({ metrics }, "ServiceMonitor");
    expect(monitor.spec).toMatchObject({
      endpoints: [{ port: "health", path: "/metrics", relabelings: [{ action: "labeldrop", regex: "service" }] }],
    });
    const alerts = (rule: KubeObject) =>
      (rule["spec"] as { groups: { rules: { alert?: string }[] }[] }).groups.flatMap(({ rules }) =>
        rules.flatMap(({ alert }) => alert ?? []),
      );
    const all = alerts(await one({ metrics }, "PrometheusRule"));
    const [first = expect.fail("no alerts")] = all;
    const extraGroups = [{ name: "own", rules: [{ alert: "Own", expr: "vector(1)" }] }];
    const fewer = { prometheusRule: { enabled: true, disabled: [first], extraGroups } };
    expect(alerts(await one({ metrics: fewer }, "PrometheusRule"))).toEqual([...all.slice(1), "Own"]);
  });

  it("carry the dashboard as it is, for Grafana's sidecar", async () => {
    const config = await one({ metrics: { dashboard: { enabled: true } } }, "ConfigMap", "demo-syncline-dashboard");
    expect(config.metadata.labels).toMatchObject({ grafana_dashboard: "1" });
    const [text = ""] = Object.values(config["data"] as Record<string, string>);
    expect(JSON.parse(text)).toMatchObject({ title: expect.stringContaining("Syncline") });
  });
});

describe("helm test", () => {
  it("runs doctor with the policies, secrets and Redis of the pods", async () => {
    const values = { redis, secrets: ["token"] };
    const test = await one(values, "Pod");
    expect(test.metadata.annotations).toMatchObject({ "helm.sh/hook": "test" });
    const [worker, doctor] = (await pods(values)).map(({ spec }) => spec);
    expect(doctor?.containers[0]?.args).toEqual(["doctor", "--config=/etc/syncline/policies"]);
    expect([doctor?.volumes, doctor?.containers[0]?.env]).toEqual([worker?.volumes, worker?.containers[0]?.env]);
  });
});

describe("extras", () => {
  it("render further objects as templates", async () => {
    const extraObjects = [{ apiVersion: "v1", kind: "Secret", metadata: { name: "{{ .Release.Name }}-x" } }];
    expect((await one({ extraObjects }, "Secret")).metadata.name).toBe("demo-x");
  });
});
