// The runbooks, followed word by word: their commands, options, metrics and events are there, and
// that of missed slots leads to the cause.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { main } from "../../src/cli/program.ts";
import { shownLabel } from "../../src/ops/metric-labels.ts";
import { type MetricFacts, metricTable } from "../../src/ops/metric-table.ts";
import { startSandbox } from "../../src/sandbox/sandbox.ts";
import { openStore } from "../../src/store/redis.ts";
import { runHere } from "../support/commands-here.ts";
import { parseMetrics, sumOf } from "../support/metrics-text.ts";
import { Syncline } from "../support/processes.ts";
import { ownFolder, startServer, until } from "../support/redis-servers.ts";

const root = join(import.meta.dirname, "../..");
const folder = join(root, "docs/runbooks");
const pages = readdirSync(folder).map((name) => ({ name, text: readFileSync(join(folder, name), "utf8") }));
const codes = pages.flatMap(({ name, text }) =>
  [...text.matchAll(/`([^`\n]+)`/g)].map(([, code = ""]) => ({ name, code })),
);

/** What a command says of itself, without a process for each. */
async function helpOf(path: readonly string[]): Promise<string> {
  let text = "";
  // Each call listens to both streams, which a process does once.
  for (const stream of [process.stdout, process.stderr]) stream.setMaxListeners(100);
  const write = vi.spyOn(process.stdout, "write").mockImplementation((part) => {
    text += String(part);
    return true;
  });
  try {
    await main([...path, "--help"], new AbortController());
  } finally {
    write.mockRestore();
  }
  return text;
}

describe("the runbooks", () => {
  it("name commands and options that there are", async () => {
    const commands = codes.filter(({ code }) => code.startsWith("syncline "));
    expect(commands.length).toBeGreaterThan(20);
    const helps = new Map<string, string>();
    for (const { name, code } of commands) {
      const [, ...words] = code.split(" ");
      const path = words.slice(0, /^(failed|sinks)$/.test(words[0] ?? "") ? 2 : 1).join(" ");
      const help = helps.get(path) ?? (await helpOf(path.split(" ")));
      helps.set(path, help);
      expect([name, code, help.startsWith(`Usage: syncline ${path}`)]).toEqual([name, code, true]);
      // Without the files these commands do nothing; others look with the policies that run.
      const needsFiles = ["api", "apply", "sinks test"].includes(path);
      expect([name, code, !needsFiles || code.includes("--config policies/")]).toEqual([name, code, true]);
      for (const option of words.filter((word) => word.startsWith("-")))
        expect([name, option, new RegExp(`^ +(-\\w, )?${option}\\b|^ +${option},`, "m").test(help)]).toEqual([
          name,
          option,
          true,
        ]);
    }
  });

  it("name metrics, labels and log events that there are", () => {
    const table = new Map(Object.entries<MetricFacts>(metricTable));
    const events = readFileSync(join(root, "docs/log-events.md"), "utf8");
    for (const { name, code } of codes) {
      for (const [, metric = "", labels = ""] of code.matchAll(/\b(syncline_\w+)(?:\{([^}]*)\})?/g)) {
        if (/^syncline_(nodejs|process)_/.test(metric)) continue;
        const known = [...(table.get(metric)?.labels ?? []).map(shownLabel), "namespace", "job", "pod"];
        const asked = [...labels.matchAll(/(\w+)=~?"/g)].map(([, label = ""]) => label);
        expect([name, metric, table.has(metric), asked.filter((label) => !known.includes(label))]).toEqual([
          name,
          metric,
          true,
          [],
        ]);
      }
      if (
        /^[a-z]+\.[a-z]+(-[a-z]+)*$/.test(code) &&
        !/^(limits|follow|schedule|mapping|timeouts|health|quarantine|after)\./.test(code)
      )
        expect([name, code, events.includes(`\`${code}\``)]).toEqual([name, code, true]);
    }
  });

  it("lead from a missed slot to its time and cause, also on a fresh process", async () => {
    const redis = await startServer();
    const sandbox = await startSandbox({ activities: 1, repositories: ["HR"] });
    onTestFinished(() => sandbox.stop());
    const file = join(ownFolder(), "policies.yaml");
    writeFileSync(
      file,
      `apiVersion: syncline/v1
services: { main: { baseUrl: "${sandbox.baseUrl}", token: { env: TEST_TOKEN } } }
policies:
  - { name: late, service: main, repository: HR, poll: { list: approvals }, schedule: { every: 30s }, catchUp: none }
`,
    );
    const environment = { REDIS_URL: redis.url, TEST_TOKEN: sandbox.token };
    const serve = async () => {
      const args = ["serve", "--config", file, "--drain", "2s", "--health-port", "0", "--health-host", "127.0.0.1"];
      const one = new Syncline(args, environment);
      onTestFinished(() => one.kill("SIGKILL"));
      await one.until(({ event }) => event === "serve.ready");
      return one;
    };
    const first = await serve();
    const store = await openStore({ url: redis.url, prefix: "{syncline}" });
    onTestFinished(() => store.close());
    await until(
      () => store.redis.hget(store.key("watermarks"), "late"),
      (mark) => mark !== null,
    );
    first.kill("SIGKILL");
    // No scheduler has been there for three minutes.
    await store.redis.hset(store.key("watermarks"), "late", Date.now() - 180_000);
    await store.redis.hset(store.key("kept-since"), "late", Date.now() - 180_000);
    const second = await serve();
    await second.until(({ event }) => event === "slot.missed");
    const { port } = await second.until(({ event }) => event === "health.listening");
    const missed = { service: "main", trouble: "missed" };
    await until(
      async () =>
        sumOf(
          parseMetrics(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()),
          "syncline_policies_in_trouble",
          missed,
        ),
      (count) => count === 1,
    );
    const audit = await runHere(["audit", "--config", file], environment);
    const [line = "", time = ""] = /^late (\S+ \S+) was missed: .*$/m.exec(audit.out) ?? [];
    expect(line).toContain("noticed more than 30s late, and catchUp is none");
    const explained = await runHere(["explain", "late", time.replace(" ", "T"), "--config", file], environment);
    expect(explained.out).toContain("noticed more than 30s late, and catchUp is none");
  });
});
