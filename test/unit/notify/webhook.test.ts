import { createHmac } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import type { WebhookSettings } from "../../../src/config/policy-set.ts";
import { withoutSecrets } from "../../../src/core/secrets.ts";
import type { Receipt } from "../../../src/notify/sink.ts";
import { createWebhook } from "../../../src/notify/webhook.ts";
import { type Answer, noticeOf, Receiver } from "../../support/receiver.ts";

const secret = (byte: number) => `whsec_${Buffer.alloc(32, byte).toString("base64")}`;
const clock = { nowMs: () => 1_795_228_200_123 };

let hook: Receiver;
let folder: string;
beforeEach(async () => {
  hook = await new Receiver().start();
  folder = mkdtempSync(join(tmpdir(), "syncline-webhook-"));
  writeFileSync(join(folder, "secret"), `${secret(1)}\n`);
});
afterEach(async () => {
  await hook.stop();
  rmSync(folder, { recursive: true });
});

const settings = (more: Partial<WebhookSettings> = {}): WebhookSettings => ({
  kind: "webhook",
  url: hook.url,
  secretFile: join(folder, "secret"),
  previousSecretFile: undefined,
  format: "cloudevents",
  timeoutMs: 5_000,
  ...more,
});

async function deliver(
  more: Partial<WebhookSettings> = {},
  id = "n1",
  signal = new AbortController().signal,
): Promise<Receipt> {
  const webhook = createWebhook(settings(more), clock);
  try {
    return await webhook.deliver(noticeOf(id), signal);
  } finally {
    webhook.close();
  }
}

/** What a receiver computes. */
const expectedSignature = (byte: number, id: string, body: string) =>
  `v1,${createHmac("sha256", Buffer.alloc(32, byte)).update(`${id}.1795228200.${body}`).digest("base64")}`;

