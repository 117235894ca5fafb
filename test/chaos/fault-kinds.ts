// The kinds of faults of a trial: how a service meets a start, how it meets reads, and how its runs
// go. Plain data; carried out by faulty-service.ts, which notes in a ledger what it truly did.

/**
 * How a request is answered. `raw`: bytes of an answer as they are; then the connection is reset,
 * closed or left open.
 */
export type FaultAnswer =
  | { readonly say: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: string }
  | { readonly raw: string; readonly ending: "reset" | "close" | "hold" }
  | { readonly dripEveryMs: number };

/**
 * Whether a start that is met so is carried out: before the answer, never, as luck has it, or only
 * after the connection is gone.
 */
type Effect = "done" | "not-done" | "drawn" | "late";

/** How a start is met. */
interface FaultyStart {
  readonly effect: Effect;
  readonly answer: FaultAnswer;
}

/** How runs go; unless said, each ends well after a while and leaves nothing. */
interface RunManner {
  readonly neverEnds?: true;
  readonly fails?: true;
  readonly leavesConflicts?: true;
  /** How much later than its start an activity shows. */
  readonly lateMs?: number;
  /** Each activity stands twice in the list. */
  readonly isListedTwice?: true;
  /** A start makes two activities. */
  readonly isTwo?: true;
  /** Someone else starts the same sync jobs, too. */
  readonly hasRivals?: true;
}

/** One kind. What is not named is met as by a good service. */
export interface FaultKind {
  readonly start?: FaultyStart;
  /** Any GET. */
  readonly read?: FaultAnswer;
  readonly activities?: FaultAnswer;
  readonly conflicts?: FaultAnswer;
  readonly runs?: RunManner;
  /** Nothing listens for a while, again and again. */
  readonly isDown?: true;
  /** Connections are reset before a byte was read. */
  readonly resetsConnections?: true;
}

const okBody = '{"value":[]}';
const head = (status: number, more: string) =>
  `HTTP/1.1 ${status} Odd\r\ncontent-type: application/json\r\n${more}\r\n`;
const html = { "content-type": "text/html" };
const silence = { raw: "", ending: "hold" } as const;
const cut = { raw: `${head(200, "content-length: 500\r\n")}{"value":[`, ending: "reset" } as const;
const upgrade = { raw: "HTTP/1.1 101 Switching Protocols\r\nupgrade: odd\r\n\r\n", ending: "hold" } as const;
const badChunk = { raw: `${head(200, "transfer-encoding: chunked\r\n")}zz\r\n${okBody}\r\n`, ending: "close" } as const;
const badLength = {
  raw: `${head(500, "content-length: 12\r\ncontent-length: 13\r\n")}${okBody}`,
  ending: "close",
} as const;

/** A status with the same effect of every start, and the same answer to reads. */
function status(say: number, effect: Effect, headers: Readonly<Record<string, string>> = {}): FaultKind {
  return { start: { effect, answer: { say, headers } }, read: { say, headers } };
}

/** All kinds, by name. */
export const faultKinds: Readonly<Record<string, FaultKind>> = {
  well: {},
  "status-400": status(400, "not-done"),
  "status-401": status(401, "not-done"),
  "status-403": status(403, "not-done"),
  "status-404": status(404, "drawn"),
  "status-409-done": { start: { effect: "done", answer: { say: 409 } } },
  "status-409": status(409, "drawn"),
  "status-422": status(422, "drawn"),
  "status-429": status(429, "not-done"),
  "status-429-patience": status(429, "not-done", { "retry-after": "2" }),
  "status-500-done": status(500, "done"),
  "status-500": status(500, "not-done"),
  "status-502": status(502, "drawn"),
  "status-503": status(503, "drawn"),
  "status-503-patience": status(503, "not-done", { "retry-after": "2" }),
  "status-504-done": status(504, "done"),
  "status-504-late": { start: { effect: "late", answer: { say: 504 } } },
  redirect: status(302, "drawn", { location: "/login" }),
  html: {
    start: { effect: "drawn", answer: { say: 200, headers: html, body: "<html>log in</html>" } },
    read: { say: 200, headers: html, body: "<html>log in</html>" },
  },
  "cut-body": { start: { effect: "done", answer: cut }, read: cut },
  "time-out-not-done": { start: { effect: "not-done", answer: silence }, read: silence },
  "time-out-done": { start: { effect: "done", answer: silence }, read: silence },
  "time-out-late": { start: { effect: "late", answer: silence } },
  "reset-connection": { resetsConnections: true },
  "reset-not-done": {
    start: { effect: "not-done", answer: { raw: "", ending: "reset" } },
    read: { raw: "", ending: "reset" },
  },
  "reset-done": { start: { effect: "done", answer: { raw: "", ending: "reset" } } },
  "reset-after-head": {
    start: { effect: "done", answer: { raw: head(200, "content-length: 12\r\n"), ending: "reset" } },
    read: { raw: head(200, "content-length: 12\r\n"), ending: "reset" },
  },
  "status-101": { start: { effect: "drawn", answer: upgrade }, read: upgrade },
  drip: { start: { effect: "drawn", answer: { dripEveryMs: 100 } }, read: { dripEveryMs: 100 } },
  "bad-chunk": { start: { effect: "done", answer: badChunk }, read: badChunk },
  "bad-length": { start: { effect: "drawn", answer: badLength }, read: badLength },
  refused: { isDown: true },
  "activities-500": { activities: { say: 500 } },
  "activities-cut": { activities: cut, start: { effect: "done", answer: { say: 500 } } },
  "conflicts-unreadable": { conflicts: { say: 200, headers: html, body: "<html>" } },
  "never-ends": { runs: { neverEnds: true } },
  "late-activities": { runs: { lateMs: 2_500 }, start: { effect: "done", answer: { say: 500 } } },
  duplicates: { runs: { isListedTwice: true }, start: { effect: "done", answer: { say: 502 } } },
  "two-activities": { runs: { isTwo: true, fails: true } },
  rivals: { runs: { hasRivals: true }, start: { effect: "drawn", answer: { raw: "", ending: "reset" } } },
  "runs-fail": { runs: { fails: true }, start: { effect: "done", answer: { say: 500 } } },
  "runs-conflict": { runs: { leavesConflicts: true }, start: { effect: "done", answer: { say: 504 } } },
};
