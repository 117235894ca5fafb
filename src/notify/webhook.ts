// The webhook sink: one POST per try, signed as Standard Webhooks 1.0 asks (HMAC-SHA256 over id,
// timestamp and body). Its transport has no token or certificate of a service and follows no
// redirect. The answer decides what becomes of the notice (docs/notifications.md).
import { createHmac } from "node:crypto";
import type { WebhookSettings } from "../config/policy-set.ts";
import { type Clock, systemClock } from "../core/clock.ts";
import { toPlainText } from "../core/plain-text.ts";
import { noteSecret } from "../core/secrets.ts";
import type { Notice } from "../model/notice.ts";
import { parseRetryAfter } from "../service/call-failure.ts";
import { defaultTimeouts, timeoutsWithin } from "../service/service-options.ts";
import { tlsHint } from "../service/tls-files.ts";
import { readBounded } from "../service/token.ts";
import { type ExchangeResult, Transport } from "../service/transport.ts";
import { toBody } from "./render-notice.ts";
import type { Receipt, Sink } from "./sink.ts";

const answerBytesMax = 64 * 1024;
const secretFileBytesMax = 1_024;
const saidCharactersMax = 200;
const secretPattern = /^whsec_([A-Za-z0-9+/]+={0,2})$/;
const [keyBytesMin, keyBytesMax] = [24, 64];

/**
 * Statuses about this one notice: the receiver will never take it. Every other one outside 2xx
 * would hit all notices: a proxy's 404, a 401 while a secret changes, a moved address.
 */
const refusals = new Set([400, 406, 413, 414, 415, 422, 431]);

/** Makes a webhook sink. It opens nothing yet. */
export function createWebhook(settings: WebhookSettings, clock: Pick<Clock, "nowMs"> = systemClock): Sink {
  const url = new URL(settings.url);
  // The path of a chat's URL is its password; the query of any URL may be one.
  if (settings.format !== "cloudevents") noteSecret(url.pathname, "lasting");
  noteSecret(url.search, "lasting");
  const transport = new Transport(1);
  return {
    deliver: async (notice, signal) => {
      const keys = await readSigningKeys(settings);
      if ("reason" in keys) return { type: "later", reason: keys.reason };
      const { contentType, text } = toBody(notice, settings.format);
      const result = await transport.send({
        method: "POST",
        url,
        headers: { ...headersOf(notice, { text, keys, nowMs: clock.nowMs() }), "content-type": contentType },
        body: text,
        isDedicated: false,
        timeouts: { ...defaultTimeouts, ...timeoutsWithin(settings.timeoutMs) },
        bodyBytesMax: answerBytesMax,
        signal,
      });
      return toReceipt(result, clock.nowMs());
    },
    close: () => transport.close(),
  };
}

function headersOf(
  notice: Notice,
  { text, keys, nowMs }: { readonly text: string; readonly keys: readonly Buffer[]; readonly nowMs: number },
): Record<string, string> {
  // A header allows fewer characters than an id; plain ids stay as they are.
  const id = encodeURIComponent(notice.id.toWellFormed());
  const timestamp = Math.floor(nowMs / 1_000);
  return {
    "user-agent": "syncline",
    "webhook-id": id,
    "webhook-timestamp": String(timestamp),
    ...(keys.length === 0 ? {} : { "webhook-signature": sign({ id, timestamp, body: text }, keys) }),
  };
}

/** The signing keys, or why there are none. Read for each try: a rotated secret applies at once. */
export async function readSigningKeys(
  settings: Pick<WebhookSettings, "secretFile" | "previousSecretFile">,
): Promise<readonly Buffer[] | { readonly reason: string }> {
  const { secretFile, previousSecretFile } = settings;
  if (secretFile === undefined) return [];
  const key = await readKey(secretFile);
  if ("reason" in key) return key;
  // A missing previous secret was rotated away.
  const previous = previousSecretFile === undefined ? undefined : await readKey(previousSecretFile);
  return previous === undefined || "reason" in previous ? [key.key] : [key.key, previous.key];
}

async function readKey(path: string): Promise<{ readonly key: Buffer } | { readonly reason: string }> {
  const read = await readBounded(path, secretFileBytesMax);
  if ("code" in read)
    return { reason: `secret file ${path} cannot be read (${read.code}): check the path and its rights` };
  noteSecret(read.text.trim());
  noteSecret(read.text.trim().replace(/^whsec_/, ""));
  const key = readSigningSecret(read.text);
  return key === undefined
    ? { reason: `secret file ${path} holds no secret: write whsec_ and 24 to 64 bytes in base64` }
    : { key };
}

/** The key in a secret; undefined when the text is none: `whsec_` and 24 to 64 bytes in base64. */
export function readSigningSecret(text: string): Buffer | undefined {
  const base64 = secretPattern.exec(text.trim())?.[1];
  if (base64 === undefined) return undefined;
  const key = Buffer.from(base64, "base64");
  return key.length >= keyBytesMin && key.length <= keyBytesMax ? key : undefined;
}

/** The value of `webhook-signature`: one signature per key. `timestamp`: seconds since 1970. */
export function sign(
  { id, timestamp, body }: { readonly id: string; readonly timestamp: number; readonly body: string },
  keys: readonly Buffer[],
): string {
  return keys
    .map((key) => `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64")}`)
    .join(" ");
}

function toReceipt(result: ExchangeResult, nowMs: number): Receipt {
  const { status, headers } = result;
  // The status decides, even when the body fails.
  if (result.type === "answer" || status !== undefined) {
    const said = result.type === "answer" ? toPlainText(result.text, saidCharactersMax).trim() : "";
    return { ...judgeStatus(Number(status), headers, nowMs), ...(said === "" ? {} : { said }) };
  }
  if (result.failure === "aborted") return { type: "stopped" };
  const hint = tlsHint(result.code);
  return { type: "later", reason: `no answer (${result.code})${hint === undefined ? "" : `: ${hint}`}` };
}

function judgeStatus(status: number, headers: ExchangeResult["headers"], nowMs: number): Receipt {
  if (status >= 200 && status < 300) return { type: "taken", status };
  const reason = `answered with status ${status}`;
  if (refusals.has(status)) return { type: "refused", status, reason };
  if (status >= 300 && status < 400)
    return { type: "later", status, reason: `${reason}, a redirect, which is never followed: check url` };
  return { type: "later", status, reason, afterMs: parseRetryAfter(headers, nowMs) };
}
