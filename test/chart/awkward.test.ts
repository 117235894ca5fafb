// Awkward values: of each the chart makes objects that Kubernetes takes, or refuses it and says
// where.
import { describe, expect, it } from "vitest";
import { findAdmissionProblems } from "../support/chart/admission.ts";
import {
  type KubeObject,
  parseObjects,
  type ReleaseName,
  render,
  template,
  type Values,
} from "../support/chart/helm.ts";
import { validateObject } from "../support/chart/object-models.ts";
import { findTypeProblems } from "../support/chart/object-types.ts";
import { least } from "../support/chart/value-sets.ts";

const embedded = { redis: { url: "", embedded: { enabled: true } } };
const allMetrics = {
  metrics: { serviceMonitor: { enabled: true }, prometheusRule: { enabled: true }, dashboard: { enabled: true } },
};
const files = (name: string, text = "a: 1\n") => ({ policies: { files: { [name]: text } } });
const emptyDir = { emptyDir: {} };
const own = { name: "helper", image: "busybox" };

/**
 * What is awkward, the values, what the refusal says if there must be one, and the release's name.
 */
const table: readonly (readonly [string, Values, (readonly string[] | undefined)?, ReleaseName?])[] = [
  // Names.
  ["a release of 53 characters", { ...embedded, ...allMetrics }, undefined, { release: `a${"b".repeat(52)}` }],
  ["a release of digits in a namespace of digits", allMetrics, undefined, { release: "a1", namespace: "123" }],
  ["a release that begins with a digit", {}, ["must begin with a letter: set fullnameOverride"], { release: "1e6" }],
  ["such a one with another name", { fullnameOverride: "a" }, undefined, { release: "1e6", namespace: "08" }],
  ["a release with dots", embedded, undefined, { release: "my.syncline.v2" }],
  ["a release that reads as a boolean", { nameOverride: "true" }, undefined, { release: "true", namespace: "null" }],
  ["a cut that ends in dashes", { fullnameOverride: `a${"-b".repeat(10)}${"-".repeat(40)}c` }],
  ["an override of 63 characters", { ...embedded, fullnameOverride: "n".repeat(63) }],
  ["an override that ends in a dash", { fullnameOverride: "a-" }, ["/fullnameOverride", "does not match pattern"]],
  ["an override in capitals", { nameOverride: "Sync_Line" }, ["/nameOverride", "does not match pattern"]],
  [
    "names of others that read as numbers",
    {
      secrets: ["08", "1e6"],
      priorityClassName: "1e3",
      imagePullSecrets: [{ name: "123" }],
      serviceAccount: { name: "1e1" },
    },
  ],
  ["a ConfigMap called null", { policies: { existingConfigMaps: ["null"] } }],
  ["a secret with two dots in a row", { secrets: ["a..b"] }, ["/secrets/0", "does not match pattern"]],
  [
    "a key of a secret that is a folder",
    { redis: { url: "redis://a", passwordSecret: { name: "a", key: ".." } } },
    ["/redis/passwordSecret/key", "does not match pattern"],
  ],
  ["a pull secret as a bare word", { imagePullSecrets: ["pull"] }, ["/imagePullSecrets/0", "want object"]],
  [
    "a namespace for the dashboard with a dot",
    { metrics: { dashboard: { enabled: true, namespace: "a.b" } } },
    ["/metrics/dashboard/namespace", "does not match pattern"],
  ],
  // Numbers and booleans where texts are wanted.
  [
    "an annotation that is a boolean",
    { podAnnotations: { "sidecar/inject": true } },
    ["/podAnnotations/sidecar~1inject", "got boolean, want string"],
  ],
  ["a label that is a number", { podLabels: { build: 1e6 } }, ["/podLabels/build", "got number, want string"]],
  [
    "texts that read as others",
    {
      podLabels: { a: "true", b: "1e6", c: "08", d: "null", e: "" },
      podAnnotations: { a: "true", b: "08", c: "~" },
      commonLabels: { yes: "no" },
      extraEnv: [
        { name: "A", value: "1e6" },
        { name: "B", value: "off" },
        { name: "ON", value: "" },
      ],
    },
  ],
  [
    "a variable that is a number",
    { extraEnv: [{ name: "A", value: 8 }] },
    ["/extraEnv/0/value", "got number, want string"],
  ],
  ["a variable from a secret called NULL", { sinks: { urls: [{ name: "NULL", secret: "123", key: "1" }] } }],
  ["a label with a blank", { podLabels: { team: "a b" } }, ["/podLabels/team", "does not match pattern"]],
  ["a label of two slashes", { commonLabels: { "a/b/c": "x" } }, ["/commonLabels", "'a/b/c' not allowed"]],
  [
    "an annotation with a blank in its name",
    { serviceAnnotations: { "a b": "x" } },
    ["/serviceAnnotations", "'a b' not allowed"],
  ],
  [
    "a node selector that is a boolean",
    { nodeSelector: { fast: true } },
    ["/nodeSelector/fast", "got boolean, want string"],
  ],
  [
    "a toleration of a boolean",
    { tolerations: [{ key: "a", value: true }] },
    ["/tolerations/0/value", "got boolean, want string"],
  ],
  ["a tag that is a number", { image: { tag: 1.1 } }, ["/image/tag", "got number, want string"]],
  ["a port as text", { health: { port: "9464" } }, ["/health/port", "got string, want integer"]],
  [
    "a port of Redis above 65535",
    { networkPolicy: { enabled: true }, redis: { url: "redis://a:99999" } },
    ["redis.url names port 99999"],
  ],
  ["replicas as text", { replicas: "2" }, ["/replicas", "got string, want integer"]],
  // Nothing, or nothing in it.
  [
    "everything that may be empty is null",
    {
      resources: null,
      commonLabels: null,
      podLabels: null,
      podAnnotations: null,
      nodeSelector: null,
      tolerations: null,
      affinity: null,
      topologySpreadConstraints: null,
      secrets: null,
      extraEnv: null,
      extraEnvFrom: null,
      extraVolumes: null,
      extraVolumeMounts: null,
      extraObjects: null,
      extraContainers: null,
      initContainers: null,
      imagePullSecrets: null,
      podSecurityContext: null,
      securityContext: null,
      priorityClassName: null,
      hostAliases: null,
      dnsConfig: null,
      dnsPolicy: null,
      image: { tag: null, digest: null },
      sinks: { urls: null },
      nameOverride: null,
      fullnameOverride: null,
    },
  ],
  [
    "everything that may be empty is",
    {
      resources: {},
      affinity: {},
      dnsConfig: {},
      podSecurityContext: {},
      securityContext: {},
      strategy: {},
      deploymentAnnotations: {},
    },
  ],
  ["an image that is null", { image: null }, ["missing property 'image'"]],
  ["replicas that are null", { replicas: null }, ["missing property 'replicas'"]],
  ["a port that is null", { health: { port: null } }, ["/health", "missing property 'port'"]],
  ["no repository", { image: { repository: "" } }, ["/image/repository", "does not match pattern"]],
  ["no name of a volume", { extraVolumes: [{ emptyDir: {} }] }, ["/extraVolumes/0", "missing property 'name'"]],
  [
    "a peer of nothing",
    { networkPolicy: { enabled: true, redisTo: [{}] } },
    ["/networkPolicy/redisTo/0", "minProperties"],
  ],
  ["an empty policy file", files("a.yaml", ""), ["/policies/files/a.yaml", "minLength"]],
  [
    "sinks and heartbeats that are texts, or empty",
    files(
      "a.yaml",
      "sinks: { a: { webhook: x }, b: { file: x }, c: { file: null }, d: x }\npolicies: [{ heartbeat: x }, { heartbeat: null }]\n",
    ),
  ],
  // Texts.
  [
    "unicode, quotes, templates and lines in texts",
    {
      ...files("a.yaml", '\ta: "{{ .Values }}" # ’ü\r\n---\n'),
      podAnnotations: { a: 'ü "x" {{ y }}\n\n  z: |\n', b: "- a: b", c: "#" },
      extraEnv: [{ name: "A", value: "{{ a }}\n'b'\n" }],
    },
  ],
  ["a policy file with a blank in its name", files("my file.yaml"), ['"my file.yaml" cannot be a policy file']],
  ["a policy file that is a folder above", files("..a.yaml"), ['"..a.yaml" cannot be a policy file']],
  ["a policy file that is hidden", files(".a.yaml"), ['".a.yaml" cannot be a policy file']],
  ["a policy file of odd letters", files("Ä.yaml"), ["cannot be a policy file"]],
  [
    "policy files with capitals, dots and digits",
    { policies: { files: { "A.B.yaml": "a: 1\n", "08.yml": "a: 1\n", "--.yaml": "a: 1\n" } } },
  ],
  ["a policy file with a name of 253 characters", files(`${"a".repeat(248)}.yaml`)],
  ["a policy file with a name of 254 characters", files(`${"a".repeat(249)}.yaml`), ["cannot be a policy file"]],
  ["an image with a blank", { image: { repository: "sync line" } }, ["/image/repository", "does not match pattern"]],
  [
    "an image in capitals",
    { image: { repository: "example.com/SyncLine" } },
    ["/image/repository", "does not match pattern"],
  ],
  ["an image with a port", { image: { repository: "example.com:5000/a__b/c-d" } }],
  [
    "a prefix that Syncline does not take",
    { redis: { url: "redis://a", prefix: "{a b}" } },
    ["/redis/prefix", "does not match pattern"],
  ],
  [
    "a prefix with one brace",
    { redis: { url: "redis://a", prefix: "{oops" } },
    ["/redis/prefix", "does not match pattern"],
  ],
  // Things twice, or against each other.
  [
    "a variable twice",
    {
      extraEnv: [
        { name: "A", value: "1" },
        { name: "A", value: "2" },
      ],
    },
    ["extraEnv sets A"],
  ],
  [
    "a variable with two values",
    { extraEnv: [{ name: "A", value: "1", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }] },
    ["gives A a value and a valueFrom"],
  ],
  [
    "a variable of the chart's own",
    { extraEnv: [{ name: "SYNCLINE_PREFIX", value: "x" }] },
    ["extraEnv sets SYNCLINE_PREFIX"],
  ],
  ["a volume of the chart's name", { extraVolumes: [{ name: "tmp", ...emptyDir }] }, ["the name tmp is taken"]],
  [
    "a volume of the web pod's name",
    { web: { enabled: true }, extraVolumes: [{ name: "web", ...emptyDir }] },
    ["the name web is taken"],
  ],
  [
    "a container that mounts what file sinks write",
    {
      sinks: { volume: { kind: "emptyDir" } },
      extraContainers: [{ ...own, volumeMounts: [{ name: "sinks", mountPath: "/more" }] }],
    },
    ["the container helper mounts sinks, which only pods with workers have"],
  ],
  [
    "a mount of no volume",
    { extraVolumeMounts: [{ name: "more", mountPath: "/more" }] },
    ["mounts more, which is no volume"],
  ],
  [
    "a mount over the policies",
    {
      extraVolumes: [{ name: "more", ...emptyDir }],
      extraVolumeMounts: [{ name: "more", mountPath: "/etc/syncline/policies" }],
    },
    ["where the policies lie"],
  ],
  [
    "a mount over temporary files, with a slash",
    {
      extraVolumes: [{ name: "more", ...emptyDir }],
      extraVolumeMounts: [{ name: "more", mountPath: "/tmp/" }],
    },
    ["extraVolumeMounts mounts something at /tmp, where temporary files lie"],
  ],
  [
    "a mount of a volume that only some pods have",
    { sinks: { volume: { kind: "emptyDir" } }, extraVolumeMounts: [{ name: "sinks", mountPath: "/more" }] },
    ["mounts sinks, which is no volume"],
  ],
  [
    "a container that mounts no volume",
    { initContainers: [{ ...own, volumeMounts: [{ name: "more", mountPath: "/more" }] }] },
    ["the container helper mounts more, which is no volume"],
  ],
  [
    "a volume of no kind",
    { extraVolumes: [{ name: "a", emptydir: {} }] },
    ["/extraVolumes/0", "'emptydir' not allowed"],
  ],
  [
    "variables from two places at once",
    { extraEnvFrom: [{ configMapRef: { name: "a" }, secretRef: { name: "b" } }] },
    ["/extraEnvFrom/0", "'oneOf' failed"],
  ],
  [
    "a seccomp profile without its file",
    { podSecurityContext: { seccompProfile: { type: "Localhost" } } },
    ["/podSecurityContext/seccompProfile", "missing property 'localhostProfile'"],
  ],
  [
    "a toleration of whatever value, with a value",
    { tolerations: [{ key: "a", operator: "Exists", value: "b" }] },
    ["/tolerations/0/value", "maxLength: got 1, want 0"],
  ],
  [
    "seconds of a toleration that evicts nothing",
    { tolerations: [{ key: "a", operator: "Exists", tolerationSeconds: 60 }] },
    ["/tolerations/0", "missing property 'effect'"],
  ],
  [
    "metrics read less often than the alerts look back",
    { metrics: { ...allMetrics.metrics, serviceMonitor: { enabled: true, interval: "3m" } } },
    ["metrics.serviceMonitor.interval is 3m", "at most 1m"],
  ],
  [
    "more than all pods at once",
    { strategy: { rollingUpdate: { maxUnavailable: "200%" } } },
    ["/strategy/rollingUpdate/maxUnavailable", "does not match pattern"],
  ],
  [
    "an address of a host that is none",
    { hostAliases: [{ ip: "1.2.3", hostnames: ["a"] }] },
    ["/hostAliases/0/ip", "is not valid ipv4"],
  ],
  [
    "a query that is no template",
    { split: true, autoscaling: { enabled: true, keda: { prometheus: "http://p", query: "{{" } } },
    ["unclosed action"],
  ],
  ["file sinks in /tmp", { sinks: { volume: { kind: "emptyDir", mountPath: "/tmp" } } }, ["where temporary files lie"]],
  [
    "a container of Syncline's name",
    { extraContainers: [{ ...own, name: "syncline" }] },
    ["the name syncline is taken"],
  ],
  [
    "a label of metrics that all objects have",
    { commonLabels: { release: "a" }, metrics: { serviceMonitor: { enabled: true, labels: { release: "b" } } } },
    ["metrics.serviceMonitor.labels and commonLabels both set release"],
  ],
  [
    "a label of metrics that selectors use",
    { metrics: { serviceMonitor: { labels: { "app.kubernetes.io/name": "b" } } } },
    ["metrics.serviceMonitor.labels sets app.kubernetes.io/name"],
  ],
  [
    "a limit below the request",
    { resources: { limits: { memory: "128Mi" } } },
    ["resources.requests.memory is 192Mi, more than resources.limits.memory, which is 128Mi"],
  ],
  [
    "resources of many kinds",
    {
      resources: {
        requests: { cpu: 0.5, memory: 1e9, "ephemeral-storage": "1e3" },
        limits: { cpu: "500m", memory: "1Gi", "ephemeral-storage": "1k", "vendor.example/gpu": 1 },
      },
    },
  ],
  ["a resource that is none", { resources: { limits: { mem: "1Gi" } } }, ["/resources/limits", "'mem' not allowed"]],
  ["pods recreated", { strategy: { type: "Recreate" } }],
  [
    "no pod ever replaced",
    { strategy: { rollingUpdate: { maxSurge: 0 } } },
    ["maxUnavailable and maxSurge are both 0"],
  ],
  ["a share of pods at once", { strategy: { rollingUpdate: { maxSurge: "25%", maxUnavailable: 1 } } }],
  ["no name servers", { dnsPolicy: "None" }, ["dnsConfig.nameservers is needed"]],
  [
    "no probes",
    { probes: { startup: { enabled: false }, liveness: { enabled: false }, readiness: { enabled: false } } },
  ],
  [
    "a storage of nothing",
    { redis: { url: "", embedded: { enabled: true, storage: "0Gi" } } },
    ["/redis/embedded/storage", "does not match pattern"],
  ],
];

