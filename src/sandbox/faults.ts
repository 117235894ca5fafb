// The faults on demand, as values and as texts (`lost-answer,op=RunSyncJob,every=3`), what each
// does, and which one hits a request. Used by exchange.ts, the command line and `/_sandbox/faults`.
import { UsageError } from "../core/errors.ts";
import { describeUnknownWord, findWord } from "../core/nearest-word.ts";
import { cutText } from "../core/plain-text.ts";
import { type OperationName, operationNames } from "./address.ts";
import type { Chance } from "./chance.ts";
import { errorReply, hollowReply, type Reply, unauthorizedReply } from "./reply.ts";

/** Every kind of fault. */
export const faultKinds = [
  "latency",
  "401",
  "429",
  "503",
  "200-before",
  "500-before",
  "500-after",
  "reset",
  "lost-answer",
  "truncate",
  "drip",
] as const;

type FaultKind = (typeof faultKinds)[number];

/** `instead`: comes instead of the work. `answer`: what becomes of the answer after the work. */
interface FaultEffect {
  readonly instead?: (fault: Fault) => Reply | "cut";
  readonly answer?: "cut" | "half" | "drip" | "500";
}

/** What each fault does. A latency only delays, also when the caller has gone meanwhile. */
export const faultEffects: Readonly<Record<FaultKind, FaultEffect>> = {
  latency: {},
  "401": { instead: () => unauthorizedReply },
  "429": {
    instead: ({ retryAfterSeconds = 1 }) => errorReply(429, "Too many requests.", retryAfter(retryAfterSeconds)),
  },
  "503": { instead: ({ retryAfterSeconds }) => errorReply(503, "Not available.", retryAfter(retryAfterSeconds)) },
  "200-before": { instead: () => hollowReply },
  "500-before": { instead: () => errorReply(500, "The server failed before it did anything.") },
  "500-after": { answer: "500" },
  reset: { instead: () => "cut" },
  "lost-answer": { answer: "cut" },
  truncate: { answer: "half" },
  drip: { answer: "drip" },
};

/** A fault and the requests it hits: those for which all conditions hold. */
export interface Fault {
  readonly kind: FaultKind;
  /** Only this operation. */
  readonly operation?: OperationName;
  /** Only this key in the path, e.g. `42`. */
  readonly key?: string;
  /** Leaves out the first N matching requests. */
  readonly after?: number;
  /** Only the first N of those that follow. */
  readonly first?: number;
  /** Only every Nth of the rest. */
  readonly every?: number;
  /** A chance above 0, up to 1; the same for the same seed. */
  readonly rate?: number;
  /** Hits N times at most. */
  readonly times?: number;
  /** `latency`: the wait, default 500. `drip`: the wait before each byte, default 200. */
  readonly delayMs?: number;
  /** `429` and `503`: the Retry-After header. Default 1 for 429, none for 503. */
  readonly retryAfterSeconds?: number;
}

/** The most faults at once. */
export const faultsMax = 100;

type Fail = (reason: string) => UsageError;

interface Setting {
  readonly field: Exclude<keyof Fault, "kind">;
  readonly read: (text: string, fail: Fail) => string | number;
  readonly only?: readonly FaultKind[];
}

const settings: Readonly<Record<string, Setting>> = {
  op: { field: "operation", read: readOperation },
  key: { field: "key", read: (text) => text },
  after: { field: "after", read: whole("after", 0, 1_000_000) },
  first: { field: "first", read: whole("first", 1, 1_000_000) },
  every: { field: "every", read: whole("every", 1, 1_000_000) },
  rate: { field: "rate", read: readRate },
  times: { field: "times", read: whole("times", 1, 1_000_000) },
  ms: { field: "delayMs", read: whole("ms", 1, 600_000), only: ["latency", "drip"] },
  retryAfter: { field: "retryAfterSeconds", read: whole("retryAfter", 0, 86_400), only: ["429", "503"] },
};

/**
 * Reads
 * `KIND[,op=RunSyncJob][,key=42][,after=N][,first=N][,every=N][,rate=0.1][,times=N][,ms=500][,retryAfter=2]`.
 * @throws UsageError that names the wrong word, what is allowed, and the nearest allowed word.
 */
