// Rolling restarts under load, as a Deployment makes them, and the proof that the same check
// notices what it should.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const script = fileURLToPath(new URL("../../scripts/cluster/main.ts", import.meta.url));

function start(...args: string[]): {
  child: ChildProcess;
  text: () => string;
  until: (pattern: RegExp) => Promise<void>;
  order: (line: string) => void;
} {
  const child = spawn(process.execPath, [script, ...args], { stdio: ["pipe", "pipe", "pipe"] });
  let text = "";
  const watchers: (() => void)[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (more: string) => {
      text += more;
      for (const watch of watchers) watch();
    });
  }
  const until = (pattern: RegExp) =>
    new Promise<void>((resolve, reject) => {
      const watch = () => pattern.test(text) && resolve();
      watchers.push(watch);
      child.once("close", () => reject(new Error(`it ended before ${pattern}:\n${text}`)));
      watch();
    });
  return { child, text: () => text, until, order: (line) => child.stdin?.write(`${line}\n`) };
}

/** The commit before this one, where there is a history (a shallow clone has none). */
const before = spawnSync("git", ["rev-parse", "--verify", "--quiet", "HEAD~1"], { encoding: "utf8" }).stdout.trim();

/** On one line: the next one may begin with the hour. */
const numberIn = (text: string, label: string) => Number(new RegExp(`${label} +(\\d+)`).exec(text)?.[1]);

describe("npm run cluster", () => {
  it("restarts three replicas: no lost slot, no second start, always a scheduler", async () => {
    const cluster = start("--replicas", "3", "--rolls", "1");
    const [code] = await once(cluster.child, "close");
    const text = cluster.text();
    for (const gone of ["1", "2", "3"]) expect(text).toContain(`replica ${gone} (this) stopped`);
    // How many there are is a matter of how long the restarts take.
    expect(numberIn(text, "starts")).toBeGreaterThan(0);
    expect(Number(/slots lost +0 of (\d+)/.exec(text)?.[1])).toBeGreaterThan(0);
    expect(text).toMatch(/tasks started twice +0\n +feed items told twice +0 of [1-9]/);
    expect(Number(/probes without a scheduler +0 of (\d+)/.exec(text)?.[1])).toBeGreaterThan(0);
    expect([code, /bug\.caught|newer-version/.exec(text)]).toEqual([0, null]);
  });

  it.skipIf(before === "")(
    "rolls back and forth between two commits: nothing lost, nothing doubled",
    async () => {
      const cluster = start("--replicas", "3", "--upgrade-from", before);
      const [code] = await once(cluster.child, "close");
      const text = cluster.text();
      expect(text).toMatch(/slots lost +0 of [1-9]/);
      expect(text).toMatch(/tasks started twice +0\n +feed items told twice +0 of [1-9]/);
      expect(text).toMatch(/probes without a scheduler +0 of [1-9]/);
      expect([code, /bug\.caught/.exec(text)]).toEqual([0, null]);
    },
    600_000,
  );

  it("takes orders, and notices when no scheduler is ready", async () => {
    const cluster = start("--replicas", "1");
    await cluster.until(/orders: /);
    cluster.order("kill 1");
    await cluster.until(/replica 1\.1 \(this\) is ready/);
    cluster.order("restart 1");
    await cluster.until(/replica 1\.1 \(this\) stopped/);
    cluster.order("stop");
    const [code] = await once(cluster.child, "close");
    const text = cluster.text();
    expect(text).toContain("replica 1 died (SIGKILL)");
    expect(numberIn(text, "probes without a scheduler")).toBeGreaterThan(0);
    expect([code, numberIn(text, "tasks started twice")]).toEqual([1, 0]);
  });
});
