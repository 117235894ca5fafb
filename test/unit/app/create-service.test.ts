import type { ServerResponse } from "node:http";
import { expect, it, onTestFinished, vi } from "vitest";
import { createService } from "../../../src/app/create-service.ts";
import type { ServiceSettings } from "../../../src/config/policy-set.ts";
import { silentLog } from "../../../src/core/event-log.ts";
import { setOf } from "../../support/kept-set.ts";
import { startServer } from "../service/test-server.ts";

it("has a connection for each action and poll that reads at once", async () => {
  const open: ServerResponse[] = [];
  const { url } = await startServer((_, response) => {
    open.push(response);
    if (open.length === 12 + 8) for (const one of open) one.end('{"value":[]}');
  });
  const main = setOf([]).services.get("main") as ServiceSettings;
  const settings = { ...main, baseUrl: url, concurrency: 12 };
  const service = createService(settings, { variables: { T: "a-token-of-the-test" }, log: silentLog });
  onTestFinished(() => service.close());
  const answers = await Promise.all(Array.from({ length: 12 + 8 }, () => service.getActivities()));
  expect(answers).toHaveLength(12 + 8);
});

it("waits for a slow answer as long as timeouts.request says", async () => {
  const asked = Promise.withResolvers<ServerResponse>();
  const { url } = await startServer((_, response) => asked.resolve(response));
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const main = setOf([]).services.get("main") as ServiceSettings;
  const settings = { ...main, baseUrl: url, requestTimeoutMs: 150_000 };
  const service = createService(settings, { variables: { T: "a-token-of-the-test" }, log: silentLog });
  onTestFinished(() => service.close());
  // So long a start without an answer may be under way.
  expect(service.requestTimeoutMs).toBe(150_000);
  const answer = service.getActivities();
  const answering = await asked.promise;
  vi.advanceTimersByTime(149_000);
  answering.end('{"value":[]}');
  expect((await answer).items).toEqual([]);
});
