// The peer graphile-worker in a process of its own, on a private PostgreSQL: graphile.mjs
// SERVICE_URL CONCURRENCY. Started by starts.ts, where graphile-peer.ts finds both. It starts what
// the bare worker starts.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Logger, run } from "graphile-worker";
import pg from "pg";
import { bareStart } from "../bare-queue.ts";
import { answerParent } from "../child.ts";
import { postgresFolder } from "../graphile-peer.ts";

const [serviceUrl = "", concurrency = "20"] = process.argv.slice(2);
/** PostgreSQL refuses to run as root: then it runs as nobody. */
const owner = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
const folder = mkdtempSync(join(tmpdir(), "syncline-postgres-"));
if (owner.uid !== undefined) chownSync(folder, owner.uid, owner.gid);
const [bin, data] = [postgresFolder() ?? "", join(folder, "data")];
const made = spawnSync(join(bin, "initdb"), ["-D", data, "-U", "bench", "-A", "trust", "-E", "UTF8"], owner);
if (made.status !== 0) throw new Error(`initdb ended with ${made.status}: ${made.stderr}`);
const settings = ["-c", "listen_addresses=", "-c", "max_connections=50"];
const server = spawn(join(bin, "postgres"), ["-D", data, "-k", folder, ...settings], { ...owner, stdio: "ignore" });
const pool = new pg.Pool({ host: folder, user: "bench", database: "postgres", max: Number(concurrency) });
// An error of a query reaches its caller. Those of idle connections come when the server stops.
const ignore = () => {};
pool.on("error", ignore).on("connect", (connection) => connection.on("error", ignore));
await ready();

const send = bareStart(serviceUrl);
let done = 0;
const start = async ({ target }) => {
  await send(target);
  done += 1;
};
const worker = await run({
  pgPool: pool,
  concurrency: Number(concurrency),
  noHandleSignals: true,
  taskList: { start },
  logger: new Logger(() => (level, message) => {
    if (level === "error") process.stderr.write(`${message}\n`);
  }),
});

answerParent(
  {
    sent: () => ({ sent: 0 }),
    done: () => ({ done }),
    add: async ({ from, to }) => {
      const add =
        "SELECT graphile_worker.add_job('start', json_build_object('target', n)) FROM generate_series($1::int, $2::int) n";
      await pool.query(add, [from, to]);
      return {};
    },
  },
  async () => {
    await worker.stop();
    await pool.end();
    server.kill("SIGINT");
    await once(server, "exit");
    rmSync(folder, { recursive: true });
  },
);

async function ready() {
  for (let tries = 0; ; tries += 1) {
    try {
      return await pool.query("SELECT 1");
    } catch (error) {
      if (tries === 100) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}
