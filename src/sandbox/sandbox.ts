// A small, faithful implementation of the Synchronization Management Service for demos and tests:
// in memory, on node:http. Where the interface says "not shown", it makes its own choices, listed
// in docs/sandbox.md. Nothing else in Syncline may depend on them.
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { OutOfReachError, UsageError } from "../core/errors.ts";
import { toIso } from "../core/instant.ts";
import { chanceUuid, createChance, pickBy } from "./chance.ts";
import { replaceFaults, type SandboxContext, serveExchange } from "./exchange.ts";
import { type Fault, FaultPlan } from "./faults.ts";
import { Ledger, type LedgerEntry, type RequestCounts } from "./ledger.ts";
import { type SandboxOptions, type SandboxSettings, toSettings } from "./options.ts";
import { errorReply, sendWhole } from "./reply.ts";
import { advanceRuns, clearApprovals } from "./runs.ts";
import { createStore, type Store } from "./store.ts";

const docMaskNames = ["Contract", "Invoice", "Personnel file", "Contract appendix", "Offer", "Delivery note"] as const;

const areas = ["Contracts", "Invoices", "Personnel", "Projects", "Purchasing", "Quality", "Travel", "Board"] as const;

const people = ["Ada Berger", "Ben Koch", "Clara Hofer", "Auditors", "Administrators", "Everyone"] as const;

const activityEveryMs = 600_000;

/** A running sandbox. */
export interface Sandbox {
  /** Such as `http://127.0.0.1:43121`, with the base path. */
  readonly baseUrl: string;
  readonly token: string;
  /** Its settings, with defaults. */
  readonly settings: SandboxSettings;
  /** Every change so far, oldest first, whether or not its answer arrived. */
  ledger(): readonly LedgerEntry[];
  /** Requests by operation and status. */
  requests(): RequestCounts;
  /** Replaces the faults; counting starts anew. */
  setFaults(faults: readonly Fault[]): void;
  /** Removes all approvals, or those of one repository; runs that waited for them end. */
  clearApprovals(repository?: string): number;
  /** Closes the port and every connection. May be called twice. */
  stop(): Promise<void>;
}

/** Starts a sandbox; resolves when it listens. @throws UsageError for an option, port, address. */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const settings = toSettings(options);
  const stopping = new AbortController();
  const context: SandboxContext = {
    world: { settings, store: seedStore(settings, settings.clock.nowMs()) },
    ledger: new Ledger(),
    faults: new FaultPlan(settings.faults, createChance(settings.seed)),
    signal: stopping.signal,
    origin: "",
  };
  const server = createHttpServer(context);
  context.origin = await listen(server, settings);
  return {
    baseUrl: context.origin + settings.basePath,
    token: settings.token,
    settings,
    ledger: () => context.ledger.entries(),
    requests: () => context.ledger.requests(),
    setFaults: (faults) => replaceFaults(context, faults),
    clearApprovals: (repository) => {
      advanceRuns(context.world.store, settings, settings.clock.nowMs());
      return clearApprovals(context.world.store, repository);
    },
    stop: async () => {
      stopping.abort();
      if (!server.listening) return;
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function createHttpServer(context: SandboxContext): Server {
  const limits = { headersTimeout: 10_000, requestTimeout: 30_000, keepAliveTimeout: 65_000 };
  const server = createServer(limits, (request, response) => {
    serveExchange(context, request, response).catch(async (error: unknown) => {
      // A request that its caller aborted is no bug.
      if (request.destroyed && !request.complete) return;
      context.world.settings.onBug(error);
      await sendWhole(response, errorReply(500, "The sandbox has a bug."));
    });
  });
  server.maxConnections = 1_000;
  return server;
}

async function listen(server: Server, settings: SandboxSettings): Promise<string> {
  const { host, port } = settings;
  server.listen(port, host);
  try {
    await once(server, "listening");
  } catch (error) {
    throw toListenError(error, settings);
  }
  const address = server.address();
  if (address === null || typeof address === "string") throw new OutOfReachError("sandbox: no TCP address was given");
  const shown = address.family === "IPv6" ? `[${address.address}]` : address.address;
  return `http://${shown}:${address.port}`;
}

function toListenError(error: unknown, { host, port }: SandboxSettings): unknown {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "EADDRINUSE") return new UsageError(`sandbox: port ${port} on ${host} is in use; choose another, or 0`);
  if (code === "EACCES") return new UsageError(`sandbox: no permission for port ${port}; choose one above 1023`);
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND" || code === "EAI_AGAIN") {
    return new UsageError(`sandbox: "${host}" is no address of this machine; try 127.0.0.1`);
  }
  return error;
}

