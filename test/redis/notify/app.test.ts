import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { startApp } from "../../../src/app/app.ts";
import { policyChecks } from "../../../src/cli/shared-options.ts";
import { loadPolicies } from "../../../src/config/load-policies.ts";
import { Metrics } from "../../../src/ops/metrics.ts";
import { folderForTest } from "../../support/folder.ts";
import { noticeOf } from "../../support/receiver.ts";
import { redisForTest } from "../../support/redis.ts";
import { sinkOf, startSinks } from "../../support/sink-fixture.ts";
import { TestLog } from "../../support/test-log.ts";

const redis = redisForTest();
const fileOf = (sinks: string) => `apiVersion: syncline/v1\nsinks: { ${sinks} }\n`;

it("an app delivers every hand-over, follows changed sinks and shows their state", async () => {
  const folder = folderForTest();
  const path = join(folder, "policies.yaml");
  writeFileSync(path, fileOf("one: { file: { path: one.jsonl } }"));
  const loaded = await loadPolicies(path, { variables: {}, checks: policyChecks });
  if (!loaded.ok) throw new Error("the file is wrong");
  const log = new TestLog();
  const metrics = new Metrics({ readEveryMs: 0 });
  metrics.takeIn("sink", loaded.set.sinks.keys());
  const app = await startApp({
    ...{
      set: loaded.set,
      redis,
      roles: ["worker"],
      variables: {},
      log,
      metrics,
      takeOverAfterMs: 5_000,
      drainMs: 5_000,
    },
    watch: { path, checks: policyChecks },
  });
  onTestFinished(() => app.stop());
  const file = (name: string) => sinkOf(name, { kind: "file", path: "", bytesMax: 1, filesMax: 1 });
  const { sinks: other } = await startSinks(redis, [file("one"), file("two")], { roles: [] });
  const ids = (name: string) =>
    readFileSync(join(folder, `${name}.jsonl`), "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line).id);

  await other.enqueue([{ sink: "one", notice: noticeOf("a") }]);
  await expect.poll(() => ids("one")).toEqual(["a"]);
  // Nobody delivers for this one yet.
  await other.enqueue([{ sink: "two", notice: noticeOf("b") }]);
  writeFileSync(path, fileOf("one: { file: { path: one.jsonl } }, two: { file: { path: two.jsonl } }"));
  expect(await log.until(({ event }) => event === "config.reloaded")).toMatchObject({ sinksAddedNames: ["two"] });
  await expect.poll(() => ids("two")).toEqual(["b"]);

  const lines = async () => (await metrics.scrape()).text.split("\n");
  expect(await lines()).toContain('syncline_sink_deliveries_total{sink="one",result="delivered"} 1');
  // The file holds the notice before its job has left the queue.
  await expect.poll(lines).toContain('syncline_sink_queue{sink="two"} 0');
  await expect.poll(() => app.unreadiness()).toEqual([]);
});
