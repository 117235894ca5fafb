// Redis servers of a test's own: with TLS, with users, as Sentinels, as a cluster, with a proxy in
// between. All end with the test file.
import { type ChildProcess, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { generate } from "selfsigned";
import { findRedisServer, type PrivateRedis, startPrivateRedis } from "../../scripts/redis.mjs";
import { atFileEnd } from "./file-end.ts";

/** A folder that is removed at the end of the test file. */
export function ownFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "syncline-test-"));
  atFileEnd(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Starts a server; `args` are options of redis-server. */
export async function startServer(options: Parameters<typeof startPrivateRedis>[0] = {}): Promise<PrivateRedis> {
  const server = await startPrivateRedis(options);
  atFileEnd(() => server.stop());
  return server;
}

/**
 * A server whose every write is in a file at once, and which can forget the newest of them, as
 * after a loss of power.
 */
export interface ForgetfulServer {
  readonly url: string;
  readonly port: number;
  /** How much has been written so far. */
  written(): number;
  /**
   * Kills the server, cuts the file back to what had been written then, if given, and starts it
   * again on the same port.
   */
  restart(writtenThen?: number): Promise<void>;
}

/** Starts a server whose file can be cut back. */
export async function startForgetfulServer(): Promise<ForgetfulServer> {
  const dir = ownFolder();
  const args = ["--appendonly", "yes", "--appendfsync", "no"];
  let server = await startServer({ dir, port: await freePort(), args });
  const { port, url } = server;
  const file = join(dir, "appendonlydir", "appendonly.aof.1.incr.aof");
  return {
    url,
    port,
    written: () => statSync(file).size,
    restart: async (writtenThen) => {
      process.kill(server.pid, "SIGKILL");
      await server.stop();
      if (writtenThen !== undefined) truncateSync(file, writtenThen);
      server = await startServer({ dir, port, args });
    },
  };
}

/** A plain client that is closed at the end. */
export function clientOf(port: number): Redis {
  const client = new Redis({ port, host: "127.0.0.1", retryStrategy: (times) => Math.min(times * 20, 200) });
  client.on("error", () => {});
  atFileEnd(() => client.disconnect());
  return client;
}

/**
 * Asks again and again until the answer fits, at most so long. For how long this process stood
 * still does not count.
 */
export async function until<T>(ask: () => Promise<T> | T, fits: (answer: T) => boolean, withinMs = 60_000): Promise<T> {
  let endMs = performance.now() + withinMs;
  for (;;) {
    const answer = await ask();
    if (fits(answer)) return answer;
    if (performance.now() > endMs) throw new Error(`still ${JSON.stringify(answer)} after ${withinMs} ms`);
    const sleptAtMs = performance.now();
    await new Promise((resolve) => setTimeout(resolve, 50));
    endMs += Math.max(performance.now() - sleptAtMs - 100, 0);
  }
}

/**
 * Waits until a replica has all that its master has written. Its link stands up to a second before
 * the master sends it what is written from then on. Without a message a master that has written
 * nothing yet counts such a replica.
 */
export async function untilReplicated(masterPort: number): Promise<void> {
  const master = clientOf(masterPort);
  await master.publish("replicated", "");
  await until(
    () => master.wait(1, 1_000),
    (replicas) => replicas > 0,
  );
  master.disconnect();
}

/** Takes a port for this test file; false where another one has it, also of another run. */
function takePort(port: number): boolean {
  const folder = join(tmpdir(), `syncline-test-ports-${process.getuid?.() ?? 0}`);
  const file = join(folder, `${port}`);
  mkdirSync(folder, { recursive: true });
  try {
    writeFileSync(file, `${process.pid}`, { flag: "wx" });
  } catch {
    const owner = ownerOf(file);
    if (owner === undefined || isAlive(owner)) return false;
    writeFileSync(file, `${process.pid}`);
  }
  atFileEnd(() => rmSync(file, { force: true }));
  return true;
}

/** Which process took a port; undefined where it was given back meanwhile. */
function ownerOf(file: string): number | undefined {
  try {
    return Number(readFileSync(file, "utf8"));
  } catch {
    return undefined;
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/**
 * A port of 127.0.0.1 that was free a moment ago, below those that a system gives out: so only
 * who asks for it by its number takes it meanwhile.
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < 50; tries += 1) {
    const port = randomInt(10_000, 30_000);
    if (!takePort(port)) continue;
    const server = createServer().listen(port, "127.0.0.1");
    const isFree = await once(server, "listening").then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    server.close();
    await once(server, "close");
    return port;
  }
  throw new Error("no port between 10000 and 30000 is free");
}

/** Files of a certificate for 127.0.0.1 that is its own authority. */
export async function makeCertificate(): Promise<{ cert: string; key: string; certFile: string; keyFile: string }> {
  const { cert, private: key } = await generate([{ name: "commonName", value: "localhost" }], {
    keySize: 2_048,
    algorithm: "sha256",
    extensions: [
      { name: "basicConstraints", cA: true },
      {
        name: "subjectAltName",
        altNames: [
          { type: 2, value: "localhost" },
          { type: 7, ip: "127.0.0.1" },
        ],
      },
    ],
  });
  const folder = ownFolder();
  const [certFile, keyFile] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  writeFileSync(certFile, cert);
  writeFileSync(keyFile, key);
  return { cert, key, certFile, keyFile };
}

/**
 * Starts a Sentinel that watches a master under the name `main`; it acts eight seconds after the
 * master's death. A Sentinel that got no processor for two seconds does nothing for thirty (TILT),
 * and then only promotes a replica whose link has been down for no longer than ten times these
 * eight seconds: two such pauses fit in. It gives up a promotion that it does not hear of within
 * the time of a failover, and asks for news once a second.
 */
export async function startSentinel(masterPort: number, quorum: number): Promise<number> {
  const server = await findRedisServer();
  if (server.kind !== "binary") throw new Error("the tests with Sentinels need a redis-server");
  const port = await freePort();
  const folder = ownFolder();
  const file = join(folder, "sentinel.conf");
  const lines = [
    `port ${port}`,
    "bind 127.0.0.1",
    `dir ${folder}`,
    `sentinel monitor main 127.0.0.1 ${masterPort} ${quorum}`,
    "sentinel down-after-milliseconds main 8000",
    "sentinel failover-timeout main 10000",
  ];
  writeFileSync(file, `${lines.join("\n")}\n`);
  // Ends with this process, however that ends: its standard input closes then.
  const guard = 'exec 3<&0; { read -r _ <&3; kill -9 $$; } >/dev/null 2>&1 & exec "$@" </dev/null 3<&-';
  const child: ChildProcess = spawn("/bin/sh", ["-c", guard, "guard", server.command, file, "--sentinel"], {
    env: { ...process.env, ...server.env },
    stdio: ["pipe", "ignore", "ignore"],
  });
  atFileEnd(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  });
  const client = clientOf(port);
  await until(
    () => client.ping().catch(() => ""),
    (answer) => answer === "PONG",
  );
  return port;
}

/** A TCP proxy in front of a port. */
export interface TcpProxy {
  readonly port: number;
  /** From now on everything is swallowed without a word, as by a broken network. */
  swallow(): void;
  /** The same for the connections that stand; new ones work. */
  swallowStanding(): void;
  /** What stands goes on; what connects from now on is accepted and never heard. */
  swallowNew(): void;
  /** From now on what the port says is swallowed, and what it is told arrives. */
  swallowAnswers(): void;
  /** Ends all connections; new ones work, and go to this port if one is given. */
  heal(target?: number): void;
  /**
   * New connections go to this port; those that stand go on, as after a change of a name or of a
   * service's endpoints.
   */
  turn(target: number): void;
}

/** Starts a proxy. */
export async function startProxy(firstTarget: number): Promise<TcpProxy> {
  let swallowing: "all" | "answers" | undefined;
  let generation = 0;
  let isDeaf = false;
  let target = firstTarget;
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect({ port: target, host: "127.0.0.1" });
    const born = isDeaf ? -1 : generation;
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on("data", (bytes) => {
        const isSwallowed = swallowing === "all" || (swallowing === "answers" && from === far) || born < generation;
        if (!isSwallowed) to.write(bytes);
      });
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
      from.on("error", () => to.destroy());
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  atFileEnd(() => {
    cut();
    server.close();
  });
  return {
    port: (server.address() as AddressInfo).port,
    swallow: () => {
      swallowing = "all";
    },
    swallowAnswers: () => {
      swallowing = "answers";
    },
    swallowStanding: () => {
      generation += 1;
    },
    swallowNew: () => {
      isDeaf = true;
    },
    heal: (other = target) => {
      swallowing = undefined;
      isDeaf = false;
      target = other;
      cut();
    },
    turn: (other) => {
      target = other;
    },
  };
}
