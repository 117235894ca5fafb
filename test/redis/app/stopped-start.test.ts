// A process that is told to stop while it starts.
import { expect, it } from "vitest";
import { createWeb } from "../../../src/app/create-web.ts";
import { policyChecks } from "../../../src/cli/shared-options.ts";
import { freePort } from "../../support/redis-servers.ts";
import { TestLog } from "../../support/test-log.ts";
import { webForTest } from "../../support/web-fixture.ts";

const web = await webForTest();

it("opens no port of the role web after its stop", async () => {
  const log = new TestLog();
  const port = await freePort();
  const address = { host: "127.0.0.1", port, tokens: undefined, auth: undefined, isReadOnly: false };
  const surroundings = { context: web.parts.context, guard: { losses: 0 }, variables: {}, log };
  const part = createWeb({ ...address, checks: policyChecks }, surroundings);
  const starting = part.start();
  await part.stop();
  await starting;
  expect(log.named("web.listening")).toEqual([]);
  await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow();
});
