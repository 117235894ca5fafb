// Running sinks over a real Redis for tests: settings of sinks, a log that tests wait on, and a
// folder with a secret.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { RunningSinks, type RunningSinksOptions } from "../../src/app/running-sinks.ts";
import type { SinkSettings, WebhookSettings } from "../../src/config/policy-set.ts";
import { WorkerConnections } from "../../src/queue/worker-connections.ts";
import { openStore, type RedisTarget } from "../../src/store/redis.ts";
import { folderForTest } from "./folder.ts";
import { TestLog } from "./test-log.ts";

/** 32 bytes: 0, 1, … 31. */
export const signingSecret = `whsec_${Buffer.from(Array.from({ length: 32 }, (_, index) => index)).toString("base64")}`;

/** A webhook with its secret in a file. */
export function webhookTo(url: string, more: Partial<WebhookSettings> = {}): WebhookSettings {
  const secretFile = join(folderForTest(), "secret");
  writeFileSync(secretFile, signingSecret);
  const settings = {
    kind: "webhook",
    format: "cloudevents",
    timeoutMs: 60_000,
    previousSecretFile: undefined,
  } as const;
  return { ...settings, url, secretFile, ...more };
}

/** The settings of a sink. */
export function sinkOf(name: string, to: SinkSettings["to"], more: Partial<SinkSettings> = {}): SinkSettings {
  return { name, to, giveUpAfterMs: 3_600_000, queueMax: 100_000, ...more };
}

/** Running sinks that stop after the test. */
export async function startSinks(
  target: RedisTarget,
  sinks: readonly SinkSettings[],
  more: Partial<Pick<RunningSinksOptions, "roles" | "takeOverAfterMs" | "mayBeForeign">> = {},
): Promise<{ readonly sinks: RunningSinks; readonly log: TestLog; readonly added: Map<string, number> }> {
  const store = await openStore(target);
  const log = new TestLog();
  const added = new Map<string, number>();
  const connections = new WorkerConnections(target, log);
  const running = new RunningSinks({
    set: { sinks: new Map(sinks.map((sink) => [sink.name, sink])) },
    redis: target,
    connections,
    store,
    log,
    roles: ["worker"],
    takeOverAfterMs: 30_000,
    ...more,
    drainMs: 3_000,
    metrics: {
      add: (name, labels, by = 1) => {
        const key = [name, ...Object.values(labels)].join(" ");
        added.set(key, (added.get(key) ?? 0) + by);
      },
    },
  });
  await running.deliveries.start();
  onTestFinished(async () => {
    await running.stop();
    await connections.stop();
    await store.close();
  });
  return { sinks: running, log, added };
}
