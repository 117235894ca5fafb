// Issue: drift made by hand is found and mended on the next slot, and told once. From a schedule to
// a real receiver and a file.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { SyncService, staticToken } from "../../src/service/client.ts";
import { folderForTest } from "../support/folder.ts";
import { often } from "../support/processes.ts";
import { Receiver } from "../support/receiver.ts";
import { signingSecret } from "../support/sink-fixture.ts";
import { worldForTest } from "../support/world.ts";

// The notice names the object and the value it had.
it("the next slot corrects drift by hand and reports it once to each sink", async () => {
  const hook = await new Receiver().start();
  const folder = folderForTest();
  const [secretFile, path] = [join(folder, "secret"), join(folder, "told.jsonl")];
  writeFileSync(secretFile, signingSecret);
  const policies = `  - name: names
    service: main
    repository: HR
    apply: { syncJobs: { 4: { name: Contracts }, 5: { name: Invoices } } }
    schedule: { every: 1s }
    overlap: queue
    notify: [hook, { sink: file, on: [drift] }]
sinks:
  hook: { webhook: { url: "${hook.url}", secretFile: "${secretFile}" } }
  file: { file: { path: "${path}" } }`;
  onTestFinished(() => hook.stop());
  const world = await worldForTest({ policies });
  const { log, sandbox } = world;
  const of = (target: string) => log.outcomesOf("names").filter((outcome) => outcome.target === target);
  const reasons = (target: string) => of(target).map(({ reason }) => reason);
  await log.until(() => reasons("syncJob-4").includes("nothing-to-do"));
  const service = new SyncService({ baseUrl: sandbox.baseUrl, token: staticToken(sandbox.token) });
  await service.updateSyncJobById(4, { name: "Old contracts" });
  const changedAt = new Date().toISOString();
  service.close();
  await log.until(() => reasons("syncJob-4").includes("drift-corrected"));
  await log.until(() => reasons("syncJob-4").slice(reasons("syncJob-4").indexOf("drift-corrected")).length > 2);
  await hook.until(() => hook.accepted.length > 0);

  const mended = of("syncJob-4").filter(({ reason }) => reason === "drift-corrected");
  expect(mended).toHaveLength(1);
  // No slot that came due after the change went by without it.
  const { finishedAt = "" } = mended[0] ?? {};
  const later = of("syncJob-4").filter((one) => one.slot >= changedAt && one.finishedAt < finishedAt);
  expect(later).toEqual([]);
  expect(reasons("syncJob-5")).not.toContain("drift-corrected");
  const told = hook.received.map(({ body }) => JSON.parse(body));
  expect(told).toMatchObject([
    {
      type: "syncline.drift",
      subject: "names",
      data: {
        title: "names: drift corrected, syncJob-4",
        task: mended[0]?.taskId,
        detail: 'sync job 4: changed by hand and set again: name: "Old contracts" → "Contracts"',
      },
    },
  ]);
  const lines = () => readFileSync(path, "utf8").trimEnd().split("\n");
  await expect.poll(lines, often).toHaveLength(1);
  expect(JSON.parse(lines()[0] ?? "")).toEqual(told[0]);
});
