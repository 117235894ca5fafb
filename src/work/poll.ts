// A poll task: reads a list or only its count, and holds it against the policy's expectation. Changes nothing anywhere.
// What could not be read is unknown, never failed: only an expectation that does not hold is.

import { createItemReader } from "../feeds/mapping.ts";
import { parseExpectation } from "../feeds/poll-expectation.ts";
import { operationOf } from "../feeds/service-lists.ts";
import type { SyncService } from "../service/client.ts";
import { ServiceError } from "../service/service-error.ts";
import type { PollSight } from "../store/poll-memories.ts";
import type { Feed } from "../tasks/feed.ts";
import type { Attempt } from "../tasks/seams.ts";
import type { Task } from "../tasks/task.ts";
import { feedOf } from "./evidence.ts";
import { waitAfter } from "./held.ts";
import { judge, reasonOf } from "./judge.ts";
import { judgeList, type ListRead, type ReadItem } from "./judge-list.ts";
import type { WorkParts } from "./parts.ts";
import { packSeen } from "./seen-digests.ts";
import { type Ending, end, type Step } from "./step.ts";

/** The most items a poll reads for an expectation over items; a longer list is not judged. */
const pollItemsMax = 10_000;

/** Reads and judges the list once. */
export async function stepPoll(task: Task, parts: WorkParts, attempt: Attempt): Promise<Step> {
  const policy = parts.policy(task.policy);
  const service = parts.service(task.service);
  if (policy?.action.kind !== "poll" || service === undefined) {
    const detail = `policy ${task.policy} is not configured any more`;
    return end({ status: "skipped", evidence: "direct", reason: "policy-removed", detail });
  }
  // Somebody recorded the outcome and died: it may have to be told, and must not be judged anew.
  if (await parts.polls.isOver(task.id)) return { step: "settled" };
  const startedAtMs = await parts.nowMs();
  if (startedAtMs > task.startByMs) {
    const detail = "its turn came after its start-by time";
    return end({ status: "missed", evidence: "direct", reason: "too-late", detail });
  }
  const feed = feedOf(task, policy.action.list);
  const expectation = parseExpectation(policy.action);
  const basis = expectation.looksBack ? await parts.polls.read(task.policy, feed) : undefined;
  try {
    const { readsItems, seesNew, looksBack } = expectation;
    const list = await readList(feed, { parts, service, readsItems, signal: attempt.signal });
    const ending = judgeList(expectation, list, basis?.sight);
    const seen = seesNew ? packSeen(list.items.map(({ facts }) => facts)) : undefined;
    const sight: PollSight = { count: list.count, atMs: startedAtMs, seen };
    // What nobody could judge is looked at again: it is still new at the next poll.
    const poll = { basis, isNews: looksBack, sight: ending.status === "unknown" ? undefined : sight };
    return end({ ...ending, poll, startedAtMs });
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return onFailure(task, error, startedAtMs);
  }
}

interface Reading {
  readonly parts: WorkParts;
  readonly service: SyncService;
  readonly readsItems: boolean;
  readonly signal: AbortSignal;
}

async function readList(feed: Feed, { parts, service, readsItems, signal }: Reading): Promise<ListRead> {
  const operation = operationOf[feed.list];
  const query = feed.repository === null ? {} : { repository: feed.repository };
  if (!readsItems) return { count: await service.count(operation, query, { signal }), items: [] };
  const reader = parts.itemReader(feed) ?? createItemReader(feed.list);
  const items = new Map<unknown, ReadItem>();
  for await (const page of service.pages(operation, query, { signal, itemsMax: pollItemsMax })) {
    for (const item of page.items) {
      const facts = reader.read(item);
      // Pages shift while the list changes: an item that comes twice is still one. Without a key nobody can tell.
      items.set(reader.knows("id") ? facts.id : items.size, { item, facts });
    }
  }
  return { count: items.size, items: [...items.values()] };
}

function onFailure(task: Task, error: ServiceError, startedAtMs: number): Step {
  if (error.reason === "items-max") {
    const detail = `the list holds more than ${pollItemsMax} items, the most that a poll reads: expect something of \`count\` alone`;
    return end({ status: "unknown", evidence: "none", reason: "expectation-unreadable", detail, startedAtMs });
  }
  const unread: Ending = {
    status: "unknown",
    evidence: "none",
    reason: reasonOf[error.kind],
    detail: error.message,
    startedAtMs,
  };
  switch (judge(error, "poll")) {
    case "retry":
    case "verify":
      return { step: "retry", afterMs: error.retryAfterMs ?? 0, ending: unread };
    case "wait":
      return waitAfter(task, error, { nowMs: startedAtMs });
    case "again":
      return { step: "snooze", untilMs: startedAtMs };
    case "give-up":
      return end(unread);
  }
}
