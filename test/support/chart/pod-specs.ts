// The pods that an object makes, whatever its kind. Used by test/chart.
import type { KubeObject } from "./helm.ts";
import type { PodSpec } from "./restricted.ts";

/** A container as the chart writes it, as far as tests look. */
interface ChartContainer {
  readonly name: string;
  readonly image: string;
  readonly args: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value?: string; readonly valueFrom?: object }[];
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string; readonly subPath?: string }[];
}

/** A pod's spec as the chart writes it. */
interface ChartPodSpec extends PodSpec {
  readonly containers: readonly ChartContainer[];
  readonly terminationGracePeriodSeconds?: number;
  readonly priorityClassName?: string;
}

/** One pod and where it comes from. */
export interface FoundPod {
  readonly where: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly spec: ChartPodSpec;
}

interface PodTemplate {
  readonly metadata: { readonly labels: Readonly<Record<string, string>> };
  readonly spec: ChartPodSpec;
}

/** None for what is neither a pod nor has a template of one. */
export function podSpecsOf(object: KubeObject): FoundPod[] {
  const where = `${object.kind} ${object.metadata.name}`;
  if (object.kind === "Pod")
    return [{ where, labels: object.metadata.labels ?? {}, spec: object["spec"] as ChartPodSpec }];
  const template = (object["spec"] as { template?: PodTemplate } | undefined)?.template;
  return template?.spec === undefined ? [] : [{ where, labels: template.metadata.labels, spec: template.spec }];
}
