// A small, faithful implementation of the Synchronization Management Service for demos and tests, in memory, on node:http.
// Called by cli/sandbox.ts, the demo and tests. Where the interface says "not shown" it makes choices of its own:
// docs/sandbox.md lists them (S1…), and nothing else in Syncline may rest on them.
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { OutOfReachError, UsageError } from "../core/errors.ts";
import { createChance } from "./chance.ts";
import { replaceFaults } from "./control.ts";
import type { Desk } from "./desk.ts";
import { serveExchange } from "./exchange.ts";
import { FaultPlan } from "./fault-plan.ts";
import type { Fault } from "./faults.ts";
import { Ledger, type LedgerEntry, type RequestCounts } from "./ledger.ts";
import { type SandboxOptions, type SandboxSettings, toSettings } from "./options.ts";
import { errorReply } from "./reply.ts";
import { clearApprovals, settleRuns } from "./runs.ts";
import { seedStore } from "./seed-data.ts";
import { sendWhole } from "./send.ts";

/** A running sandbox. */
export interface Sandbox {
  /** Such as `http://127.0.0.1:43121`, with the base path. */
  readonly baseUrl: string;
  readonly token: string;
  /** The settings it runs with, defaults filled in. */
  readonly settings: SandboxSettings;
  /** Every change so far, oldest first, whether or not its answer arrived. */
  ledger(): readonly LedgerEntry[];
  /** Requests by operation and status. */
  requests(): RequestCounts;
  /** Replaces the faults; counting starts anew. */
  setFaults(faults: readonly Fault[]): void;
  /** Removes all approvals, or those of one repository; runs that waited for them end. Returns how many. */
  clearApprovals(repository?: string): number;
  /** Closes the port and every connection. Stopping twice is no error. */
  stop(): Promise<void>;
}

/**
 * Starts a sandbox; resolves when it listens.
 * @throws UsageError when an option is wrong, or the port or address cannot be used.
 */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const settings = toSettings(options);
  const stopping = new AbortController();
  const desk: Desk = {
    world: { settings, store: seedStore(settings, settings.clock.nowMs()) },
    ledger: new Ledger(),
    faults: new FaultPlan(settings.faults, createChance(settings.seed)),
    signal: stopping.signal,
    origin: "",
  };
  const server = createHttpServer(desk);
  desk.origin = await listen(server, settings);
  return {
    baseUrl: desk.origin + settings.basePath,
    token: settings.token,
    settings,
    ledger: () => desk.ledger.entries(),
    requests: () => desk.ledger.requests(),
    setFaults: (faults) => replaceFaults(desk, faults),
    clearApprovals: (repository) => {
      settleRuns(desk.world.store, settings, settings.clock.nowMs());
      return clearApprovals(desk.world.store, repository);
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

function createHttpServer(desk: Desk): Server {
  const limits = { headersTimeout: 10_000, requestTimeout: 30_000, keepAliveTimeout: 65_000 };
  const server = createServer(limits, (request, response) => {
    serveExchange(desk, request, response).catch(async (error: unknown) => {
      // A request that its caller tore down in the middle is no bug.
      if (request.destroyed && !request.complete) return;
      desk.world.settings.onBug(error);
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
