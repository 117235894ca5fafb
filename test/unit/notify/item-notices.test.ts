// Notices about new items: what they say, how large they may be, and that the same items always
// give the same notice.
import { describe, expect, it } from "vitest";
import type { Feed } from "../../../src/model/feed.ts";
import { parseNotice } from "../../../src/model/notice.ts";
import { itemNotices, type NewItem } from "../../../src/notify/notices.ts";
import { mailText, toBody } from "../../../src/notify/render-notice.ts";

const feed: Feed = { service: "main", repository: "HR", list: "activities" };
const nowMs = Date.parse("2026-11-21T12:00:00.000Z");

function newItem(firstSeq: number, changes: Partial<NewItem> = {}): NewItem {
  return {
    id: `a${firstSeq}`,
    fingerprint: "0",
    firstSeq,
    seenAtMs: undefined,
    syncJobId: undefined,
    startedAtMs: undefined,
    finished: undefined,
    succeeded: undefined,
    label: undefined,
    ...changes,
  };
}

const newItems = (count: number, changes: Partial<NewItem> = {}) =>
  Array.from({ length: count }, (_, index) => newItem(index + 1, changes));

describe("a notice about new items", () => {
  it("says what the mapping says of each, and names the first ones in its title", () => {
    const seenAtMs = nowMs - 1_000;
    const known = { syncJobId: "42", startedAtMs: nowMs - 60_000, finished: true, succeeded: false, seenAtMs };
    const [notice, ...others] = itemNotices(feed, [newItem(7, { ...known, label: "Contracts" }), newItem(8)], nowMs);
    expect(others).toEqual([]);
    expect(notice).toEqual({
      v: 1,
      id: expect.stringMatching(/^items-[0-9a-f]{32}$/),
      kind: "items",
      at: "2026-11-21T12:00:00.000Z",
      orderKey: expect.stringMatching(/^activities-/),
      policy: null,
      service: "main",
      title: "activities of HR: 2 new (Contracts, a8)",
      data: {
        list: "activities",
        repository: "HR",
        count: 2,
        first: 1,
        items: [
          {
            id: "a7",
            label: "Contracts",
            syncJobId: "42",
            startedAt: "2026-11-21T11:59:00.000Z",
            finished: true,
            succeeded: false,
          },
          { id: "a8" },
        ],
      },
    });
    expect(parseNotice(notice)).toEqual(notice);
  });

  it("names twenty at most; further notices follow, each with the whole number", () => {
    const notices = itemNotices(feed, newItems(45), nowMs);
    expect(notices.map(({ data }) => [data["count"], data["first"], (data["items"] as unknown[]).length])).toEqual([
      [45, 1, 20],
      [45, 21, 20],
      [45, 41, 5],
    ]);
    expect(notices[2]?.title).toBe("activities of HR: 45 new, from number 41 (a41, a42, a43, …)");
    expect(new Set(notices.map(({ id }) => id)).size).toBe(3);
  });

  it("of more than ten thousand in one walk names the first ones and counts all", () => {
    const notices = itemNotices(feed, newItems(10_050), nowMs);
    expect(notices).toHaveLength(500);
    expect(notices.at(-1)?.data).toMatchObject({ count: 10_050, first: 9_981, unnamed: 50 });
    const [first] = notices;
    if (first === undefined) throw new Error("no notice");
    for (const text of [toBody(first, "slack").text, toBody(first, "teams").text, mailText(first)]) {
      expect(text).toContain("and 50 new items that no notice names");
      expect(text).not.toContain("earlier notice");
    }
  });

  it("has the same id for the same items, whenever it is made, and another for others", () => {
    const id = (...args: Parameters<typeof itemNotices>) => itemNotices(...args)[0]?.id;
    const before = id(feed, newItems(3), nowMs);
    expect(id(feed, newItems(3, { label: "renamed", finished: true }), nowMs + 5_000)).toBe(before);
    expect(id(feed, newItems(4), nowMs)).not.toBe(before);
    expect(id({ ...feed, repository: null }, newItems(3), nowMs)).not.toBe(before);
  });

  it("stays below 16 KiB and on one line, whatever the service sends", () => {
    const text = `\n\u0000\u2028${"漢".repeat(500)}`;
    const [notice] = itemNotices(
      feed,
      newItems(20).map((item) => ({ ...item, id: text, label: text, syncJobId: text })),
      nowMs,
    );
    expect(Buffer.byteLength(JSON.stringify(notice?.data))).toBeLessThan(16_384);
    expect(notice?.title).not.toMatch(/[\p{Cc}\u2028]/u);
    expect(parseNotice(notice)).toEqual(notice);
  });
});
