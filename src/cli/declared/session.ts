// What `plan --state` and `apply` share: the declared objects of some policies, each with the service and the memory that a look at it needs.
import type { Policy, PolicySet } from "../../config/policy-set.ts";
import { systemClock } from "../../core/clock.ts";
import type { DeclaredObject } from "../../core/declared-object.ts";
import { showObject } from "../../core/declared-object.ts";
import { UsageError } from "../../core/errors.ts";
import { silentLog } from "../../core/event-log.ts";
import { type Look, lookAt } from "../../declared/look.ts";
import { MaskShelf } from "../../declared/mask-shelf.ts";
import type { LookParts } from "../../declared/ports.ts";
import { ServiceError, type SyncService } from "../../service/client.ts";
import { DeclaredMemory } from "../../store/declared-memory.ts";
import { openStore, type RedisTarget, type Store } from "../../store/redis.ts";
import type { CommandIo } from "../command-io.ts";
import type { CreateService } from "../doctor.ts";

/** One declared object and what a look at it needs. */
export interface DeclaredItem {
  readonly policy: Policy;
  readonly object: DeclaredObject;
  readonly parts: LookParts;
}

/** What one look came to; `error`: it could not be looked at. */
export type ItemLook = DeclaredItem & { readonly look: Look | undefined; readonly error: ServiceError | undefined };

/** What a session is opened with. */
export interface SessionOptions {
  readonly set: PolicySet;
  /** Names of policies; empty for all that declare something. */
  readonly names: readonly string[];
  readonly redis: RedisTarget;
  readonly io: CommandIo;
  readonly createService: CreateService;
  /** What was refused before counts no more. */
  readonly isForgetting: boolean;
}

/**
 * Opens Redis and the services, hands over the declared objects in the order of the files, and closes everything afterwards.
 * @throws UsageError when a named policy is not there or declares nothing; OutOfReachError without a Redis.
 */
export async function withDeclared(
  options: SessionOptions,
  use: (items: readonly DeclaredItem[], store: Store) => Promise<void>,
): Promise<void> {
  const { set, io, createService } = options;
  const policies = declaring(options);
  const store = await openStore(options.redis);
  const clients = new Map<string, SyncService>();
  const masks = new MaskShelf();
  const memory = new DeclaredMemory(store);
  const sinceMs = systemClock.monotonicMs();
  try {
    const forgetting = options.isForgetting ? { forgetBeforeMs: (await memory.nowMs()) + 1 } : {};
    const items = policies.flatMap((policy) => {
      const settings = set.services.get(policy.service);
      if (policy.action.kind !== "apply" || settings === undefined) return [];
      const { service: name, repository = null } = policy;
      const client = clients.get(name) ?? createService(settings, { variables: io.settings.variables, log: silentLog });
      clients.set(name, client);
      const owner = { service: name, repository };
      const parts = { owner, service: client, masks, memory, signal: io.signal, sinceMs, ...forgetting };
      return policy.action.objects.map((object) => ({ policy, object, parts }));
    });
    await use(items, store);
  } finally {
    for (const client of clients.values()) client.close();
    await store.close();
  }
}

/** Looks at every object, one after the other. Changes nothing. */
export async function lookAtAll(items: readonly DeclaredItem[], io: CommandIo): Promise<ItemLook[]> {
  const looks: ItemLook[] = [];
  for (const item of items) {
    io.progress?.(`${looks.length + 1} of ${items.length}: ${showObject(item.object)}`);
    try {
      looks.push({ ...item, look: await lookAt(item.object, item.parts, fresh), error: undefined });
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      looks.push({ ...item, look: undefined, error });
    }
  }
  io.progress?.("");
  return looks;
}

const fresh = { isFresh: false, isStale: false };

function declaring({ set, names }: Pick<SessionOptions, "set" | "names">): readonly Policy[] {
  const all = set.policies.filter(({ action }) => action.kind === "apply");
  for (const name of names) {
    if (all.some((policy) => policy.name === name)) continue;
    const known = all.map((policy) => policy.name).slice(0, 20);
    throw new UsageError(
      `there is no policy ${name} that declares anything (apply); there ${known.length === 1 ? "is" : "are"}: ${known.join(", ") || "none"}`,
    );
  }
  return names.length === 0 ? all : all.filter(({ name }) => names.includes(name));
}
