// What an API server says against an object beyond its schema: names, labels, things given twice.
// Follows the validation of Kubernetes as far as the chart's objects reach. Used by test/chart.
import type { KubeObject } from "./helm.ts";

interface Named {
  readonly name: string;
}

interface Container extends Named {
  readonly image?: string;
  readonly env?: readonly (Named & { readonly value?: unknown; readonly valueFrom?: object })[];
  readonly ports?: readonly { readonly containerPort: number }[];
  readonly volumeMounts?: readonly (Named & { readonly mountPath: string })[];
}

interface Pod {
  readonly containers: readonly Container[];
  readonly initContainers?: readonly Container[];
  readonly volumes?: readonly Named[];
  readonly imagePullSecrets?: readonly Named[];
  readonly serviceAccountName?: unknown;
  readonly priorityClassName?: unknown;
  readonly dnsPolicy?: string;
  readonly dnsConfig?: { readonly nameservers?: readonly string[] };
}

interface Spec {
  readonly selector?: { readonly matchLabels?: Readonly<Record<string, string>> };
  readonly strategy?: { readonly type?: string; readonly rollingUpdate?: object };
  readonly template?: { readonly metadata: Pick<KubeObject["metadata"], "labels" | "annotations">; readonly spec: Pod };
  readonly volumeClaimTemplates?: readonly { readonly metadata: Named }[];
  readonly egress?: readonly { readonly ports?: readonly { readonly port: number }[] }[];
}

const label = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const subdomain = new RegExp(`^(?=.{1,253}$)${label}(\\.${label})*$`);
const shortLabel = new RegExp(`^(?=.{1,63}$)${label}$`);
const serviceName = /^(?=.{1,63}$)[a-z]([-a-z0-9]*[a-z0-9])?$/;
const labelKey = new RegExp(`^(${label}(\\.${label})*/)?(?=[^/]{1,63}$)[A-Za-z0-9]([-\\w.]*[A-Za-z0-9])?$`);
const labelValue = /^(?=.{0,63}$)([A-Za-z0-9]([-\w.]*[A-Za-z0-9])?)?$/;
const variable = /^[-._a-zA-Z][-._a-zA-Z0-9]*$/;
const dataKey = /^(?!\.\.)(?!\.$)[-._a-zA-Z0-9]{1,253}$/;
const configMapBytesMax = 1_048_576;
/** A StatefulSet's pods carry its name, a dash and ten characters in a label. */
const statefulSetNameMax = 52;

/** What is wrong with an object; nothing when an API server would take it, as far as this looks. */
export function findAdmissionProblems(object: KubeObject): string[] {
  const spec = (object["spec"] ?? {}) as Spec & Pod;
  const pod = object.kind === "Pod" ? spec : spec.template?.spec;
  const claims = (spec.volumeClaimTemplates ?? []).map(({ metadata }) => metadata);
  const problems = [
    ...nameProblems(object),
    ...metadataProblems(object.metadata),
    ...metadataProblems(spec.template?.metadata ?? {}),
    ...(object.kind === "ConfigMap" ? dataProblems(object["data"] as Readonly<Record<string, unknown>>) : []),
    ...(spec.template === undefined ? [] : selectorProblems(spec)),
    ...(pod === undefined ? [] : podProblems({ ...pod, volumes: [...(pod.volumes ?? []), ...claims] })),
    ...(spec.egress ?? []).flatMap(({ ports = [] }) => ports.map(({ port }) => port)).flatMap(portProblems),
  ];
  return problems.map((problem) => `${object.kind} ${String(object.metadata.name)}: ${problem}`);
}

const unless = (good: boolean, problem: string) => (good ? [] : [problem]);
const fits = (pattern: RegExp, value: unknown) => typeof value === "string" && pattern.test(value);
const portProblems = (port: number) => unless(port >= 1 && port <= 65_535, `port ${port}`);