describe("a webhook", () => {
  it("posts a CloudEvents 1.0 event that a receiver can verify", async () => {
    expect(await deliver()).toEqual({ type: "taken", status: 204 });
    const [received] = hook.received;
    expect(received?.headers).toMatchObject({
      "content-type": "application/cloudevents+json; charset=utf-8",
      "webhook-id": "n1",
      "webhook-timestamp": "1795228200",
      "webhook-signature": expectedSignature(1, "n1", received?.body ?? ""),
    });
    expect(received?.headers).not.toHaveProperty("authorization");
    expect(JSON.parse(received?.body ?? "")).toEqual({
      specversion: "1.0",
      id: "n1",
      source: "/syncline/services/main",
      type: "syncline.outcome",
      subject: "nightly",
      time: "2026-11-21T02:30:00.000Z",
      partitionkey: "nightly",
      datacontenttype: "application/json",
      data: { status: "failed", taskId: "n1", title: "nightly: failed", policy: "nightly", service: "main" },
    });
  });

  it("waits for a slow answer as long as its time-out says", async () => {
    hook.answer = () => ({ status: 200, afterMs: 45_000 });
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const delivering = deliver({ timeoutMs: 60_000 });
    await hook.until(() => hook.received.length === 1);
    vi.advanceTimersByTime(45_000);
    expect(await delivering).toEqual({ type: "taken", status: 200 });
  });

  it("signs with a changed secret at once, and with the old one while it is there", async () => {
    const webhook = createWebhook(settings({ previousSecretFile: join(folder, "previous") }), clock);
    const signal = new AbortController().signal;
    await webhook.deliver(noticeOf("n1"), signal);
    writeFileSync(join(folder, "previous"), secret(1));
    writeFileSync(join(folder, "secret"), secret(2));
    await webhook.deliver(noticeOf("n1"), signal);
    rmSync(join(folder, "previous"));
    await webhook.deliver(noticeOf("n1"), signal);
    webhook.close();
    const body = hook.received[0]?.body ?? "";
    const [one, two] = [expectedSignature(1, "n1", body), expectedSignature(2, "n1", body)];
    expect(hook.received.map(({ headers }) => headers["webhook-signature"])).toEqual([one, `${two} ${one}`, two]);
  });

  it("puts an id of any characters into a header", async () => {
    expect(await deliver({}, "a b:ä\r\nx")).toEqual({ type: "taken", status: 204 });
    expect(hook.received[0]?.id).toBe("a%20b%3A%C3%A4%0D%0Ax");
    expect(JSON.parse(hook.received[0]?.body ?? "").id).toBe("a b:ä\r\nx");
  });

  it("sends a chat its message, without a secret where none is named", async () => {
    await deliver({ format: "slack", secretFile: undefined });
    await deliver({ format: "teams", secretFile: undefined });
    const [slack, teams] = hook.received;
    expect(JSON.parse(slack?.body ?? "")).toEqual({ text: "nightly: failed\nnightly · main · 2026-11-21 02:30:00Z" });
    expect(slack?.headers).not.toHaveProperty("webhook-signature");
    const [card] = JSON.parse(teams?.body ?? "").attachments;
    expect(card.contentType).toBe("application/vnd.microsoft.card.adaptive");
  });

  it("keeps a chat's address out of every line", async () => {
    await deliver({
      format: "slack",
      secretFile: undefined,
      url: hook.url.replace("/hook", "/services/T00/B00/canary"),
    });
    expect(withoutSecrets("POST /services/T00/B00/canary")).not.toContain("canary");
  });

  const later = (status: number, afterMs?: number) => ({
    type: "later",
    status,
    reason: `answered with status ${status}`,
    afterMs,
  });
  it.each<[Answer, unknown]>([
    [{ status: 200 }, { type: "taken", status: 200 }],
    [{ status: 202 }, { type: "taken", status: 202 }],
    [{ status: 400 }, { type: "refused", status: 400, reason: "answered with status 400" }],
    [{ status: 422 }, { type: "refused", status: 422, reason: "answered with status 422" }],
    [{ status: 401 }, later(401)],
    [{ status: 404 }, later(404)],
    [{ status: 410 }, later(410)],
    [{ status: 429, headers: { "retry-after": "7" } }, later(429, 7_000)],
    [{ status: 503, headers: { "retry-after": "soon" } }, later(503)],
    [{ status: 500 }, later(500)],
  ])("that is answered with %j says %j", async (answer, expected) => {
    hook.answer = () => answer;
    expect(await deliver()).toEqual(expected);
  });

  it("follows no redirect", async () => {
    hook.answer = () => ({ status: 307, headers: { location: hook.url } });
    expect(await deliver()).toMatchObject({ type: "later", reason: expect.stringContaining("a redirect") });
    expect(hook.received).toHaveLength(1);
  });

  it("gives up an answer that does not come, and a receiver that is not there", async () => {
    hook.answer = () => "hold";
    expect(await deliver({ timeoutMs: 100 })).toMatchObject({
      type: "later",
      reason: expect.stringContaining("no answer (ETIMEDOUT"),
    });
    const { url } = hook;
    await hook.stop();
    expect(await deliver({ url })).toMatchObject({ type: "later", reason: expect.stringContaining("no answer (") });
    hook = await new Receiver().start();
  });

  it("that is stopped says so", async () => {
    hook.answer = () => "hold";
    const stop = new AbortController();
    const delivering = deliver({}, "n1", stop.signal);
    await hook.until(() => hook.received.length === 1);
    stop.abort();
    expect(await delivering).toEqual({ type: "stopped" });
  });

  it("waits when its secret is missing or none", async () => {
    writeFileSync(join(folder, "secret"), "hunter2-hunter2");
    const wrong = await deliver();
    expect(wrong).toMatchObject({ type: "later", reason: expect.stringContaining("holds no secret") });
    expect(JSON.stringify(wrong)).not.toContain("hunter2");
    rmSync(join(folder, "secret"));
    expect(await deliver()).toMatchObject({ type: "later", reason: expect.stringContaining("ENOENT") });
    expect(hook.received).toEqual([]);
  });
});
