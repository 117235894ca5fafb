// One of two sync jobs of a policy never ends: it is told once that the policy fails, and no
// recovery, whatever the other one does.
import { expect, it, vi } from "vitest";
import type { Notice } from "../../src/model/notice.ts";
import { often } from "../support/processes.ts";
import { worldForTest } from "../support/world.ts";

it("a sync job that hangs is told once, and no recovery while another one goes well", async () => {
  const told: { readonly sink: string; readonly notice: Notice }[] = [];
  await worldForTest({
    // Every run of sync job 11 leaves an approval, and goes on until that is gone.
    sandbox: { approvalsBlock: true, runMs: [100, 200] },
    policies: `  - name: often
    service: main
    run: { syncJobs: [11, 4] }
    schedule: { every: 2s }
    follow: { until: settled, deadline: 5s, quietFor: 1s }
    notify: [{ sink: ops, on: [{ failure: 1 }, recovery] }, { sink: each, on: [every] }]
sinks: { ops: { file: { path: ops.jsonl } }, each: { file: { path: each.jsonl } } }
notifications: { groupWait: 1s }`,
    deliver: async (deliveries) => void told.push(...deliveries),
  });
  const each = (target: string, status: string) =>
    told.filter(
      ({ sink, notice: { data } }) => sink === "each" && data["target"] === target && data["status"] === status,
    );
  await vi.waitUntil(() => each("11", "timed-out").length > 0, often);
  const good = each("4", "succeeded").length;
  await vi.waitUntil(() => each("4", "succeeded").length > good + 1, often);
  await vi.waitUntil(() => each("11", "timed-out").length > 1, often);
  // A busy machine may let sync job 4 end late as well, before 11 does: what counts is what comes
  // after that.
  const from = told.findIndex(
    ({ sink, notice: { data } }) => sink === "each" && data["status"] === "timed-out" && data["target"] === "11",
  );
  const ops = told.filter(({ sink }, index) => sink === "ops" && index > from).map(({ notice }) => notice.kind);
  expect(["failing", ""]).toContain(ops.join(" "));
});
