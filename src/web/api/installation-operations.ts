// The operations about the installation: what is not well, services, the policies in force.
// Listed by operations.ts.
import * as z from "zod";
import { toIso } from "../../core/instant.ts";
import { version } from "../../core/version.ts";
import { readAttention } from "../../queries/attention.ts";
import { readTimeAhead } from "../answer-cache.ts";
import { notFound } from "../problem.ts";
import { toAttentionAnswer, toPlanAnswer, toServiceAnswer } from "./answers.ts";
import { type ApiOperation, hiddenWhenNarrowed, nameOf, type OperationRequest, operation } from "./operation.ts";
import * as schemas from "./schemas.ts";

/** Attention, services and configuration. */
export const installationOperations: readonly ApiOperation[] = [
  operation({
    path: "/attention",
    name: "listAttention",
    summary: "What is not well now; acknowledged last",
    isOfPolicies: true,
    answer: z.object({ items: z.array(schemas.attentionSchema), counts: z.record(z.string(), z.int()) }),
    read: async ({ context, cache }) => {
      const attention = await cache.of("attention", context, readAttention);
      const { items, counts } = attention;
      const toAnswer = () => ({ items: items.map(toAttentionAnswer), counts: Object.fromEntries(counts) });
      return cache.made(attention, "answer", toAnswer);
    },
  }),
  operation({
    path: "/plan",
    name: "planAhead",
    summary: "What is planned for the next hours: slots, which runs meet, about how many requests",
    isOfPolicies: true,
    query: z.strictObject({ hours: z.coerce.number().int().min(1).max(24).default(24) }),
    answer: schemas.planSchema,
    read: async ({ context, cache }, { hours }) => {
      const ahead = await readTimeAhead(cache, context, hours);
      return cache.made(ahead, "answer", () => toPlanAnswer(ahead));
    },
  }),
  operation({
    path: "/services",
    name: "listServices",
    summary: "The services: breaker, throttling, requests under way, policies",
    isOfPolicies: true,
    answer: z.object({ items: z.array(schemas.serviceSchema) }),
    read: async ({ context, cache }) => {
      const { services } = (await cache.of("attention", context, readAttention)).status;
      const toAnswer = () => ({ items: services.map((one) => toServiceAnswer(one, context.set)) });
      return cache.made(services, "answer", toAnswer);
    },
  }),
  operation({
    path: "/services/{name}",
    name: "getService",
    summary: "One service, and how its policies are, worst first",
    isOfPolicies: true,
    in: z.strictObject({ name: nameOf.service }),
    answer: schemas.serviceDetailSchema,
    read: async ({ context, cache }, { name }) => {
      const { status, lines } = await cache.of("attention", context, readAttention);
      const one = status.services.find(({ service }) => service === name);
      if (one === undefined) throw notFound(`there is no service ${name}`, "/api/v1/services lists them");
      const toAnswer = () => {
        const own = lines.filter(({ policy }) => policy.service === name);
        const policies = own.map(({ policy, health }) => ({ name: policy.name, health }));
        return { service: toServiceAnswer(one, context.set), policies };
      };
      return cache.made(one, "answer", toAnswer);
    },
  }),
  operation({
    path: "/sinks",
    name: "listSinks",
    summary: "What waits for the receivers of notices",
    answer: z.object({ items: z.array(schemas.sinkSchema).meta({ description: hiddenWhenNarrowed }) }),
    read: async ({ context, cache }) => {
      const { status } = await cache.of("attention", context, readAttention);
      const sinks = context.view.isNarrowed ? [] : status.sinks;
      return { items: sinks.map(({ oldestMs, ...sink }) => ({ ...sink, oldest: toIso(oldestMs) })) };
    },
  }),
  operation({
    path: "/config",
    name: "getConfig",
    summary: "Which policies are in force, and what each process runs",
    answer: schemas.configSchema,
    read: readConfig,
  }),
  operation({
    path: "/me",
    name: "getCaller",
    summary: "Who asks, and what that one may see",
    isOfPolicies: true,
    answer: schemas.callerSchema,
    read: async ({ caller: { name, scope, services, labels } }) => ({
      ...{ name, scope, services: services ? [...services] : null },
      labels: labels === undefined ? null : Object.fromEntries(labels.split(",").map((label) => label.split("="))),
    }),
  }),
];

async function readConfig({ context, cache }: OperationRequest): Promise<unknown> {
  const { status } = await cache.of("attention", context, readAttention);
  const { contentHash: hash, policies, services } = context.set;
  // What stands in files may name what a narrowed view does not hold.
  const { isNarrowed } = context.view;
  const files = isNarrowed ? [] : context.set.files;
  const processes = status.config.replicas.map(({ sinceMs, rejected, where, roles, version: its, hash: runs }) => ({
    ...{ where, roles, version: its, hash: runs, since: toIso(sinceMs) },
    rejected: rejected && {
      since: toIso(rejected.sinceMs),
      where: isNarrowed ? "" : rejected.where,
      message: isNarrowed ? "" : rejected.message,
    },
  }));
  return { version, hash, files, policies: policies.length, services: [...services.keys()], processes };
}