export function parseFault(text: string): Fault {
  const fail: Fail = (reason) => new UsageError(`fault "${cutText(text, 200)}": ${reason}`);
  const [kindText = "", ...pairs] = text.split(",").map((part) => part.trim());
  const kind = findWord(kindText, faultKinds);
  if (kind === undefined) throw fail(describeUnknownWord(kindText, "a kind of fault", faultKinds));
  const fault: Record<string, string | number> = {};
  for (const pair of pairs) {
    const [name = "", value, ...rest] = pair.split("=").map((part) => part.trim());
    const setting = Object.hasOwn(settings, name) ? settings[name] : undefined;
    if (setting === undefined) throw fail(describeUnknownWord(name, "a setting of a fault", Object.keys(settings)));
    const { field, read, only } = setting;
    if (value === undefined || value === "" || rest.length > 0) throw fail(`write ${name}=VALUE`);
    if (field in fault) throw fail(`${name} is given twice`);
    if (only?.includes(kind) === false) throw fail(`${name} goes with ${only.join(" and ")} only`);
    fault[field] = read(value, fail);
  }
  return { kind, ...fault };
}

function whole(name: string, lowest: number, highest: number): Setting["read"] {
  return (text, fail) => {
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= lowest && value <= highest) return value;
    throw fail(`${name} is "${text}"; it must be a whole number from ${lowest} to ${highest}`);
  };
}

function readOperation(text: string, fail: Fail): string {
  if (findWord(text, operationNames) === undefined)
    throw fail(describeUnknownWord(text, "an operation", operationNames));
  return text;
}

function readRate(text: string, fail: Fail): number {
  const rate = /^[01]?(\.\d{1,9})?$/.test(text) ? Number(text) : Number.NaN;
  if (rate > 0 && rate <= 1) return rate;
  throw fail(`rate is "${text}"; it must be above 0 and at most 1, such as 0.1`);
}

function retryAfter(seconds: number | undefined): Record<string, string> {
  return seconds === undefined ? {} : { "Retry-After": String(seconds) };
}

/** What goes wrong with one request: a wait, and at most one other fault. */
export interface Strike {
  readonly delayMs: number;
  readonly fault: Fault | undefined;
}

/** A fault, how many requests it matched, and how many of them it hit. */
export interface FaultCounts {
  readonly fault: Fault;
  readonly matched: number;
  readonly struck: number;
}

/** The faults of one sandbox, with their counts. */
export class FaultPlan {
  readonly #chance: Chance;
  readonly #lines: { readonly fault: Fault; matched: number; struck: number }[];

  constructor(faults: readonly Fault[], chance: Chance) {
    this.#chance = chance;
    this.#lines = faults.map((fault) => ({ fault, matched: 0, struck: 0 }));
  }

  /** Decides for one request: latencies add up; of the others the first that matches applies. */
  decide(operation: OperationName, key: string): Strike {
    let delayMs = 0;
    let struck: Fault | undefined;
    this.#lines.forEach((line, index) => {
      const { fault } = line;
      if (fault.operation !== undefined && fault.operation !== operation) return;
      if (fault.key !== undefined && fault.key !== key) return;
      line.matched += 1;
      if (fault.kind !== "latency" && struck !== undefined) return;
      if (!this.#strikes(line, index)) return;
      line.struck += 1;
      if (fault.kind === "latency") delayMs += fault.delayMs ?? 500;
      else struck = fault;
    });
    return { delayMs, fault: struck };
  }

  /** The faults, and how often each matched and hit. */
  counts(): readonly FaultCounts[] {
    return this.#lines.map((line) => ({ ...line }));
  }

  #strikes(line: FaultCounts, index: number): boolean {
    const { after = 0, first = Infinity, every = 1, times = Infinity, rate = 1 } = line.fault;
    const number = line.matched - after;
    if (number < 1 || number > first || number % every !== 0 || line.struck >= times) return false;
    return rate >= 1 || this.#chance("fault", index, line.matched) < rate;
  }
}
