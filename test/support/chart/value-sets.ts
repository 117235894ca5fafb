// The values that the chart is tried with: every switch at least once, alone and together. Used by
// test/chart.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { chartFolder, type Values } from "./helm.ts";

const policies = { files: { "policies.yaml": 'apiVersion: syncline/v1\nservices: {}\n# "quoted" {{ braces }}\n' } };

/** The least that the chart takes. */
export const least: Values = { policies, redis: { url: "redis://redis.data:6379" } };

const restricted = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  runAsNonRoot: true,
  capabilities: { drop: ["ALL"] },
  seccompProfile: { type: "RuntimeDefault" },
};
const keda = { enabled: true, keda: { prometheus: "http://prometheus.monitoring:9090" } };
const peer = { ipBlock: { cidr: "10.1.0.0/16" } };
const apart = { namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "data" } } };

const own: Readonly<Record<string, Values>> = {
  "the least": {},
  "one replica": { replicas: 1 },
  split: { split: true },
  "split with resources of their own": {
    split: true,
    scheduler: { replicas: 3, resources: { requests: { cpu: 1, memory: "1Gi" } } },
    worker: { replicas: 9, resources: { limits: { memory: "2Gi", cpu: "1.5" } } },
  },
  "scaled by KEDA": { split: true, autoscaling: keda },
  "scaled by KEDA, all set": {
    split: true,
    autoscaling: {
      ...keda,
      minReplicas: 1,
      maxReplicas: 50,
      keda: { ...keda.keda, query: "sum(x)", fallbackReplicas: 7, pollingSeconds: 5, authenticationRef: "prometheus" },
    },
  },
  "scaled by an HPA": { split: true, autoscaling: { enabled: true, kind: "hpa" } },
  "scaled by an HPA with labels": {
    split: true,
    autoscaling: { enabled: true, kind: "hpa", hpa: { metric: "waiting", matchLabels: { release: "demo" } } },
  },
  "a dashboard": { web: { enabled: true, tokensSecret: { name: "web-tokens" } } },
  "a dashboard behind an Ingress, with walls": {
    split: true,
    web: {
      enabled: true,
      tokensSecret: { name: "web-tokens", key: "who" },
      authSecret: { name: "web-auth" },
      readOnly: true,
      resources: { limits: { memory: "256Mi" } },
      service: { type: "NodePort", annotations: { a: "b" } },
      ingress: {
        ...{ enabled: true, className: "nginx", host: "syncline.example.com", tlsSecret: "web-tls" },
        annotations: { "nginx.ingress.kubernetes.io/proxy-buffering": "off" },
      },
    },
    networkPolicy: { enabled: true, webFrom: [apart] },
    metrics: { serviceMonitor: { enabled: true } },
  },
  "a dashboard behind a Gateway": {
    web: {
      enabled: true,
      authSecret: { name: "web-auth" },
      httpRoute: {
        enabled: true,
        parentRefs: [{ name: "public", namespace: "gateways", sectionName: "https" }],
        hostnames: ["syncline.example.com"],
      },
    },
  },
  "an image by digest": { image: { repository: "sync/syncline", digest: `sha256:${"ab".repeat(32)}` } },
  "an image by tag, pulled with a secret": { image: { tag: "1.2.3" }, imagePullSecrets: [{ name: "pull-me" }] },
  "policies out of git": { policies: { files: null, existingConfigMaps: ["policies-from-git", "more-policies"] } },
  "many policy files": { policies: { files: { "a.yml": "  indented: first\n", "b.yaml": "x: |\n  y\n" } } },
  "secrets, also with dots": { secrets: ["token", "hooks.example.com"] },
  "Redis by a secret": { redis: { url: "", existingSecret: { name: "redis-url" } } },
  "Redis with password and TLS": {
    redis: {
      url: "rediss://redis.data:6380",
      passwordSecret: { name: "redis", key: "pass" },
      tls: { caSecret: { name: "redis-ca" }, clientSecret: { name: "redis-client" } },
    },
  },
  "Redis by Sentinels": {
    redis: { url: "redis+sentinel://a:26379,b,c/main", sentinelPasswordSecret: { name: "sentinel" } },
    networkPolicy: { enabled: true },
  },
  "Redis as a cluster": { redis: { url: "redis+cluster://a:7000,b:7001" }, networkPolicy: { enabled: true } },
  "Redis in the chart": { redis: { url: "", embedded: { enabled: true } } },
  "Redis in the chart, walled in": {
    redis: { url: "", embedded: { enabled: true, storageClassName: "fast", memoryMax: "1gb" } },
    networkPolicy: { enabled: true },
  },
  "a network policy": { networkPolicy: { enabled: true } },
  "a network policy with everything named": {
    networkPolicy: {
      enabled: true,
      metricsFrom: [apart],
      dnsTo: [apart],
      redisTo: [apart],
      redisPorts: [6380],
      servicesTo: [peer],
      servicePorts: [443, 8443],
      sinksTo: [peer],
      sinkPorts: [9443],
      extraEgress: [{ to: [peer], ports: [{ port: 3128, protocol: "TCP" }] }],
    },
  },
  "file sinks on an emptyDir": { split: true, sinks: { volume: { kind: "emptyDir", sizeLimit: "1Gi" } } },
  "file sinks on a claim, addresses out of secrets": {
    sinks: {
      urls: [{ name: "CHAT_URL", secret: "hooks", key: "chat.url" }],
      volume: { kind: "claim", claimName: "notices", mountPath: "/srv/notices" },
    },
    secrets: ["hook-signing"],
  },
  "all metrics": {
    metrics: {
      serviceMonitor: {
        enabled: true,
        interval: "1m",
        labels: { release: "prometheus" },
        relabelings: [{ action: "labeldrop", regex: "pod" }],
        metricRelabelings: [{ action: "drop", sourceLabels: ["__name__"], regex: "nodejs_.*" }],
      },
      prometheusRule: {
        enabled: true,
        labels: { role: "alerts" },
        extraGroups: [{ name: "own", rules: [{ alert: "Own", expr: "vector(1)", for: "5m" }] }],
      },
      dashboard: { enabled: true, namespace: "monitoring", annotations: { grafana_folder: "Sync" } },
    },
  },
  "no disruption budget, no test, no account": {
    podDisruptionBudget: { enabled: false },
    tests: { enabled: false },
    serviceAccount: { create: false, name: "shared" },
  },
  "placed by hand": {
    nodeSelector: { disk: "fast" },
    tolerations: [{ key: "batch", operator: "Exists", effect: "NoSchedule" }],
    affinity: {
      podAntiAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [
          { labelSelector: { matchLabels: { app: "x" } }, topologyKey: "kubernetes.io/hostname" },
        ],
      },
    },
    topologySpreadConstraints: [
      {
        maxSkew: 2,
        topologyKey: "rack",
        whenUnsatisfiable: "DoNotSchedule",
        labelSelector: { matchLabels: { a: "b" } },
      },
    ],
    priorityClassName: "high",
  },
  "labels and annotations": {
    commonLabels: { team: "documents" },
    podLabels: { mesh: "on" },
    podAnnotations: { "sidecar/inject": "true" },
    serviceAccount: { annotations: { "cloud/role": "reader" } },
  },
  "more of everything": {
    extraEnv: [
      { name: "NODE_OPTIONS", value: "--max-old-space-size=384" },
      { name: "SYNC_TOKEN", valueFrom: { secretKeyRef: { name: "token", key: "token" } } },
    ],
    extraEnvFrom: [{ configMapRef: { name: "more" } }],
    extraVolumes: [{ name: "ca", configMap: { name: "company-ca" } }],
    extraVolumeMounts: [{ name: "ca", mountPath: "/etc/company", readOnly: true }],
    extraObjects: [
      { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "{{ .Release.Name }}-more" }, data: { a: "b" } },
      'apiVersion: v1\nkind: Secret\nmetadata: { name: "text" }\nstringData: { a: b }\n',
    ],
  },
  "what other charts have, too": {
    extraContainers: [{ name: "proxy", image: "example.com/proxy:1", securityContext: restricted }],
    initContainers: [{ name: "wait", image: "example.com/wait:1", args: ["10"], securityContext: restricted }],
    strategy: { rollingUpdate: { maxUnavailable: "25%", maxSurge: 0 } },
    probes: { liveness: { initialDelaySeconds: 30, failureThreshold: 6 }, startup: { enabled: false } },
    dnsPolicy: "None",
    dnsConfig: { nameservers: ["192.0.2.53"], searches: ["example.com"], options: [{ name: "ndots", value: "2" }] },
    hostAliases: [{ ip: "192.0.2.1", hostnames: ["sync.example.com"] }],
    runtimeClassName: "gvisor",
    deploymentAnnotations: { "reloader/auto": "true" },
    serviceAnnotations: { "dns/name": "syncline.example.com" },
    podSecurityContext: { fsGroupChangePolicy: "OnRootMismatch", supplementalGroups: [2000], runAsUser: 1_000_680_000 },
    securityContext: { runAsNonRoot: true, seLinuxOptions: { level: "s0:c1,c2" } },
    outcomes: { kept: 100_000, keptFor: "400d" },
  },
  "pods that are recreated": { strategy: { type: "Recreate" } },
  "no numbers for users": { podSecurityContext: { runAsUser: null, runAsGroup: null, fsGroup: null } },
  "names that are too long": { fullnameOverride: "n".repeat(80), nameOverride: "m".repeat(80) },
  "long drains": { drainSeconds: 300, terminationGracePeriodSeconds: 400, takeOverAfterSeconds: 600 },
  "a sentinel setup with all there is": {
    split: true,
    autoscaling: keda,
    redis: { url: "rediss+sentinel://a,b,c/main/2", passwordSecret: { name: "redis" } },
    secrets: ["token"],
    networkPolicy: { enabled: true, servicesTo: [peer] },
    metrics: { serviceMonitor: { enabled: true }, prometheusRule: { enabled: true }, dashboard: { enabled: true } },
    priorityClassName: "high",
  },
};

/** What users of the chart are shown, and what its own CI takes. */
const shipped = readdirSync(join(chartFolder, "ci")).map((name) => {
  const values: Values = parse(readFileSync(join(chartFolder, "ci", name), "utf8"));
  return { name: `ci/${name}`, values };
});

/** All of them by name. */
export const valueSets: readonly { readonly name: string; readonly values: Values }[] = [
  ...Object.entries(own).map(([name, values]) => ({ name, values: { ...least, ...values } })),
  ...shipped,
];
