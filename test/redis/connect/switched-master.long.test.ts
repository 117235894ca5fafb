// A client that has lost its connection and asks for the master just when the Sentinels switch it.
import { it, onTestFinished } from "vitest";
import { type ConnectionUse, createRedisClient } from "../../../src/store/connect.ts";
import { clientOf, startProxy, startSentinel, startServer, until } from "../../support/redis-servers.ts";

async function startWatched() {
  const master = await startServer();
  await startServer({ args: ["--replicaof", "127.0.0.1", `${master.port}`] });
  const port = await startSentinel(master.port, 1);
  const sentinel = clientOf(port);
  await until(
    () => sentinel.call("SENTINEL", "REPLICAS", "main"),
    (replicas) => JSON.stringify(replicas).includes('"master-link-status","ok"'),
  );
  const listener = clientOf(port);
  let switches = 0;
  listener.on("message", () => {
    switches += 1;
  });
  await listener.subscribe("+switch-master");
  // A Sentinel that stood still in between gives its failover up.
  const failOver = () => sentinel.call("SENTINEL", "FAILOVER", "main").catch(() => {});
  const switchMaster = () => until(failOver, () => switches > 0, 150_000);
  const subscribers = async () => String(await sentinel.call("CLIENT", "LIST")).match(/ sub=1 /g)?.length ?? 0;
  return { master: clientOf(master.port), proxy: await startProxy(port), subscribers, switchMaster };
}

it("a client that asks for the master while Sentinels switch it comes back", async () => {
  const { master, proxy, subscribers, switchMaster } = await startWatched();
  const before = await subscribers();
  const open = async (use: ConnectionUse) => {
    const url = `redis+sentinel://127.0.0.1:${proxy.port}/main`;
    const client = createRedisClient({ url, prefix: "{syncline}" }, use);
    client.on("error", () => {});
    onTestFinished(() => client.disconnect());
    return { client, id: await client.client("ID") };
  };
  const clients = [await open("commands"), await open("worker")];
  await until(subscribers, (now) => now === before + clients.length);
  proxy.swallowNew();
  for (const { id } of clients) await master.client("KILL", "ID", id);
  await until(
    () => clients.map(({ client }) => client.status),
    (all) => all.every((status) => status === "connecting"),
  );
  await switchMaster();
  proxy.heal();
  for (const { client } of clients)
    await until(
      () => client.set("{syncline}:here", "1").catch(String),
      (answer) => answer === "OK",
    );
});
