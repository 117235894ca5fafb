// Which model checks which kind of object. A kind that stands not here must not come out of the
// chart.
import { HTTPRoute } from "@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1/HTTPRoute";
import { ScaledObject } from "@kubernetes-models/keda/keda.sh/v1alpha1/ScaledObject";
import { PrometheusRule } from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PrometheusRule";
import { ServiceMonitor } from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/ServiceMonitor";
import { Deployment } from "kubernetes-models/apps/v1/Deployment";
import { StatefulSet } from "kubernetes-models/apps/v1/StatefulSet";
import { HorizontalPodAutoscaler } from "kubernetes-models/autoscaling/v2/HorizontalPodAutoscaler";
import { Ingress } from "kubernetes-models/networking.k8s.io/v1/Ingress";
import { NetworkPolicy } from "kubernetes-models/networking.k8s.io/v1/NetworkPolicy";
import { PodDisruptionBudget } from "kubernetes-models/policy/v1/PodDisruptionBudget";
import { ConfigMap } from "kubernetes-models/v1/ConfigMap";
import { Pod } from "kubernetes-models/v1/Pod";
import { Secret } from "kubernetes-models/v1/Secret";
import { Service } from "kubernetes-models/v1/Service";
import { ServiceAccount } from "kubernetes-models/v1/ServiceAccount";
import type { KubeObject } from "./helm.ts";

type Check = (object: object) => void;

const check =
  <Data>(Model: new (data: Data) => { validate(): void }): Check =>
  // The model itself judges whether the object is one of its kind.
  (object) =>
    Reflect.construct(Model, [object]).validate();

const core = "kubernetes-models";
const models: Readonly<Record<string, { readonly check: Check; readonly from: string }>> = {
  "apps/v1 Deployment": { check: check(Deployment), from: `${core}/apps/v1/Deployment` },
  "apps/v1 StatefulSet": { check: check(StatefulSet), from: `${core}/apps/v1/StatefulSet` },
  "autoscaling/v2 HorizontalPodAutoscaler": {
    check: check(HorizontalPodAutoscaler),
    from: `${core}/autoscaling/v2/HorizontalPodAutoscaler`,
  },
  "networking.k8s.io/v1 Ingress": { check: check(Ingress), from: `${core}/networking.k8s.io/v1/Ingress` },
  "gateway.networking.k8s.io/v1 HTTPRoute": {
    check: check(HTTPRoute),
    from: "@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1/HTTPRoute",
  },
  "networking.k8s.io/v1 NetworkPolicy": {
    check: check(NetworkPolicy),
    from: `${core}/networking.k8s.io/v1/NetworkPolicy`,
  },
  "policy/v1 PodDisruptionBudget": { check: check(PodDisruptionBudget), from: `${core}/policy/v1/PodDisruptionBudget` },
  "v1 ConfigMap": { check: check(ConfigMap), from: `${core}/v1/ConfigMap` },
  "v1 Pod": { check: check(Pod), from: `${core}/v1/Pod` },
  "v1 Secret": { check: check(Secret), from: `${core}/v1/Secret` },
  "v1 Service": { check: check(Service), from: `${core}/v1/Service` },
  "v1 ServiceAccount": { check: check(ServiceAccount), from: `${core}/v1/ServiceAccount` },
  "monitoring.coreos.com/v1 ServiceMonitor": {
    check: check(ServiceMonitor),
    from: "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/ServiceMonitor",
  },
  "monitoring.coreos.com/v1 PrometheusRule": {
    check: check(PrometheusRule),
    from: "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PrometheusRule",
  },
  "keda.sh/v1alpha1 ScaledObject": {
    check: check(ScaledObject),
    from: "@kubernetes-models/keda/keda.sh/v1alpha1/ScaledObject",
  },
};

/** The kinds that the chart may make. */
export const knownKinds: readonly string[] = Object.keys(models);

/** `apps/v1 Deployment` and the like. */
export function kindOf({ apiVersion, kind }: Pick<KubeObject, "apiVersion" | "kind">): string {
  return `${apiVersion} ${kind}`;
}

/**
 * Holds an object against its API's schema. Unknown fields pass: object-types.ts finds those.
 * @throws Error that says what is wrong.
 */
export function validateObject(object: KubeObject): void {
  modelOf(object).check(object);
}

/** From which module comes the type of this kind. */
export function typeModuleOf(object: KubeObject): string {
  return modelOf(object).from;
}

function modelOf(object: KubeObject) {
  const model = models[kindOf(object)];
  if (model === undefined) throw new Error(`there is no model for ${kindOf(object)}`);
  return model;
}
