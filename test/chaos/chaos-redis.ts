// A Redis of a chaos' own, with everything that can befall one: killed, frozen, emptied, set back,
// taken over by its replica. Lives as long as its seed.
import { once } from "node:events";
import { mkdtemp, rm, stat, truncate } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Redis } from "ioredis";
import { type PrivateRedis, startPrivateRedis } from "../../scripts/redis.mjs";
import { freePort } from "../support/redis-servers.ts";
import type { RedisTrouble } from "./plan-starts.ts";

const fileEveryMs = 25;
const replicatedWithinMs = 60_000;
/**
 * Every write is in the file before it is answered: what was written at an instant is known to the
 * byte.
 */
const kept = ["--appendonly", "yes", "--appendfsync", "no"];

/** A running Redis that trouble can befall. */
export class ChaosRedis {
  /** Where replicas find it; the same after all that befalls it. */
  readonly url: string;
  readonly #folder: string;
  readonly #front: Front | undefined;
  readonly #sizes: { readonly atMs: number; readonly bytes: number }[] = [];
  #master: PrivateRedis;
  #replica: PrivateRedis | undefined;
  #watching: NodeJS.Timeout | undefined;

  private constructor(parts: { folder: string; master: PrivateRedis; replica?: PrivateRedis; front?: Front }) {
    this.#folder = parts.folder;
    this.#master = parts.master;
    this.#replica = parts.replica;
    this.#front = parts.front;
    this.url = parts.front === undefined ? parts.master.url : `redis://127.0.0.1:${parts.front.port}`;
  }

  /** Starts one; with a replica and one address for both, when that is to take over. */
  static async start(troubles: readonly RedisTrouble[]): Promise<ChaosRedis> {
    const folder = await mkdtemp(join(tmpdir(), "syncline-chaos-redis-"));
    // It is started again on this port, which no outgoing connection takes while it is dead.
    const master = await startPrivateRedis({ dir: folder, port: await freePort(), args: kept });
    if (troubles.some(({ action }) => action === "fail-over")) {
      const [replica, front] = [await startReplica(master.port), await openFront(master.port)];
      return new ChaosRedis({ folder, master, replica, front });
    }
    const redis = new ChaosRedis({ folder, master });
    if (troubles.some(({ action }) => action === "forget")) redis.#watchFile();
    return redis;
  }

  /** Carries one trouble out; resolves when Redis is there again. */
  async strike({ action, forMs }: RedisTrouble): Promise<void> {
    if (action === "flush") return this.#flush();
    if (action === "freeze") {
      process.kill(this.#master.pid, "SIGSTOP");
      await delay(forMs);
      process.kill(this.#master.pid, "SIGCONT");
      return;
    }
    const bytes = action === "forget" ? this.#writtenAgo(forMs) : undefined;
    process.kill(this.#master.pid, "SIGKILL");
    await this.#master.stop();
    if (action === "forget" && bytes !== undefined) await truncate(this.#file, bytes);
    else await delay(forMs);
    if (action === "fail-over") return this.#failOver();
    this.#master = await startPrivateRedis({ dir: this.#folder, port: this.#master.port, args: kept });
  }

  /** Takes everything away. */
  async stop(): Promise<void> {
    clearInterval(this.#watching);
    this.#front?.close();
    await this.#master.stop();
    await this.#replica?.stop();
    await rm(this.#folder, { recursive: true, force: true });
  }

  get #file(): string {
    return join(this.#folder, "appendonlydir", "appendonly.aof.1.incr.aof");
  }

  #watchFile(): void {
    this.#watching = setInterval(() => {
      const atMs = performance.now();
      stat(this.#file).then(
        ({ size }) => this.#sizes.push({ atMs, bytes: size }),
        () => {},
      );
    }, fileEveryMs);
  }

  #writtenAgo(ms: number): number | undefined {
    const thenMs = performance.now() - ms;
    return (this.#sizes.findLast(({ atMs }) => atMs <= thenMs) ?? this.#sizes[0])?.bytes;
  }

  async #flush(): Promise<void> {
    const client = new Redis(this.#master.url);
    await client.flushall();
    client.disconnect();
  }

  async #failOver(): Promise<void> {
    if (this.#replica === undefined) throw new Error("there is no replica to take over");
    const client = new Redis(this.#replica.url);
    await client.replicaof("NO", "ONE");
    client.disconnect();
    this.#front?.turnTo(this.#replica.port);
  }
}

/** One address in front of master and replica, as a Kubernetes service is. */
interface Front {
  readonly port: number;
  /** Ends all connections; new ones go to this port. */
  turnTo(port: number): void;
  close(): void;
}

async function openFront(first: number): Promise<Front> {
  let target = first;
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect({ port: target, host: "127.0.0.1" });
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on("error", () => to.destroy());
      from.once("close", () => {
        sockets.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("no TCP address was given");
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  const turnTo = (port: number) => {
    target = port;
    cut();
  };
  const close = () => {
    cut();
    server.close();
  };
  return { port: address.port, turnTo, close };
}

async function startReplica(port: number): Promise<PrivateRedis> {
  const replica = await startPrivateRedis({ args: ["--replicaof", "127.0.0.1", String(port)] });
  const client = new Redis({ port, host: "127.0.0.1" });
  try {
    // Its link stands before it is sent what is written from then on.
    for (const untilMs = performance.now() + replicatedWithinMs; performance.now() < untilMs; await delay(50))
      if ((await client.wait(1, 1_000)) > 0) return replica;
    throw new Error("a replica did not get its master's data");
  } finally {
    client.disconnect();
  }
}
