// A text as HTTP knows it: its tag and its packed bytes are made once, however many ask for it.
// Used by the routes of the pages and the API, and for the files that pages load.
import { hash } from "node:crypto";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Context } from "hono";
import { takesGzip } from "../core/http-server.ts";

const pack = promisify(gzip);
/** Shorter texts gain nothing. */
const packedFrom = 1_024;

/** A text that is sent. */
export class Representation {
  readonly text: string;
  readonly type: string;
  /** The same for the same text. */
  readonly tag: string;
  #packed: Promise<Uint8Array<ArrayBuffer>> | undefined;

  constructor(text: string, type: string) {
    this.text = text;
    this.type = type;
    this.tag = `W/"${hash("sha1", text, "base64url")}"`;
  }

  /** The bytes of gzip; undefined: the text is too short. */
  get packed(): Promise<Uint8Array<ArrayBuffer>> | undefined {
    if (this.text.length < packedFrom) return undefined;
    this.#packed ??= pack(this.text);
    return this.#packed;
  }
}

/** Answers with a text, or that the caller has it. */
export async function send(c: Context, sent: Representation): Promise<Response> {
  c.header("etag", sent.tag);
  c.header("vary", "Accept-Encoding", { append: true });
  const known = c.req.header("if-none-match") ?? "";
  if (known === "*" || known.split(",").some((tag) => `W/${tag.trim().replace("W/", "")}` === sent.tag))
    return c.body(null, 304);
  c.header("content-type", sent.type);
  const packed = takesGzip(c.req.header("accept-encoding")) ? await sent.packed : undefined;
  if (packed !== undefined) c.header("content-encoding", "gzip");
  return c.body(packed ?? sent.text);
}
