// Signs a webhook as Standard Webhooks 1.0 asks (symmetric, v1): HMAC-SHA256 over id, timestamp and
// body. Called by webhook.ts.
import { createHmac } from "node:crypto";

const secretPattern = /^whsec_([A-Za-z0-9+/]+={0,2})$/;
const [secretBytesMin, secretBytesMax] = [24, 64];

/** What is signed. `timestamp`: seconds since 1970. */
export interface SignedContent {
  readonly id: string;
  readonly timestamp: number;
  readonly body: string;
}

/** The key in a secret; undefined when the text is none: `whsec_` and 24 to 64 bytes in base64. */
export function readSigningSecret(text: string): Buffer | undefined {
  const base64 = secretPattern.exec(text.trim())?.[1];
  if (base64 === undefined) return undefined;
  const key = Buffer.from(base64, "base64");
  return key.length >= secretBytesMin && key.length <= secretBytesMax ? key : undefined;
}

/**
 * The value of `webhook-signature`: one signature per key, separated by a space. A receiver accepts
 * any that it can verify.
 */
export function sign({ id, timestamp, body }: SignedContent, keys: readonly Buffer[]): string {
  return keys
    .map((key) => `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64")}`)
    .join(" ");
}