function nameProblems({ kind, metadata: { name, namespace } }: KubeObject): string[] {
  return [
    ...unless(fits(kind === "Service" ? serviceName : subdomain, name), "has a name that cannot be"),
    ...unless(kind !== "StatefulSet" || name.length <= statefulSetNameMax, "has a name too long for its pods"),
    ...unless(namespace === undefined || fits(shortLabel, namespace), `is in the namespace ${namespace}`),
  ];
}

function metadataProblems({ labels = {}, annotations = {} }: Partial<KubeObject["metadata"]>): string[] {
  const keys = [...Object.keys(labels), ...Object.keys(annotations)];
  return [
    ...keys.filter((key) => !labelKey.test(key)).map((key) => `has the label or annotation ${key}`),
    ...Object.entries(labels).flatMap(([key, value]) =>
      unless(fits(labelValue, value), `has the label ${key}=${value}`),
    ),
    ...Object.entries(annotations).flatMap(([key, value]) =>
      unless(typeof value === "string", `has the annotation ${key}=${value}`),
    ),
  ];
}

function dataProblems(data: Readonly<Record<string, unknown>>): string[] {
  const bytes = Object.values(data).reduce<number>((sum, text) => sum + Buffer.byteLength(String(text)), 0);
  return [
    ...unless(bytes <= configMapBytesMax, `holds ${bytes} bytes`),
    ...Object.entries(data).flatMap(([key, text]) =>
      unless(dataKey.test(key) && typeof text === "string", `holds ${key}`),
    ),
  ];
}

function selectorProblems({ selector, strategy, template }: Spec): string[] {
  const labels = template?.metadata.labels ?? {};
  const missed = Object.entries(selector?.matchLabels ?? {}).filter(([key, value]) => labels[key] !== value);
  return [
    ...missed.map(([key]) => `selects ${key}, which its pods do not have`),
    ...unless(strategy?.type !== "Recreate" || strategy.rollingUpdate === undefined, "recreates and rolls"),
  ];
}

function podProblems(pod: Pod): string[] {
  const containers = [...pod.containers, ...(pod.initContainers ?? [])];
  const { volumes = [], imagePullSecrets = [], serviceAccountName = "x", priorityClassName = "x" } = pod;
  const names = [serviceAccountName, priorityClassName, ...imagePullSecrets.map(({ name }) => name)];
  return [
    ...names.filter((name) => !fits(subdomain, name)).map((name) => `names ${String(name)}`),
    ...volumes.filter(({ name }) => !fits(shortLabel, name)).map(({ name }) => `has the volume ${name}`),
    ...twice(volumes.map(({ name }) => `volume ${name}`)),
    ...twice(containers.map(({ name }) => `container ${name}`)),
    ...unless(pod.dnsPolicy !== "None" || (pod.dnsConfig?.nameservers ?? []).length > 0, "knows no name server"),
    ...containers.flatMap((container) => containerProblems(container, new Set(volumes.map(({ name }) => name)))),
  ];
}

function containerProblems(container: Container, volumes: ReadonlySet<string>): string[] {
  const { name, image = "", env = [], ports = [], volumeMounts = [] } = container;
  return [
    ...unless(fits(shortLabel, name), `has the container ${name}`),
    ...unless(/^\S+$/.test(image) && /^[^A-Z]*$/.test(image.split("/").slice(1).join()), `has the image ${image}`),
    ...env.filter((one) => !fits(variable, one.name)).map((one) => `has the variable ${one.name}`),
    ...env.filter(({ value = "" }) => typeof value !== "string").map((one) => `has a value of ${one.name}, no text`),
    ...env.filter(({ value, valueFrom }) => value && valueFrom).map((one) => `has two values of ${one.name}`),
    ...twice(env.map((one) => `variable ${one.name}`)),
    ...ports.flatMap(({ containerPort }) => portProblems(containerPort)),
    ...volumeMounts.filter((mount) => !volumes.has(mount.name)).map((mount) => `mounts ${mount.name}, no volume`),
    ...twice(volumeMounts.map(({ mountPath }) => `mount at ${mountPath}`)),
  ];
}

function twice(names: readonly string[]): string[] {
  return names.filter((name, at) => names.indexOf(name) !== at).map((name) => `has the ${name} twice`);
}
