// An item that is not finished, in a list of which only one end is read: its end is seen at the
// next walk, not at the audit an hour later, and the list is not read whole for it without need.
import { describe, expect, it } from "vitest";
import { type WalkReport, walkList } from "../../../../src/feeds/strategy/walk.ts";
import { ModelList, type ModelOptions } from "../../../support/model-list.ts";

const dayMs = 86_400_000;
const limits = { auditEveryMs: 3_600_000, scanForMs: 86_400_000 };

function walk(list: ModelList, nowMs = 1): Promise<WalkReport> {
  return walkList(list.known, {
    list,
    seq: () => list.seq(),
    takeIn: list.takeIn,
    save: (known) => list.save(known),
    nowMs,
    limits,
  });
}

/** A list of 12 pages and a few items more, whose order is known. */
async function orderedList(options: Partial<ModelOptions>): Promise<ModelList> {
  const list = new ModelList({ growsAt: "end", paging: "offset", pageSize: 10, ...options });
  list.insert(120);
  for (let round = 0; round < 3; round += 1) {
    await walk(list);
    list.insert(1);
  }
  expect((await walk(list)).known.order).toBe(list.growsAt === "end" ? "tail" : "head");
  return list;
}

/** Lets an item appear that is not finished, and a walk see it. */
async function openOne(list: ModelList): Promise<string> {
  list.insert(1);
  const id = list.items.at(list.growsAt === "end" ? -1 : 0) ?? "";
  list.open.add(id);
  await walk(list);
  expect([...list.seenOpen]).toEqual([id]);
  return id;
}

describe("an open item", () => {
  it("is read again in a newest-first list where pages of news pushed it back", async () => {
    const list = await orderedList({ growsAt: "front" });
    const id = await openOne(list);
    for (const [fresh, pages] of [
      [35, 5],
      [9, 6],
      [20, 9],
    ] as const) {
      list.insert(fresh);
      list.requests = 0;
      await walk(list);
      expect(list.requests).toBeLessThanOrEqual(pages);
    }
    list.open.clear();
    expect((await walk(list)).kind).toBe("head");
    expect(list.seenOpen.has(id)).toBe(false);
  });

  it("at the front of a newest-first list costs no whole walks after an audit", async () => {
    const list = await orderedList({ growsAt: "front" });
    await openOne(list);
    expect(await walk(list, 3_600_001)).toMatchObject({ kind: "whole", because: "audit" });
    list.requests = 0;
    expect((await walk(list, 3_700_001)).kind).toBe("head");
    expect(list.requests).toBe(2);
  });

  it("is found by a whole walk where a deletion moved it before the page of its link", async () => {
    const list = await orderedList({});
    while (list.items.length % 10 !== 0) list.insert(1);
    const id = await openOne(list);
    list.insert(5);
    await walk(list);
    list.remove(3);
    list.open.clear();
    expect(await walk(list)).toMatchObject({ kind: "whole", because: "open-item-moved" });
    expect(list.seenOpen.has(id)).toBe(false);
    expect((await walk(list)).kind).toBe("tail");
  });

  it("may be one whose `finished` cannot be read before it is", async () => {
    const list = await orderedList({});
    list.openFacts = { finished: undefined, unread: ["finished"] };
    const id = await openOne(list);
    list.insert(25);
    await walk(list);
    list.open.clear();
    expect((await walk(list)).kind).toBe("tail");
    expect(list.seenOpen.has(id)).toBe(false);
  });

  it.each([
    ["cannot be read", { finished: undefined, unread: ["finished"] }],
    ["goes on", { finished: false }],
  ])("is none that %s and began longer ago than a run may take", async (_what, facts) => {
    const list = await orderedList({});
    list.openFacts = { ...facts, startedAtMs: 0 };
    await openOne(list);
    list.insert(110);
    await walk(list, 8 * dayMs);
    expect((await walk(list, 8 * dayMs + 100_000)).kind).toBe("tail");
  });

  it("that is deleted costs one whole walk", async () => {
    const list = await orderedList({ paging: "key" });
    const id = await openOne(list);
    list.insert(5);
    await walk(list);
    list.remove(list.items.indexOf(id));
    expect((await walk(list)).kind).toBe("whole");
    expect((await walk(list)).kind).toBe("tail");
  });

  it("without an id costs no whole walks: each change makes it another one", async () => {
    const list = await orderedList({});
    for (let change = 1; change <= 3; change += 1) {
      list.items[123] = `#content-${change}`;
      list.open.add(`#content-${change}`);
      expect((await walk(list)).kind).toBe("tail");
    }
  });
});

describe("an empty page with a link", () => {
  it.each(["front", "end"] as const)("is not the end of a list that grows at its %s", async (growsAt) => {
    const list = await orderedList({ growsAt, emptyPages: true });
    list.insert(15);
    expect((await walk(list)).kind).toBe(growsAt === "end" ? "tail" : "head");
    expect(list.reports.size).toBe(list.items.length);
  });

  it("at the front does not hide what is new, also where the service gives no count", async () => {
    const list = new ModelList({ growsAt: "front", paging: "offset", pageSize: 10, emptyPages: true });
    list.count = async () => undefined;
    list.insert(50);
    await walk(list);
    list.insert(1);
    await walk(list);
    expect(list.reports.size).toBe(51);
  });
});
