// The demo as a stranger starts it: it shows what it promises, and nothing of it is left behind.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/core/clock.ts";

const script = fileURLToPath(new URL("../../scripts/demo/demo.ts", import.meta.url));

function start(...args: string[]): {
  child: ChildProcess;
  text: () => string;
  until: (pattern: RegExp) => Promise<RegExpExecArray>;
} {
  const child = spawn(process.execPath, [script, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  let text = "";
  const watchers: (() => void)[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (more: string) => {
      text += more;
      for (const watch of watchers) watch();
    });
  }
  const until = (pattern: RegExp) =>
    new Promise<RegExpExecArray>((resolve, reject) => {
      const watch = () => {
        const match = pattern.exec(text);
        if (match !== null) resolve(match);
      };
      watchers.push(watch);
      child.once("close", () => reject(new Error(`it ended before ${pattern}:\n${text}`)));
      watch();
    });
  return { child, text: () => text, until };
}

// Processes whose parents include this one, now or by their environment: what a demo started
// carries its Redis address.
function leftBehind(redisUrl: string, sandboxUrl: string): string[] {
  const found: string[] = [];
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const environment = readFileSync(`/proc/${pid}/environ`, "utf8");
      const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
      const port = new URL(redisUrl).port;
      if (environment.includes(redisUrl) || environment.includes(sandboxUrl) || command.includes(`--port ${port}`))
        found.push(`${pid} ${command}`);
    } catch {
      // Gone in between, or not ours to look at.
    }
  }
  return found;
}

async function untilGone(redisUrl: string, sandboxUrl: string): Promise<string[]> {
  const deadlineMs = systemClock.monotonicMs() + 45_000;
  for (;;) {
    const left = leftBehind(redisUrl, sandboxUrl);
    if (left.length === 0 || systemClock.monotonicMs() > deadlineMs) return left;
    await systemClock.sleep(50);
  }
}

async function world(
  demo: ReturnType<typeof start>,
): Promise<{ redisUrl: string; sandboxUrl: string; pids: number[] }> {
  const [, redisUrl = "", sandboxUrl = "", pids = ""] = await demo.until(
    /redis {4}(\S+)\n.*sandbox {2}(\S+) .*\n.*replicas (.*?) {3}try/s,
  );
  return { redisUrl, sandboxUrl, pids: [...pids.matchAll(/\d+/g)].map(Number) };
}

const numberIn = (text: string, label: string) => Number(new RegExp(`${label}\\s+(\\d+)`).exec(text)?.[1]);

describe.skipIf(process.platform !== "linux")("npm run demo", () => {
  it("shows runs, a conflict, a retry, a lost answer; survives kill -9; ends at Ctrl-C", async () => {
    const demo = start("--for", "5m");
    const { redisUrl, sandboxUrl, pids } = await world(demo);
    await demo.until(/ started /);
    process.kill(pids[0] ?? 0, "SIGKILL");
    // A start whose worker was killed may be confirmed, too, without a lost answer.
    for (const shown of [/ replica died /, / conflicts /, / task retried /, / no good answer /, / confirmed /])
      await demo.until(shown);
    demo.child.kill("SIGINT");
    const [code] = await once(demo.child, "close");
    const text = demo.text();
    expect(numberIn(text, "runs started")).toBeGreaterThanOrEqual(3);
    expect(numberIn(text, "conflict outcomes")).toBeGreaterThanOrEqual(1);
    expect(numberIn(text, "retried polls")).toBeGreaterThanOrEqual(1);
    expect(numberIn(text, "lost answers")).toBeGreaterThanOrEqual(1);
    expect(numberIn(text, "tasks started twice")).toBe(0);
    expect(code).toBe(0);
    expect(await untilGone(redisUrl, sandboxUrl)).toEqual([]);
  });

  it("ends in order when its time is over, and says where nothing was started", async () => {
    const demo = start("--for", "1s");
    const { redisUrl, sandboxUrl } = await world(demo);
    const [code] = await once(demo.child, "close");
    const text = demo.text();
    expect(text).toContain("Summary");
    const isStarted = numberIn(text, "runs started") > 0;
    expect([code, text.includes("error: nothing was started")]).toEqual(isStarted ? [0, false] : [1, true]);
    expect(await untilGone(redisUrl, sandboxUrl)).toEqual([]);
  });

  it("takes everything with it when it is killed with kill -9", async () => {
    const demo = start("--for", "5m");
    const { redisUrl, sandboxUrl } = await world(demo);
    demo.child.kill("SIGKILL");
    await once(demo.child, "close");
    expect(await untilGone(redisUrl, sandboxUrl)).toEqual([]);
  });
});
