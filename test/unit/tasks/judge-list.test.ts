import { describe, expect, it } from "vitest";
import { noteSecret } from "../../../src/core/secrets.ts";
import { createItemMapper } from "../../../src/feeds/mapping.ts";
import { parseExpectation } from "../../../src/feeds/poll-expectation.ts";
import { judgeList, packSeen } from "../../../src/tasks/judge-list.ts";

interface Approval {
  readonly approvalId: number;
  readonly itemName: string;
}

const reader = createItemMapper("approvals");
const approvals = (...ids: readonly number[]) =>
  ids.map((id): Approval => ({ approvalId: id, itemName: `Draft ${id}` }));
const read = (items: readonly unknown[]) => ({
  count: items.length,
  keyedBy: reader.keyedBy,
  items: items.map((item) => ({ item, facts: reader.read(item) })),
});
const sightOf = (items: readonly Approval[]) => ({
  count: items.length,
  atMs: Date.parse("2026-11-21T06:00:00Z"),
  seen: packSeen(
    items.map((item) => reader.read(item)),
    reader.keyedBy,
  ),
});

interface Poll {
  readonly expect?: string;
  readonly offending?: string;
}

function judge({ expect: text, offending }: Poll, items: readonly unknown[], before?: readonly Approval[]) {
  const expectation = parseExpectation({ expect: text, ...(offending === undefined ? {} : { offending }) });
  return judgeList(expectation, read(items), before === undefined ? undefined : sightOf(before));
}

/** What a judgement says that could not tell what is new. */
const blind = "; nothing to compare with yet: no earlier poll noted the items by this `id` mapping";

