// The error table as the code has it, in Markdown: what docs/errors.md must hold. `node test/support/error-table.ts` prints it.

import type { ErrorKind } from "../../src/core/error-kind.ts";
import { statusKind } from "../../src/service/failure-kind.ts";
import { documentedStatus, factsOf, type Operation, operationNames } from "../../src/service/operations.ts";
import { retryWaitMs } from "../../src/service/retry.ts";
import { ServiceError } from "../../src/service/service-error.ts";
import type { TaskKind } from "../../src/tasks/task.ts";
import { goneMeanwhile } from "../../src/work/delete-endings.ts";
import { judge, reasonOf } from "../../src/work/judge.ts";

import { applyRows } from "./apply-table.ts";

/** One row: what happens to an exchange, and the kind of failure it is. */
interface Row {
  readonly what: string;
  readonly kind: ErrorKind;
  readonly status?: number;
  readonly sent: "no" | "maybe";
  readonly retryAfterMs?: number;
}

const statuses = [
  300, 301, 302, 303, 304, 307, 308, 400, 401, 403, 404, 405, 408, 409, 410, 412, 413, 422, 428, 429, 500, 501, 502,
  503, 504, 507,
];

const rows: readonly Row[] = [
  ...statuses.map(
    (status) => ({ what: String(status), status, kind: statusKind(status, undefined), sent: "maybe" }) as const,
  ),
  { what: "503 with Retry-After", status: 503, kind: statusKind(503, 1_000), sent: "maybe", retryAfterMs: 1_000 },
  { what: "DNS, refused, TLS, connection time-out; no token for now", kind: "unreachable", sent: "no" },
  { what: "reset, cut or time-out after the connection stood", kind: "unknown", sent: "maybe" },
  { what: "2xx of the wrong shape or size; a login page", kind: "contract", sent: "maybe" },
  { what: "no usable token", kind: "unauthorized", sent: "no" },
  { what: "stopped by Syncline before the first byte", kind: "cancelled", sent: "no" },
  { what: "stopped by Syncline after it", kind: "cancelled", sent: "maybe" },
];

const meaning = {
  "give-up": "give up",
  retry: "later again",
  wait: "wait, no attempt spent",
  verify: "verify, never repeat",
  again: "go on where it was",
} as const;

/** What a run or activation ends as when this is the last word. */
function lastWord(row: Row, task: TaskKind): string {
  const verdict = judge(row, task);
  if (verdict === "verify")
    return `unknown (${reasonOf[row.kind] === "crashed" ? "answer-lost" : reasonOf[row.kind]}) unless confirmed`;
  if (verdict === "wait" || verdict === "again") return "missed (too-late)";
  return `not-started (${reasonOf[row.kind]})`;
}

/** What a deletion ends as when this is what becomes of its DELETE. */
function deletion(row: Row): string {
  if (row.status === 404) return `${goneMeanwhile.status} (${goneMeanwhile.reason})`;
  if (judge(row, "delete") === "verify")
    return "read again: succeeded (deletion-confirmed), failed (still-there) or unknown";
  return lastWord(row, "delete");
}

function insideCall(row: Row, operation: Operation): string {
  if (row.status === 401) return "token renewed once";
  const { method, path } = factsOf(operation);
  const error = new ServiceError({ ...row, operation, method, path, problem: "" });
  return retryWaitMs(error, { tries: 1, retriesMax: 2, random: () => 0 }) === undefined ? "–" : "2 more tries";
}

/** The three tables: every failure by what becomes of it in a start and a read, and in `apply`; and every operation's documented statuses. */
export function errorTable(): string {
  const failures = rows.map((row) => [
    row.what,
    `\`${row.kind}\``,
    insideCall(row, "RunSyncJob"),
    meaning[judge(row, "run")],
    lastWord(row, "run"),
    insideCall(row, "GetActivities"),
    meaning[judge(row, "poll")],
    deletion(row),
  ]);
  const documented = operationNames.map((operation) => [
    `${operation} (${factsOf(operation).method})`,
    ...[400, 401, 404, 500].map(
      (status) => documentedStatus(operation, status)?.replace(" (service-interface §7)", "") ?? "not documented",
    ),
  ]);
  return [
    table(
      [
        "answer or failure",
        "kind",
        "start: inside the call",
        "start: verdict",
        "start: last word",
        "read: inside the call",
        "read: verdict",
        "deletion: last word",
      ],
      failures,
    ),
    table(...applyRows(rows)),
    table(["operation", "400", "401", "404", "500"], documented),
  ].join("\n\n");
}

function table(head: readonly string[], body: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...body.map(line)].join("\n");
}

if (import.meta.main) process.stdout.write(`${errorTable()}\n`);
