// Helpers of the sandbox tests: a plain HTTP caller that knows nothing of the sandbox's code, and a
// clock that is set by hand.
import { onTestFinished } from "vitest";
import type { Clock } from "../../../src/core/clock.ts";
import type { SandboxOptions } from "../../../src/sandbox/options.ts";
import { type Sandbox, startSandbox } from "../../../src/sandbox/sandbox.ts";

/** What came back. `json` is undefined when the body is not JSON. */
export interface Answer {
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into bodies of any shape
  readonly json: any;
}

/** What to send, besides method and path. */
export interface Extras {
  readonly token?: string | null;
  readonly body?: unknown;
  /** Sent as it is, instead of `body`. */
  readonly rawBody?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** Starts a sandbox that stops with the test. */
export async function freshSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const sandbox = await startSandbox({ repositories: ["HR", "FIN"], ...options });
  onTestFinished(() => sandbox.stop());
  return sandbox;
}

/** Sends one request, e.g. `send(sandbox, "GET /odata/trigger")`. */
export async function send(sandbox: Sandbox, line: string, extras: Extras = {}): Promise<Answer> {
  const [method = "", target = ""] = line.split(" ");
  const url = /^https?:/.test(target) ? target : sandbox.baseUrl + target;
  const token = extras.token === undefined ? sandbox.token : extras.token;
  const body = extras.rawBody ?? (extras.body === undefined ? undefined : JSON.stringify(extras.body));
  const response = await fetch(url, {
    method,
    headers: {
      ...(token === null ? {} : { Authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { "Content-Type": "application/json" }),
      ...extras.headers,
    },
    ...(body === undefined ? {} : { body }),
    ...(extras.signal === undefined ? {} : { signal: extras.signal }),
  });
  const text = await response.text();
  return { status: response.status, text, headers: response.headers, json: readJson(text) };
}

/** A wall clock that stands still until it is moved. Its waits end at once. */
export function handClock(startMs = Date.UTC(2026, 10, 21, 2, 30)): Clock & { advance(durationMs: number): void } {
  let nowMs = startMs;
  return {
    nowMs: () => nowMs,
    monotonicMs: () => nowMs - startMs,
    sleep: () => Promise.resolve(),
    every: () => () => {},
    advance: (durationMs) => {
      nowMs += durationMs;
    },
  };
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
