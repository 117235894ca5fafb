// The error table as the code has it, in Markdown: what docs/outcomes.md must hold. `node
// test/support/error-table.ts` prints it.

import type { ErrorKind } from "../../src/core/errors.ts";
import type { TaskKind } from "../../src/model/task.ts";
import { retryWaitMs } from "../../src/service/call.ts";
import { statusKind } from "../../src/service/call-failure.ts";
import { factsOf, type Operation } from "../../src/service/operations.ts";
import { ServiceError } from "../../src/service/service-error.ts";
import { doubtOf, judge, reasonOf } from "../../src/tasks/judge.ts";
import { goneMeanwhile } from "../../src/tasks/send-start.ts";
import { endingOf } from "../../src/tasks/verify.ts";
import { applyRows, giveUp, inTurn } from "./apply-table.ts";

/** One row: what happens to an exchange, and the kind of failure it is. */
interface Row {
  readonly what: string;
  readonly kind: ErrorKind;
  readonly status?: number;
  readonly sent: "no" | "maybe";
  readonly retryAfterMs?: number;
}

const statuses = [
  101, 300, 301, 302, 303, 304, 307, 308, 400, 401, 403, 404, 405, 408, 409, 410, 412, 413, 422, 428, 429, 500, 501,
  502, 503, 504, 507, 600,
];

const rows: readonly Row[] = [
  ...statuses.map(
    (status) => ({ what: String(status), status, kind: statusKind(status, undefined), sent: "maybe" }) as const,
  ),
  { what: "503 with Retry-After", status: 503, kind: statusKind(503, 1_000), sent: "maybe", retryAfterMs: 1_000 },
  { what: "DNS, refused, TLS, connection time-out; no token for now", kind: "unreachable", sent: "no" },
  { what: "reset, cut or time-out after the connection stood", kind: "answer-lost", sent: "maybe" },
  {
    what: "2xx of the wrong shape or size; a login page; a proxy's 404, or its 400 for a read or an update",
    kind: "contract",
    sent: "maybe",
  },
  { what: "no usable token", kind: "unauthorized", sent: "no" },
  { what: "stopped by Syncline before the first byte", kind: "cancelled", sent: "no" },
  { what: "stopped by Syncline after it", kind: "cancelled", sent: "maybe" },
];

const meaning = {
  end: giveUp,
  retry: "later again",
  defer: "wait",
  verify: "verify",
  resume: "go on",
} as const;

/** What a run or activation ends as when this is the last word. */
function lastWord(row: Row, task: TaskKind): string {
  const verdict = judge(row, task);
  if (verdict === "verify") return `unknown (${endingOf({ kind: doubtOf(row.kind), detail: "", atMs: 0 }).reason})`;
  if (verdict === "defer") return "missed (throttled)";
  if (verdict === "resume") return "missed (too-late)";
  return `not-started (${reasonOf(row.kind)})`;
}

/** What a deletion ends as when this is what becomes of its DELETE. */
function deletion(row: Row): string {
  if (row.status === 404) return `${goneMeanwhile.status} (${goneMeanwhile.reason})`;
  if (judge(row, "delete") === "verify") return "read again";
  return lastWord(row, "delete");
}

function insideCall(row: Row, operation: Operation): string | undefined {
  if (row.status === 401) return "token renewed once";
  const { method, path } = factsOf(operation);
  const error = new ServiceError({ ...row, operation, method, path, problem: "" });
  return retryWaitMs(error, { tries: 1, retriesMax: 2, random: () => 0 }) === undefined ? undefined : "2 more tries";
}

/**
 * The two tables: what becomes of every failure in a start, a read and a deletion; and in `apply`.
 */
export function errorTable(): string {
  const failures = rows.map((row) => [
    row.what,
    `\`${row.kind}\``,
    inTurn(insideCall(row, "RunSyncJob"), meaning[judge(row, "run")], lastWord(row, "run")),
    inTurn(insideCall(row, "GetActivities"), meaning[judge(row, "poll")]),
    deletion(row),
  ]);
  const [applyHead, apply] = applyRows(rows);
  return [
    table(["answer or failure", "kind", "start", "read", "deletion: last word"], grouped(failures)),
    table(applyHead, grouped(apply)),
  ].join("\n\n");
}

/** One row for all that come to the same, in the order of the first of each. */
function grouped(body: readonly (readonly string[])[]): readonly (readonly string[])[] {
  const groups = new Map<string, { readonly what: string[]; readonly rest: readonly string[] }>();
  for (const [what = "", ...rest] of body) {
    const group = groups.get(rest.join("|")) ?? { what: [], rest };
    group.what.push(what);
    groups.set(rest.join("|"), group);
  }
  return [...groups.values()].map(({ what, rest }) => [
    what.join(", ").replace("300, 301, 302, 303, 304, 307, 308", "3xx"),
    ...rest,
  ]);
}

function table(head: readonly string[], body: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")).replaceAll(" ", ""), ...body.map(line)].join("\n");
}

if (import.meta.main) process.stdout.write(`${errorTable()}\n`);
