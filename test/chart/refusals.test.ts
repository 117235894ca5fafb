import { describe, expect, it } from "vitest";
import { policyLimits } from "../../src/config/rules/policy-limits.ts";
import { template, type Values } from "../support/chart/helm.ts";
import { least } from "../support/chart/value-sets.ts";

const keda = { enabled: true, keda: { prometheus: "http://prometheus:9090" } };

const writesTo = (path: string) => ({ files: { "a.yaml": `sinks: { log: { file: { path: ${path} } } }` } });

/**
 * What is wrong, the values, and words that the message must hold: the place, and what may stand
 * there.
 */
const wrong: readonly (readonly [string, Values, readonly string[]])[] = [
  ["a mistyped key", { replica: 3 }, ["additional properties 'replica' not allowed"]],
  ["a mistyped key below", { networkPolicy: { enable: true } }, ["/networkPolicy", "'enable' not allowed"]],
  ["no replicas", { replicas: 0 }, ["/replicas", "minimum: got 0, want 1"]],
  ["a number as text", { replicas: "two" }, ["/replicas", "got string, want integer"]],
  ["no scheduler", { scheduler: { replicas: 0 } }, ["/scheduler/replicas", "minimum: got 0, want 1"]],
  [
    "workers scaled to zero",
    { autoscaling: { minReplicas: 0 } },
    ["/autoscaling/minReplicas", "minimum: got 0, want 1"],
  ],
  ["an unknown autoscaler", { autoscaling: { kind: "magic" } }, ["/autoscaling/kind", "'keda', 'hpa'"]],
  ["an unknown log level", { log: { level: "loud" } }, ["/log/level", "'debug', 'info', 'warn', 'error'"]],
  ["a digest that is none", { image: { digest: "sha256:abc" } }, ["/image/digest", "does not match pattern"]],
  ["an address of Redis that is none", { redis: { url: "http://redis" } }, ["/redis/url", "does not match pattern"]],
  [
    "a policy file that is no YAML by name",
    { policies: { files: { "a.txt": "x" } } },
    ['policies.files: "a.txt" cannot be a policy file', "the ending .yaml, .yml or .ics"],
  ],
  [
    "certificates for a Redis without TLS",
    { redis: { url: "redis://redis", tls: { caSecret: { name: "ca" } } } },
    ["redis.tls names certificates", "begin redis.url with rediss"],
  ],
  ["a secret whose name cannot be", { secrets: ["My Secret"] }, ["/secrets/0", "does not match pattern"]],
  ["the same secret twice", { secrets: ["a", "a"] }, ["/secrets", "items at 0 and 1 are equal"]],
  ["a port below 1024", { health: { port: 80 } }, ["/health/port", "minimum: got 80, want 1,024"]],
  [
    "the user root",
    { podSecurityContext: { runAsUser: 0 } },
    ["/podSecurityContext/runAsUser", "minimum: got 0, want 1"],
  ],
  [
    "memory that is no quantity",
    { resources: { limits: { memory: "lots" } } },
    ["/resources/limits/memory", "does not match pattern"],
  ],
  ["a volume for sinks of no known kind", { sinks: { volume: { kind: "disk" } } }, ["/sinks/volume/kind", "'claim'"]],
  [
    "a place for sinks that is no path",
    { sinks: { volume: { mountPath: "var/log" } } },
    ["/sinks/volume/mountPath", "does not match pattern"],
  ],
  [
    "an address that is not out of a secret",
    { sinks: { urls: [{ name: "CHAT_URL", value: "https://chat.example.com" }] } },
    ["/sinks/urls/0", "missing properties 'secret', 'key'"],
  ],
  [
    "a dashboard with an unknown kind of Service",
    { web: { service: { type: "Open" } } },
    ["/web/service/type", "'NodePort'"],
  ],
  // What only the templates can tell.
  ["a dashboard for everyone", { web: { enabled: true } }, ["web.tokensSecret.name or web.authSecret.name is needed"]],
  [
    "a dashboard at the port of health",
    { web: { enabled: true, port: 9464, tokensSecret: { name: "a" } } },
    ["web.port and health.port are both 9464"],
  ],
  [
    "an Ingress without a host",
    { web: { enabled: true, tokensSecret: { name: "a" }, ingress: { enabled: true } } },
    ["web.ingress.host is needed"],
  ],
  [
    "a route without a Gateway",
    { web: { enabled: true, tokensSecret: { name: "a" }, httpRoute: { enabled: true } } },
    ["web.httpRoute.parentRefs is needed"],
  ],
  ["an Ingress to nothing", { web: { ingress: { enabled: true, host: "a.example" } } }, ["but web.enabled is false"]],
  [
    "a file sink without a place to write to",
    { policies: writesTo("/var/log/syncline/notices.jsonl") },
    ["a.yaml, sink log writes to /var/log/syncline/notices.jsonl", "set sinks.volume.kind to emptyDir or claim"],
  ],
  [
    "a file sink beside its volume",
    { sinks: { volume: { kind: "emptyDir" } }, policies: writesTo("/var/log/syncline/../other.jsonl") },
    ["a.yaml, sink log writes to", "sinks.volume.mountPath, which is /var/log/syncline"],
  ],
  [
    "a claim without a name",
    { sinks: { volume: { kind: "claim" } } },
    ["sinks.volume.claimName is needed: the PersistentVolumeClaim"],
  ],
  [
    "an address in a variable of the chart's own",
    { sinks: { urls: [{ name: "REDIS_URL", secret: "a", key: "b" }] } },
    ["sinks.urls sets REDIS_URL"],
  ],
  [
    "a label that a selector uses",
    { podLabels: { "app.kubernetes.io/name": "x" } },
    ["podLabels sets app.kubernetes.io/name"],
  ],
  [
    "a common label that the chart sets",
    { commonLabels: { "helm.sh/chart": "x" } },
    ["commonLabels sets helm.sh/chart"],
  ],
  [
    "a password as a variable",
    { extraEnv: [{ name: "REDIS_PASSWORD", value: "x" }] },
    ["extraEnv sets REDIS_PASSWORD", "keep passwords in files"],
  ],
  ["no policies", { policies: {} }, ["policies.files or policies.existingConfigMaps is needed"]],
  ["policies twice", { policies: { files: { "a.yaml": "x" }, existingConfigMaps: ["b"] } }, ["are both set: set one"]],
  ["no Redis", { redis: {} }, ["redis.url or redis.existingSecret.name is needed"]],
  ["two Redis", { redis: { url: "redis://a", embedded: { enabled: true } } }, ["there can be one Redis only"]],
  [
    "a grace period below the drain",
    { drainSeconds: 60, terminationGracePeriodSeconds: 60 },
    ["terminationGracePeriodSeconds is 60", "= 75"],
  ],
  ["autoscaling of undivided pods", { autoscaling: keda }, ["only workers are scaled, so set split=true"]],
  [
    "least above most",
    { split: true, autoscaling: { ...keda, minReplicas: 20 } },
    ["autoscaling.minReplicas is 20", "which is 10"],
  ],
  [
    "KEDA without Prometheus",
    { split: true, autoscaling: { enabled: true } },
    ["autoscaling.keda.prometheus is needed"],
  ],
  [
    "metrics that are given up later than they are read again",
    { metrics: { serviceMonitor: { enabled: true, interval: "5s" } } },
    ["metrics.serviceMonitor.scrapeTimeout is 10s", "metrics.serviceMonitor.interval, which is 5s"],
  ],
  [
    "a policy file that Syncline would not read",
    { policies: { files: { "a.yaml": "x".repeat(policyLimits.fileBytesMax + 1) } } },
    [`policies.files: a.yaml holds ${policyLimits.fileBytesMax + 1} bytes`, "split it into several files"],
  ],
  [
    "more policy files than Syncline reads",
    {
      policies: {
        files: Object.fromEntries(Array.from({ length: policyLimits.filesMax + 1 }, (_, at) => [`${at}.yaml`, "x"])),
      },
    },
    [`policies.files holds ${policyLimits.filesMax + 1} files`],
  ],
];

describe("the chart refuses", () => {
  it.each(wrong)("%s, and says where", async (_what, values, words) => {
    const { code, out, err } = await template({ ...least, ...values });
    expect([code, out]).toEqual([1, ""]);
    for (const word of words) expect(err).toContain(word);
  });
});

it("takes a calendar that is larger than a policy file may be", async () => {
  const files = { "a.yaml": "x", "holidays.ics": "x".repeat(policyLimits.fileBytesMax + 1) };
  expect(await template({ ...least, policies: { files } })).toMatchObject({ code: 0 });
});