describe("the judgement over a list", () => {
  it("without an expectation only says how many there are", () => {
    expect(judge({}, approvals(1, 2))).toEqual({
      status: "succeeded",
      evidence: "direct",
      reason: "completed",
      detail: "2 items",
      count: 2,
    });
  });

  it("calls nothing new at the first poll, later what the last one did not see", () => {
    const poll = { expect: "size(new) == 0" };
    expect(judge(poll, approvals(1, 2))).toMatchObject({ status: "succeeded", detail: `size(new) == 0 holds${blind}` });
    expect(judge(poll, approvals(2, 1), approvals(1, 2))).toMatchObject({
      status: "succeeded",
      detail: "size(new) == 0 holds",
    });
    expect(judge({ expect: "size(new) == 0 && count == 0" }, approvals(1))).toMatchObject({
      status: "failed",
      detail: `size(new) == 0 && count == 0 does not hold: count is 1${blind}`,
    });
    expect(judge(poll, approvals(1, 3, 4), approvals(1, 2))).toMatchObject({
      status: "failed",
      reason: "expectation-not-met",
      detail: "size(new) == 0 does not hold: count is 3",
      offending: 2,
      offendingItems: ["Draft 3 (3)", "Draft 4 (4)"],
    });
  });

  it("calls an item modified when its id was there with another content", () => {
    const renamed = [{ approvalId: 1, itemName: "Contract" }, ...approvals(2)];
    expect(judge({ expect: "size(modified) == 0" }, renamed, approvals(1, 2))).toMatchObject({
      status: "failed",
      offendingItems: ["Contract (1)"],
    });
    expect(judge({ expect: "size(new) == 0" }, renamed, approvals(1, 2))).toMatchObject({ status: "succeeded" });
  });

  it("calls nothing new at the first poll with another mapping of the id", () => {
    const expectation = parseExpectation({ expect: "size(new) == 0 && size(modified) == 0" });
    const byName = createItemMapper("approvals", { id: "item.itemName" });
    const items = approvals(1, 2, 3).map((item) => ({ item, facts: byName.read(item) }));
    const judged = (seen: Buffer) =>
      judgeList(expectation, { count: 3, items, keyedBy: byName.keyedBy }, { count: 2, atMs: 0, seen });
    expect(judged(sightOf(approvals(1, 2)).seen)).toMatchObject({
      status: "succeeded",
      detail: expect.stringContaining(blind),
    });
    const seen = items.slice(0, 2).map(({ facts }) => facts);
    expect(judged(packSeen(seen, byName.keyedBy))).toMatchObject({ status: "failed", offending: 1 });
  });

  it("knows what has no id by its content", () => {
    const nameless = [{ what: "a" }, { what: "b" }];
    const packed = packSeen([reader.read({ what: "a" })], reader.keyedBy);
    const expectation = parseExpectation({ expect: "size(new) == 0" });
    const ending = judgeList(expectation, read(nameless), { count: 1, atMs: 0, seen: packed });
    expect(ending).toMatchObject({ status: "failed", offending: 1 });
    expect(ending.offendingItems?.[0]).toMatch(/^#[0-9a-f]{16}$/);
  });

  it("names what `offending` says, of all items or of the new ones it is about", () => {
    const all = { expect: "items.all(x, x.approvalId < 3)", offending: "item.approvalId >= 3" };
    expect(judge(all, approvals(1, 3, 4), approvals(1, 3))).toMatchObject({
      offendingItems: ["Draft 3 (3)", "Draft 4 (4)"],
    });
    const fresh = { expect: "new.all(x, x.approvalId < 3)", offending: "item.approvalId >= 3" };
    expect(judge(fresh, approvals(1, 2, 3, 4), approvals(1, 3))).toMatchObject({ offendingItems: ["Draft 4 (4)"] });
  });

  it("with `offending` alone expects that no item does", () => {
    const poll = { offending: "item.approvalId > 2" };
    expect(judge(poll, approvals(1, 2))).toMatchObject({ status: "succeeded", reason: "expectation-met" });
    expect(judge(poll, approvals(1, 2, 3))).toMatchObject({
      status: "failed",
      detail: "item.approvalId > 2: true for 1 of 3 items",
      offending: 1,
      offendingItems: ["Draft 3 (3)"],
    });
  });

  it("is unknown, and names the item, when `offending` alone cannot be answered for it", () => {
    const poll = { offending: "item.approvalId > 2" };
    expect(judge(poll, [...approvals(1), { itemName: "Draft 2" }])).toMatchObject({
      status: "unknown",
      evidence: "none",
      reason: "expectation-unreadable",
      detail: expect.stringMatching(/^item\.approvalId > 2: No such key: approvalId, for item Draft 2 \(#/),
    });
    expect(judge({ offending: "item.approvalId" }, approvals(1))).toMatchObject({
      status: "unknown",
      detail: "item.approvalId: neither true nor false for item Draft 1 (1)",
    });
  });

  it("names no item that `offending` cannot read, but says how many there are", () => {
    const poll = { expect: "count == 0", offending: "item.approvalId > 0" };
    expect(judge(poll, [...approvals(1), { itemName: "Draft 2" }])).toMatchObject({
      status: "failed",
      detail: expect.stringMatching(/: count is 2; `offending` cannot be read of 1 item, first Draft 2 \(#/),
      offending: 1,
      offendingItems: ["Draft 1 (1)"],
    });
    const unread = { expect: "count == 0", offending: "item.nowhere" };
    expect(judge(unread, approvals(1, 2))).toMatchObject({
      status: "failed",
      detail: "count == 0 does not hold: count is 2; `offending` cannot be read of 2 items, first Draft 1 (1)",
      offending: 0,
    });
  });

  it("is unknown when an expectation is undecided, or needs what is not there", () => {
    expect(judge({ expect: "count" }, approvals(1))).toMatchObject({ status: "unknown", count: 1 });
    expect(judge({ expect: "items.all(x, x.nowhere)" }, approvals(1))).toMatchObject({
      status: "unknown",
      detail: "items.all(x, x.nowhere): No such key: nowhere",
    });
  });

  it("names ten items at most, on one line each, short, and without secrets", () => {
    noteSecret("canary-5e1f0b77");
    const items = [
      { approvalId: 1, itemName: "ends\n\u001b[31mhere\u202e" },
      { approvalId: 2, itemName: `token canary-5e1f0b77 ${"x".repeat(190)}` },
      ...approvals(...Array.from({ length: 30 }, (_, index) => index + 3)),
    ];
    const { offending, offendingItems = [] } = judge({ offending: "true" }, items);
    expect([offending, offendingItems.length]).toEqual([32, 10]);
    expect(offendingItems[0]).toBe("ends [31mhere  (1)");
    expect(offendingItems[1]).toBe(`token […] ${"x".repeat(89)}… (2)`);
  });

  it("counts in whole numbers", () => {
    expect(judge({ expect: "count % 2 == 1 && count + size(items) == 6" }, approvals(1, 2, 3))).toMatchObject({
      status: "succeeded",
    });
  });
});
