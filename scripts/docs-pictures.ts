// Makes the pictures of the dashboard in docs/pictures/ from the demo: a private Redis, the sandbox
// with its faults, one replica. `npm run docs:pictures`.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { findChromium } from "./chromium.mjs";
import { Replica, startSandbox } from "./demo/processes.ts";
import { startPrivateRedis } from "./redis.mjs";

const folder = join(import.meta.dirname, "../docs/pictures");
/** Outcomes of the policy with most: enough for strips and usual durations. */
const outcomesMin = 60;
const pictures = { "now.png": "/", "policies.png": "/policies" } as const;

const stops: (() => Promise<unknown>)[] = [];
try {
  const redis = await startPrivateRedis();
  stops.push(() => redis.stop());
  const sandbox = await startSandbox();
  stops.push(() => sandbox.stop());
  let outcomes = 0;
  const { promise: enough, resolve } = Promise.withResolvers<void>();
  const onEvent = ({ event }: { readonly event: string }) => {
    if (event === "task.finished") outcomes += 1;
    if (outcomes >= outcomesMin) resolve();
  };
  const environment = { REDIS_URL: redis.url, SANDBOX_URL: sandbox.baseUrl, SANDBOX_TOKEN: sandbox.token };
  const replica = new Replica(1, { environment, prefix: "{pictures}", onEvent });
  stops.push(() => replica.stop());
  await replica.start();
  await enough;
  const { command, env } = await findChromium();
  const browser = await chromium.launch({
    executablePath: command,
    args: ["--no-sandbox"],
    env: { ...process.env, ...env },
  });
  stops.push(() => browser.close());
  const page = await browser.newPage({ viewport: { width: 1180, height: 720 }, colorScheme: "light" });
  mkdirSync(folder, { recursive: true });
  for (const [name, path] of Object.entries(pictures)) {
    await page.goto(new URL(path, replica.dashboard).href);
    await page.locator("[data-live=yes]").waitFor();
    await page.screenshot({ path: join(folder, name) });
  }
} finally {
  for (const stop of stops.toReversed()) await stop();
}