/** Builds the state for the settings; history counts back from `nowMs`. */
function seedStore(settings: SandboxSettings, nowMs: number): Store {
  const store = createStore();
  for (let syncJobId = 1; syncJobId <= settings.jobs; syncJobId += 1) addSyncJob(store, settings, syncJobId);
  settings.repositories.forEach((repository, index) => {
    addIdentities(store, repository, index);
  });
  addHistory(store, settings, nowMs);
  return store;
}

/** The repository key of a sync job: equal blocks of ids, in the order of the keys. */
function repositoryOfJob(settings: SandboxSettings, syncJobId: number): string {
  const index = Math.floor(((syncJobId - 1) * settings.repositories.length) / settings.jobs);
  return settings.repositories[index] ?? "";
}

function addSyncJob(store: Store, settings: SandboxSettings, syncJobId: number): void {
  const { seed } = settings;
  const chance = createChance(seed);
  const repository = repositoryOfJob(settings, syncJobId);
  const area = pickBy(areas, chance("area", syncJobId));
  store.syncJobs.set(syncJobId, { repository, entity: { syncJobId, name: `${area} ${syncJobId}` } });
  for (let index = 0; index < 3; index += 1) {
    const maskId = 3 * (syncJobId - 1) + index + 1;
    const type = index === 2 ? "FolderMask" : "DocMask";
    const name = index === 2 ? `${area} folder` : (docMaskNames[(2 * syncJobId + index) % docMaskNames.length] ?? "");
    const ecmMaskId = chanceUuid(seed, "mask", maskId);
    store.masks.set(maskId, { repository, entity: { maskId, name, ecmMaskId, type, syncJobId } });
  }
  for (const kind of ["driveTargets", "siteTargets"] as const) {
    const entity = {
      thirdSystemSyncTargetId: syncJobId,
      siteName: `${repository} ${area}`,
      siteId: chanceUuid(seed, kind, "site", syncJobId),
      folderName: "Incoming",
      folderId: chanceUuid(seed, kind, "folder", syncJobId),
    };
    store[kind].set(syncJobId, { repository, entity });
  }
  store.triggers.set(syncJobId, { repository, entity: { triggerId: syncJobId, isActive: syncJobId % 3 === 0 } });
  for (let index = 0; index < 2; index += 1) {
    const entity = {
      authAccountActivityEntityId: 2 * (syncJobId - 1) + index + 1,
      accountIdentifier: true,
      accountObjectId: chance("objectId", syncJobId, index) < 0.9,
    };
    store.authActivities.push({ repository, entity });
  }
}

function addIdentities(store: Store, repository: string, repositoryIndex: number): void {
  people.forEach((name, index) => {
    const number = repositoryIndex * people.length + index + 1;
    const entity = {
      id: `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`,
      idAsNumber: 900 + number,
      name,
      isAdministrator: name === "Administrators",
    };
    store.identities.push({ repository, entity });
  });
}

function addHistory(store: Store, settings: SandboxSettings, nowMs: number): void {
  const chance = createChance(settings.seed);
  for (let activityId = 1; activityId <= settings.activities; activityId += 1) {
    const syncJobId = ((activityId - 1) % settings.jobs) + 1;
    const repository = repositoryOfJob(settings, syncJobId);
    const startMs = nowMs - (settings.activities - activityId + 1) * activityEveryMs;
    const failed = syncJobId % 7 === 0 && chance("history-fails", activityId) < 1 / 3;
    const finishedAt = toIso(startMs + 1_000 + Math.floor(chance("history-takes", activityId) * 60_000));
    const itemsProcessed = failed ? 0 : Math.floor(chance("history-items", activityId) * 500);
    const state = failed ? "Failed" : "Finished";
    const entity = { activityId, syncJobId, state, startedAt: toIso(startMs), finishedAt, itemsProcessed } as const;
    store.activities.push({ repository, entity });
    // One past conflict for each job that leaves conflicts, from its first activity.
    if (syncJobId % 5 !== 0 || activityId > settings.jobs) continue;
    const conflictId = store.conflictIdNext++;
    const conflict = { conflictId, syncJobId, itemName: `Old draft ${syncJobId}.docx`, detectedAt: finishedAt };
    store.conflicts.push({ repository, entity: conflict });
  }
}
