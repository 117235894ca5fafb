// Open pages whose replica is killed, and behind an ingress that holds a stream back: they say how
// current they are, and become current by themselves. Real processes, a real proxy, two viewers.
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Page } from "playwright-core";
import { afterAll, expect, it } from "vitest";
import { browserForTest } from "../support/browser.ts";
import { commandFixture } from "../support/command-fixture.ts";

/** Stands before the replicas: sends each request to one of them, or says that none answers. */
class Ingress {
  /** The replica's port. */
  port = 0;
  /** Whether answers are passed on when they are whole, as some ingresses do. */
  buffers = false;
  readonly #server: Server;

  constructor() {
    this.#server = createServer((asked, answer) => this.#pass(asked, answer));
  }

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  #pass({ method, url, headers }: IncomingMessage, answer: ServerResponse): void {
    const asked = request({ port: this.port, method, path: url, headers }, (given) => {
      answer.writeHead(given.statusCode ?? 502, given.headers);
      given.on("error", () => answer.destroy());
      if (!this.buffers) given.pipe(answer);
      else
        given.toArray().then(
          (parts) => answer.end(Buffer.concat(parts)),
          () => answer.destroy(),
        );
      if (this.buffers) answer.flushHeaders();
    });
    answer.on("close", () => asked.destroy());
    asked.on("error", () => (answer.headersSent ? answer.destroy() : answer.writeHead(502).end("no replica answers")));
    asked.end();
  }
}

const fixture = commandFixture(
  "  - { name: nightly, service: main, repository: HR, run: { syncJobs: [1] }, follow: { until: accepted } }",
);
const { prefix } = fixture.redis;
const ingress = new Ingress();
const base = await ingress.start();
afterAll(() => ingress.stop());
const browser = await browserForTest(base);

async function startReplica() {
  const replica = await fixture.serve(prefix, "--roles", "web", "--web-port", "0");
  const { url } = await replica.until(({ event }) => event === "web.listening");
  return { replica, port: Number(new URL(String(url)).port) };
}

/** The console says which requests fail while a replica is away, and that there is no sign-in. */
const isAway = (message: string) =>
  /status of (404|502)|ERR_INCOMPLETE_CHUNKED|ERR_EMPTY_RESPONSE|ERR_CONNECTION/.test(message);
const stateOf = (page: Page) => page.locator("[data-live]").innerText();
/** Changes what the pages show. */
async function pause(note: string): Promise<void> {
  const paused = await fixture.command(prefix, "pause", "nightly", "--config", fixture.file(), "--reason", note);
  expect(paused).toMatchObject({ code: 0 });
}

it("says that its replica is gone, and comes back by itself with another", async () => {
  const [one, other] = [await startReplica(), await startReplica()];
  ingress.port = one.port;
  const viewers = [await browser.open("/policies", {}, isAway), await browser.open("/", {}, isAway)];
  for (const page of viewers) await expect.poll(() => stateOf(page)).toBe("live");
  one.replica.kill("SIGKILL");
  for (const page of viewers) await expect.poll(() => stateOf(page)).toMatch(/^not live/);
  // The ingress has not noticed yet: what asks now gets a 502, which ends a stream for ever.
  const asked = viewers.map((page) => page.waitForResponse((answer) => answer.status() === 502));
  await Promise.all(asked);
  await pause("while it was away");
  ingress.port = other.port;
  for (const page of viewers) {
    await expect.poll(() => stateOf(page)).toBe("live");
    await expect.poll(() => page.locator("main").innerText()).toMatch(/paused/);
  }
});

it("becomes current by asking where an ingress holds its stream back, and says so", async () => {
  ingress.port = (await startReplica()).port;
  ingress.buffers = true;
  const page = await browser.open("/sign-in", {}, isAway);
  await page.clock.install();
  await page.goto(`${base}/policies/nightly`);
  expect(await stateOf(page)).toBe("");
  await pause("held back");
  const askAgain = async () => {
    // The page's patience with an answer moves with its clock: the answer comes first.
    const before = await stateOf(page);
    await page.clock.fastForward(31_000);
    await expect.poll(() => stateOf(page)).not.toBe(before);
    return page.locator("main").innerText();
  };
  // What was read just before the pause is kept for some seconds.
  await expect.poll(askAgain, { interval: 500 }).toContain("held back");
  expect(await stateOf(page)).toMatch(/^as of \d.*, asked every 30 s$/);
});
