import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { multipliers, toLoadProduct } from "../../../src/config/rules/load-product.ts";
import { taskOptions } from "../../../src/queue/queues.ts";
import { defaultRetries } from "../../../src/service/service-options.ts";
import { problemsOf } from "./policy-fixture.ts";

const src = (file: string) => readFileSync(join(resolve(import.meta.dirname, "../../.."), "src", file), "utf8");

const file = (service: string, policy: string) => `apiVersion: syncline/v1
services:
  main: { baseUrl: https://sync.example.com, token: { env: TOKEN }, ${service} }
policies:
  - { name: a, service: main, ${policy} }
`;

describe("the load product", () => {
  it("multiplies attempts, tries and pages, and adds the attempts of each start", () => {
    const shape = { starts: 2, pages: 100, requestTimeoutMs: 30_000, requestsPerSecond: undefined };
    // 8 × 3 × 100 + 8 × 2 requests; 8 × (3 × 100 × 31 s + 60 s).
    expect(toLoadProduct(shape)).toEqual({ requests: 2_416, readingMs: 74_880_000 });
    // Each request waits up to 2 s for its turn.
    expect(toLoadProduct({ ...shape, requestsPerSecond: 0.5 }).readingMs).toBe(79_680_000);
    expect(toLoadProduct({ ...shape, pages: 0 }).requests).toBe(16);
  });

  it("multiplies what the code really does", () => {
    expect(multipliers.attempts).toBe(taskOptions.attempts);
    expect(multipliers.tries).toBe(defaultRetries + 1);
    expect(src("tasks/read-together.ts")).toContain("const pollItemsMax = 10_000;");
    expect(src("tasks/process-task.ts")).toContain("const masksMax = 20_000;");
    expect(src("tasks/process-task.ts")).toContain("const syncJobsMax = 1_000;");
  });

  it("refuses at load, where the policy names its service, what could go on for longer than a week", async () => {
    const slow = file("timeouts: { request: 10m }", "poll: { list: masks, expect: items.size() < 3 }");
    expect(await problemsOf(slow)).toEqual([
      "5:25 a reading of a could go on for 17 days (8 attempts × 3 tries × 100 pages of 10m each); 7d is the most",
    ]);
    expect(await problemsOf(file("timeouts: { request: 10m }", "poll: { list: masks, expect: count < 3 }"))).toEqual(
      [],
    );
    expect(await problemsOf(file("timeouts: { request: 1m }", "run: { fromMasks: {} }"))).toEqual([]);
  });

  it("refuses a list that the service's rate never gets to the end of", async () => {
    const message =
      "5:25 a reads a list of up to 200 pages, which 0.1 requests a second is too slow for: 0.5 is the least";
    expect(await problemsOf(file("limits: { requestsPerSecond: 0.1 }", "run: { fromMasks: {} }"))).toEqual([message]);
    expect(await problemsOf(file("limits: { requestsPerSecond: 0.01 }", "run: { syncJobs: [1] }"))).toEqual([]);
    expect(await problemsOf(file("limits: { requestsPerSecond: 0.5 }", "run: { fromMasks: {} }"))).toEqual([]);
  });

  it("refuses a change after a look that the service's rate never lets out", async () => {
    const message =
      "5:25 a reads before it changes anything, which 0.09 requests a second is too slow for: 0.1 is the least";
    for (const action of ["delete: { syncJob: 1, name: Old }", "apply: { syncJobs: { 1: { name: New } } }"]) {
      expect(await problemsOf(file("limits: { requestsPerSecond: 0.09 }", action))).toEqual([message]);
      expect(await problemsOf(file("limits: { requestsPerSecond: 0.1 }", action))).toEqual([]);
    }
  });

  it("says nothing of a policy whose service is wrong: others do", async () => {
    const unknown = file("limits: { requestsPerSecond: 0.1 }", "run: { fromMasks: {} }").replace(
      "service: main",
      "service: other",
    );
    expect(await problemsOf(unknown)).toEqual(['5:25 there is no service "other"']);
  });
});
