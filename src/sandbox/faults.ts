// The faults on demand, as values and as texts (`lost-answer,op=RunSyncJob,every=3`). Used by the
// command line and by `/_sandbox/faults`; fault-plan.ts decides when one applies.
import { UsageError } from "../core/errors.ts";
import { cutText } from "../core/plain-text.ts";
import { type OperationName, operationNames } from "./operation-names.ts";
import { describeUnknownWord, findWord } from "./suggest.ts";

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

/**
 * What happens. `latency`: a late answer (the change happens after the wait, also when the caller
 * has gone). `200-before`, `401`, `429`, `503`, `500-before`: that status, nothing changed.
 * `500-after`: changed, then 500. `reset`: connection reset, nothing changed. `lost-answer`:
 * changed, then reset without an answer. `truncate`: half of the answer, then reset. `drip`: the
 * body byte by byte.
 */
type FaultKind = (typeof faultKinds)[number];

/**
 * A fault and the requests it hits. All conditions must hold; a fault without conditions hits every
 * request.
 */
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
  /**
   * `latency`: the wait in milliseconds, default 500. `drip`: the wait before each byte, default
   * 200.
   */
  readonly delayMs?: number;
  /** `429` and `503`: the Retry-After header in seconds. Default 1 for 429, none for 503. */
  readonly retryAfterSeconds?: number;
}

/** The most faults at once. */
export const faultsMax = 100;

const settings = ["op", "key", "after", "first", "every", "rate", "times", "ms", "retryAfter"] as const;
type Setting = (typeof settings)[number];

const onlyFor: Partial<Record<Setting, readonly FaultKind[]>> = { ms: ["latency", "drip"], retryAfter: ["429", "503"] };

/**
 * Reads
 * `KIND[,op=RunSyncJob][,key=42][,after=N][,first=N][,every=N][,rate=0.1][,times=N][,ms=500][,retryAfter=2]`.
 * @throws UsageError that names the wrong word, what is allowed, and the nearest allowed word.
 */
export function parseFault(text: string): Fault {
  const fail = (reason: string) => new UsageError(`fault "${cutText(text, 200)}": ${reason}`);
  const [kindText = "", ...pairs] = text.split(",").map((part) => part.trim());
  const kind = findWord(kindText, faultKinds);
  if (kind === undefined) throw fail(describeUnknownWord(kindText, "a kind of fault", faultKinds));
  const given = new Map<Setting, string>();
  for (const pair of pairs) {
    const [name = "", value, ...rest] = pair.split("=").map((part) => part.trim());
    const setting = findWord(name, settings);
    if (setting === undefined) throw fail(describeUnknownWord(name, "a setting of a fault", settings));
    if (value === undefined || value === "" || rest.length > 0) throw fail(`write ${name}=VALUE`);
    if (given.has(setting)) throw fail(`${name} is given twice`);
    if (onlyFor[setting]?.includes(kind) === false) {
      throw fail(`${name} goes with ${onlyFor[setting].join(" and ")} only`);
    }
    given.set(setting, value);
  }
  return toFault(kind, given, fail);
}

function toFault(kind: FaultKind, given: ReadonlyMap<Setting, string>, fail: (reason: string) => UsageError): Fault {
  const whole = (name: Setting, lowest: number, highest: number): number | undefined => {
    const text = given.get(name);
    if (text === undefined) return undefined;
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= lowest && value <= highest) return value;
    throw fail(`${name} is "${text}"; it must be a whole number from ${lowest} to ${highest}`);
  };
  const fault: { -readonly [Name in keyof Fault]: Fault[Name] | undefined } = {
    kind,
    operation: readOperation(given.get("op"), fail),
    key: given.get("key"),
    after: whole("after", 0, 1_000_000),
    first: whole("first", 1, 1_000_000),
    every: whole("every", 1, 1_000_000),
    rate: readRate(given.get("rate"), fail),
    times: whole("times", 1, 1_000_000),
    delayMs: whole("ms", 1, 600_000),
    retryAfterSeconds: whole("retryAfter", 0, 86_400),
  };
  return Object.assign(
    { kind },
    ...Object.entries(fault).map(([name, value]) => (value === undefined ? {} : { [name]: value })),
  );
}

function readOperation(text: string | undefined, fail: (reason: string) => UsageError): OperationName | undefined {
  if (text === undefined) return undefined;
  const operation = findWord(text, operationNames);
  if (operation === undefined) throw fail(describeUnknownWord(text, "an operation", operationNames));
  return operation;
}

function readRate(text: string | undefined, fail: (reason: string) => UsageError): number | undefined {
  if (text === undefined) return undefined;
  const rate = /^[01]?(\.\d{1,9})?$/.test(text) ? Number(text) : Number.NaN;
  if (rate > 0 && rate <= 1) return rate;
  throw fail(`rate is "${text}"; it must be above 0 and at most 1, such as 0.1`);
}
