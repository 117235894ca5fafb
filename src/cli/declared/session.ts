// Shared by `plan --state` and `apply`: the declared objects of some policies, with the service and
// memory to inspect them.
import type { InspectDependencies } from "../../apply/contracts.ts";
import { type Inspection, inspect } from "../../apply/inspect.ts";
import { MaskCache } from "../../apply/mask-cache.ts";
import type { Policy, PolicySet } from "../../config/policy-set.ts";
import { systemClock } from "../../core/clock.ts";
import { type DeclaredObject, showObject } from "../../core/declared-object.ts";
import { UsageError } from "../../core/errors.ts";
import { silentLog } from "../../core/event-log.ts";
import { someNames } from "../../core/plain-text.ts";
import { ServiceError, type SyncService } from "../../service/client.ts";
import { DeclaredMemory } from "../../store/declared-memory.ts";
import type { RedisTarget, Store } from "../../store/redis.ts";
import type { CommandIo } from "../command-io.ts";
import { withStore } from "../connections.ts";
import type { CreateService } from "../doctor/doctor-command.ts";
import { findPolicy } from "../shared-options.ts";

/** One declared object and what inspecting it needs. */
export interface DeclaredItem {
  readonly policy: Policy;
  readonly object: DeclaredObject;
  readonly parts: InspectDependencies;
}

/** The result of one inspection; `error`: it failed. */
export type InspectedItem = DeclaredItem & {
  readonly inspection: Inspection | undefined;
  readonly error: ServiceError | undefined;
};

/** What a session needs. `names`: of policies; empty for all that declare something. */
export interface SessionOptions {
  readonly set: PolicySet;
  readonly names: readonly string[];
  readonly redis: RedisTarget;
  readonly io: CommandIo;
  readonly createService: CreateService;
  /** Ignores earlier refusals. */
  readonly isForgetting: boolean;
}

/**
 * Runs `use` with the declared objects, in the order of the files.
 * @throws UsageError when a named policy does not exist or declares nothing.
 */
export async function withDeclared(
  options: SessionOptions,
  use: (items: readonly DeclaredItem[], store: Store) => Promise<void>,
): Promise<void> {
  const { set, io, createService } = options;
  const policies = declaring(options);
  await withStore(options.redis, async (store) => {
    const clients = new Map<string, SyncService>();
    const masks = new MaskCache();
    const memory = new DeclaredMemory(store);
    const sinceMs = systemClock.monotonicMs();
    try {
      const forgetting = options.isForgetting ? { forgetBeforeMs: (await memory.nowMs()) + 1 } : {};
      const items = policies.flatMap((policy) => {
        const settings = set.services.get(policy.service);
        if (policy.action.kind !== "apply" || settings === undefined) return [];
        const { service: name, repository = null } = policy;
        const client =
          clients.get(name) ?? createService(settings, { variables: io.settings.variables, log: silentLog });
        clients.set(name, client);
        const owner = { service: name, repository };
        const parts = { owner, service: client, masks, memory, signal: io.signal, sinceMs, ...forgetting };
        return policy.action.objects.map((object) => ({ policy, object, parts }));
      });
      await use(items, store);
    } finally {
      for (const client of clients.values()) client.close();
    }
  });
}

/** Inspects every object, one after the other. Changes nothing. */
export async function inspectAll(items: readonly DeclaredItem[], io: CommandIo): Promise<InspectedItem[]> {
  const inspected: InspectedItem[] = [];
  for (const item of items) {
    io.progress?.(`${inspected.length + 1} of ${items.length}: ${showObject(item.object)}`);
    try {
      inspected.push({ ...item, inspection: await inspect(item.object, item.parts, fresh), error: undefined });
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      inspected.push({ ...item, inspection: undefined, error });
    }
  }
  io.progress?.("");
  return inspected;
}

const fresh = { isFresh: false, isStale: false };

function declaring({ set, names }: Pick<SessionOptions, "set" | "names">): readonly Policy[] {
  const all = set.policies.filter(({ action }) => action.kind === "apply");
  for (const name of names) {
    if (all.some((policy) => policy.name === name)) continue;
    findPolicy(set, name);
    const known = all.map((policy) => policy.name);
    throw new UsageError(
      `policy ${name} declares nothing (apply); ${known.length === 0 ? "no policy does" : `those that do: ${someNames(known)}`}`,
    );
  }
  return names.length === 0 ? all : all.filter(({ name }) => names.includes(name));
}
