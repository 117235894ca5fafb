// A poll task: reads a list or only its count, and holds it against the policy's expectation. Changes nothing anywhere.
import { type Expression, firstLine, parseExpression } from "../core/expression.ts";
import type { ListName } from "../core/list-name.ts";
import type { ItemReader } from "../feeds/mapping.ts";
import { operationOf } from "../feeds/service-lists.ts";
import type { SyncService } from "../service/client.ts";
import { ServiceError } from "../service/service-error.ts";
import type { Attempt } from "../tasks/seams.ts";
import type { Task } from "../tasks/task.ts";
import { feedOf } from "./evidence.ts";
import { waitAfter } from "./held.ts";
import { judge, reasonOf } from "./judge.ts";
import type { WorkParts } from "./parts.ts";
import { type Ending, end, type Step } from "./step.ts";

/** The most items a poll reads for an expectation over `items`. */
const pollItemsMax = 10_000;

/** Reads and judges the list once. */
export async function stepPoll(task: Task, parts: WorkParts, attempt: Attempt): Promise<Step> {
  const policy = parts.policy(task.policy);
  const service = parts.service(task.service);
  if (policy?.action.kind !== "poll" || service === undefined) {
    const detail = `policy ${task.policy} is not configured any more`;
    return end({ status: "skipped", evidence: "direct", reason: "policy-removed", detail });
  }
  const { list, expect } = policy.action;
  const startedAtMs = await parts.nowMs();
  if (startedAtMs > task.startByMs) {
    const detail = "its turn came after its start-by time";
    return end({ status: "missed", evidence: "direct", reason: "too-late", detail });
  }
  try {
    const expression = expect === undefined ? undefined : parseExpression(expect, "list");
    const read = await readList(service, {
      list,
      repository: task.repository,
      items: expression?.uses("items") ?? false,
      reader: parts.itemReader(feedOf(task, list)),
      signal: attempt.signal,
    });
    return end({ ...judgeList(expression, read), count: read.count, startedAtMs });
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return onFailure(task, error, startedAtMs);
  }
}

interface ListRead {
  readonly count: number;
  readonly items: readonly unknown[];
}

interface Reading {
  readonly list: ListName;
  readonly repository: string | null;
  readonly items: boolean;
  readonly reader: ItemReader | undefined;
  readonly signal: AbortSignal;
}

async function readList(
  service: SyncService,
  { list, repository, items: wanted, reader, signal }: Reading,
): Promise<ListRead> {
  const query = repository === null ? {} : { repository };
  if (!wanted) return { count: await service.count(operationOf[list], query, { signal }), items: [] };
  const items = new Map<unknown, unknown>();
  for await (const page of service.pages(operationOf[list], query, { signal, itemsMax: pollItemsMax })) {
    // Pages shift while the list changes: an item that comes twice is still one. Without a key nobody can tell.
    for (const item of page.items) items.set(reader?.knows("id") ? reader.read(item).id : items.size, item);
  }
  return { count: items.size, items: [...items.values()] };
}

function judgeList(expression: Expression | undefined, { count, items }: ListRead): Ending {
  if (expression === undefined)
    return { status: "succeeded", evidence: "direct", reason: "completed", detail: `${count} items` };
  try {
    const met = expression.evaluate({ count, items });
    if (met === true)
      return { status: "succeeded", evidence: "direct", reason: "expectation-met", detail: `${expression.text} holds` };
    if (met === false)
      return {
        status: "failed",
        evidence: "direct",
        reason: "expectation-not-met",
        detail: `${expression.text} does not hold: count is ${count}`,
      };
    return {
      status: "unknown",
      evidence: "none",
      reason: "expectation-unreadable",
      detail: `${expression.text} is neither true nor false`,
    };
  } catch (error) {
    return {
      status: "unknown",
      evidence: "none",
      reason: "expectation-unreadable",
      detail: `${expression.text}: ${firstLine(error)}`,
    };
  }
}

function onFailure(task: Task, error: ServiceError, nowMs: number): Step {
  const reason = reasonOf[error.kind];
  switch (judge(error, "poll")) {
    case "retry":
    case "verify":
      return {
        step: "retry",
        afterMs: error.retryAfterMs ?? 0,
        ending: { status: "unknown", evidence: "none", reason, detail: error.message, startedAtMs: nowMs },
      };
    case "wait":
      return waitAfter(task, error, { nowMs });
    case "again":
      return { step: "snooze", untilMs: nowMs };
    case "give-up":
      return end({ status: "failed", evidence: "direct", reason, detail: error.message, startedAtMs: nowMs });
  }
}
