// A process that is told to stop while it starts.
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { startApp } from "../../../src/app/app.ts";
import { createWeb } from "../../../src/app/create-web.ts";
import { policyChecks } from "../../../src/cli/shared-options.ts";
import { freePort } from "../../support/redis-servers.ts";
import { TestLog } from "../../support/test-log.ts";
import { webForTest } from "../../support/web-fixture.ts";
import { setOfStory, smallStory } from "../../support/web-story.ts";

const web = await webForTest();

it("opens no port of the role web after its stop", async () => {
  const log = new TestLog();
  const port = await freePort();
  const address = { host: "127.0.0.1", port, tokens: undefined, auth: undefined, isReadOnly: false };
  const surroundings = { context: web.parts.context, guard: { changes: 0 }, variables: {}, log };
  const part = createWeb({ ...address, checks: policyChecks }, surroundings);
  const starting = part.start();
  await part.stop();
  await starting;
  expect(log.named("web.listening")).toEqual([]);
  await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow();
});

it("does not wait for a Redis that says nothing", async () => {
  const silent = createServer().listen(0, "127.0.0.1");
  onTestFinished(() => void silent.close());
  await once(silent, "listening");
  const stop = new AbortController();
  const starting = startApp({
    set: setOfStory(smallStory),
    redis: { url: `redis://127.0.0.1:${(silent.address() as AddressInfo).port}`, prefix: "{stopped}" },
    ...{ roles: ["worker"], variables: { T: "token" }, log: new TestLog(), takeOverAfterMs: 60_000, drainMs: 1_000 },
    stopSignal: stop.signal,
  });
  const [socket] = await once(silent, "connection");
  socket.resume();
  stop.abort();
  const app = await starting;
  expect(app.unreadiness()).toEqual([]);
  await Promise.all([app.stop(), once(socket, "close")]);
});
