// The operations about the installation: what needs a person, services, the policies in force.
// Listed by operations.ts.
import * as z from "zod";
import { toIso } from "../../core/instant.ts";
import { version } from "../../core/version.ts";
import { readAttention } from "../../queries/attention.ts";
import { showAddress, toAttentionAnswer } from "./answers.ts";
import { type Asked, type Operation, operation } from "./operation.ts";
import * as schemas from "./schemas.ts";

/** Attention, services and configuration. */
export const installationOperations: readonly Operation[] = [
  operation({
    path: "/attention",
    name: "listAttention",
    summary: "What needs a person now, the worst first",
    answer: z.object({ items: z.array(schemas.attentionSchema), counts: z.record(z.string(), z.int()) }),
    read: async ({ context, looks }) => {
      const { items, counts } = await looks.of("attention", context, readAttention);
      return { items: items.map(toAttentionAnswer), counts: Object.fromEntries(counts) };
    },
  }),
  operation({
    path: "/services",
    name: "listServices",
    summary: "The services: breaker, patience, requests under way, policies",
    answer: z.object({ items: z.array(schemas.serviceSchema) }),
    read: readServices,
  }),
  operation({
    path: "/config",
    name: "getConfig",
    summary: "Which policies are in force, and what each process runs",
    answer: schemas.configSchema,
    read: readConfig,
  }),
];

async function readServices({ context, looks }: Asked): Promise<unknown> {
  const { status } = await looks.of("attention", context, readAttention);
  const { set } = context;
  const items = status.services.map((one) => ({
    name: one.service,
    baseUrl: showAddress(set.services.get(one.service)?.baseUrl ?? ""),
    breaker: one.breaker,
    openSince: toIso(one.openSinceMs),
    nextProbe: toIso(one.nextProbeMs),
    failures: one.failures,
    lastFailure: one.lastFailure ?? null,
    throttledUntil: toIso(one.throttledUntilMs),
    inFlight: one.inFlight,
    policies: set.policies.filter(({ service }) => service === one.service).length,
  }));
  return { items };
}

async function readConfig({ context, looks }: Asked): Promise<unknown> {
  const { status } = await looks.of("attention", context, readAttention);
  const { contentHash: hash, files, policies, services } = context.set;
  const processes = status.config.replicas.map(({ sinceMs, rejected, where, roles, version: its, hash: runs }) => ({
    ...{ where, roles, version: its, hash: runs, since: toIso(sinceMs) ?? "" },
    rejected:
      rejected === null
        ? null
        : { since: toIso(rejected.sinceMs) ?? "", where: rejected.where, message: rejected.message },
  }));
  return { version, hash, files, policies: policies.length, services: [...services.keys()], processes };
}
