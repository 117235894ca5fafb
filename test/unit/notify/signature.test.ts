import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { readSigningSecret, sign } from "../../../src/notify/webhook.ts";

describe("the signature of a webhook", () => {
  it("is that of the published example of Standard Webhooks", () => {
    const key = readSigningSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n");
    const content = { id: "msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp: 1_614_265_330, body: '{"test": 2432232314}' };
    expect(key && sign(content, [key])).toBe("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
  });

  it("covers id, timestamp and body, each", () => {
    const key = Buffer.alloc(32, 7);
    const content = { id: "a", timestamp: 1, body: "b" };
    expect(sign(content, [key])).toBe(`v1,${createHmac("sha256", key).update("a.1.b").digest("base64")}`);
    const others = [
      { ...content, id: "c" },
      { ...content, timestamp: 2 },
      { ...content, body: "d" },
    ];
    expect(new Set([content, ...others].map((one) => sign(one, [key]))).size).toBe(4);
  });

  it("has one part for each key", () => {
    const content = { id: "a", timestamp: 1, body: "b" };
    const [one, two] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
    expect(sign(content, [one, two])).toBe(`${sign(content, [one])} ${sign(content, [two])}`);
  });

  it.each([
    ["without its prefix", Buffer.alloc(32).toString("base64")],
    ["too short", `whsec_${Buffer.alloc(23).toString("base64")}`],
    ["too long", `whsec_${Buffer.alloc(65).toString("base64")}`],
    ["no base64", "whsec_***"],
    ["empty", ""],
  ])("takes no secret that is %s", (_, text) => {
    expect(readSigningSecret(text)).toBe(undefined);
  });
});