const rows = table.map(([what, values, refusal, name]) => ({ what, values, refusal, name }));
const rendered: KubeObject[] = [];

describe("awkward values", () => {
  it.each(rows)("$what", async ({ values, refusal, name }) => {
    const { code, out, err } = await template({ ...least, ...values }, name);
    if (refusal !== undefined) {
      expect([code, out]).toEqual([1, ""]);
      for (const word of refusal) expect(err).toContain(word);
      return;
    }
    expect([code, err]).toEqual([0, ""]);
    const objects = parseObjects(out);
    expect(objects.flatMap(findAdmissionProblems)).toEqual([]);
    for (const object of objects) validateObject(object);
    rendered.push(...objects);
  });

  it.each(["true", "false"])("keep the container of a mesh from the pod of helm test: inject %s", async (inject) => {
    const podLabels = { mesh: "on", "sidecar.istio.io/inject": inject };
    const pod = (await render({ ...least, podLabels })).find(({ kind }) => kind === "Pod");
    expect(pod?.metadata.labels).toMatchObject(inject === "true" ? { mesh: "on" } : podLabels);
    expect(Object.values(pod?.metadata.labels ?? {})).not.toContain("true");
  });

  it("give no field that its API does not know, and no value of another type", async () => {
    expect(rendered.length).toBeGreaterThan(50);
    expect(await findTypeProblems(rendered, "awkward")).toEqual([]);
  });
});
