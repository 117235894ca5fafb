// Single steps of the strategies that the stories of model.test.ts reach by luck only.
import { describe, expect, it } from "vitest";
import { LinkExpired, type WalkReport, walkList } from "../../../../src/feeds/strategy/walk.ts";
import { Crash, ModelList, type ModelOptions } from "../../../support/model-list.ts";

const limits = { auditEveryMs: 1_000, scanForMs: 10_000 };

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

function modelList(options: Partial<ModelOptions> = {}, items = 50): ModelList {
  const list = new ModelList({ growsAt: "end", paging: "offset", pageSize: 10, ...options });
  list.insert(items);
  return list;
}

/** Lets a whole walk die when it asks for this page, counted from 1. */
async function crashAtPage(list: ModelList, page: number): Promise<void> {
  list.onStep = () => {
    if (list.requests === page) throw new Crash();
  };
  await expect(walk(list)).rejects.toBeInstanceOf(Crash);
  list.onStep = () => {};
}

describe("a whole walk", () => {
  it("restarts after a crash when a deletion has moved its page: an item slipped past", async () => {
    const list = modelList();
    await crashAtPage(list, 4);
    expect(list.known.underway).toMatchObject({ next: "0|20", pages: 2 });
    // All of the page that it stands on goes, and ten that nobody has seen move onto it.
    for (let times = 0; times < 10; times += 1) list.remove(20);
    const unread = list.items.slice(20, 30);
    list.requests = 0;
    const { known } = await walk(list);
    // The moved page, then all four of the list as it is now.
    expect(list.requests).toBe(5);
    expect(unread.map((id) => list.reports.get(id))).toEqual(Array(10).fill(1));
    expect(known).toMatchObject({ pages: 4, underway: null });
  });

  it("after a look at the ends counts its items, and learns where the list grows", async () => {
    const list = modelList({ growsAt: "front" });
    await walk(list);
    for (const [nowMs, order] of [
      [2, "undecided"],
      [3, "head"],
    ] as const) {
      // More than its first page shows.
      list.insert(15);
      expect(await walk(list, nowMs)).toMatchObject({ kind: "whole", because: "first-page-new", known: { order } });
      expect(list.known.items).toBe(list.items.length);
      list.requests = 0;
      await walk(list, nowMs);
      expect(list.requests).toBeLessThanOrEqual(3);
    }
    expect(new Set(list.reports.values())).toEqual(new Set([1]));
  });

  it("follows a look at the ends whose count the service does not say", async () => {
    const list = modelList({ growsAt: "anywhere", paging: "key" });
    await walk(list);
    list.count = async () => undefined;
    list.insert(1, 25);
    const hidden = list.items[25] ?? "";
    expect(await walk(list, 2)).toMatchObject({ kind: "whole", because: "count-unreadable" });
    expect(list.reports.get(hidden)).toBe(1);
  });

  it("after a look at the front that died counts what that look found", async () => {
    const list = modelList({ growsAt: "front" });
    await walk(list);
    for (const nowMs of [2, 3]) {
      list.insert(15);
      await walk(list, nowMs);
    }
    expect(list.known.order).toBe("head");
    list.insert(5);
    const { save } = list;
    list.save = async (known) => (known.underway === null ? Promise.reject(new Crash()) : save.call(list, known));
    await expect(walk(list, 4)).rejects.toBeInstanceOf(Crash);
    list.save = save;
    expect((await walk(list, 5)).kind).toBe("whole");
    expect(list.known.items).toBe(list.items.length);
  });

  it("reads its current page once more after a crash, and no earlier one", async () => {
    const list = modelList();
    await crashAtPage(list, 4);
    list.requests = 0;
    await walk(list);
    expect(list.requests).toBe(3);
    expect(list.known).toMatchObject({ pages: 5, underway: null });
  });

  it("whose links expire too often ends; the next begins anew and counts all", async () => {
    const list = modelList();
    list.onStep = () => {
      if (list.requests % 3 === 2) list.expireLinks();
    };
    await expect(walk(list)).rejects.toBeInstanceOf(LinkExpired);
    expect(list.known.underway).toMatchObject({ next: null, pages: 0, items: 0, restarts: 1 });
    list.onStep = () => {};
    list.requests = 0;
    const { known } = await walk(list, 2);
    expect(list.requests).toBe(5);
    expect(known).toMatchObject({ pages: 5, items: 50, underway: null });
    expect([...list.reports.values()]).toEqual(Array(50).fill(1));
  });
});

describe("the report of a walk", () => {
  async function tailed(): Promise<ModelList> {
    const list = modelList({ growsAt: "anywhere", paging: "key" }, 0);
    for (let times = 0; times < 50; times += 1) list.insert(1, list.items.length);
    for (let round = 0; round < 3; round += 1) {
      await walk(list);
      list.insert(1, list.items.length);
    }
    await walk(list);
    expect(list.known.order).toBe("tail");
    return list;
  }

  it("says why an order was given up that an audit found wrong", async () => {
    const list = await tailed();
    list.insert(1, 3);
    const report = await walk(list, 1 + limits.auditEveryMs);
    expect(report).toMatchObject({
      kind: "whole",
      demoted: "it was read from its end, but something new stood elsewhere",
      known: { order: "scan" },
    });
  });

  it("says why a failed order was dropped, and that the list was read whole for it", async () => {
    const list = await tailed();
    list.insert(1, list.items.length - 1);
    const report = await walk(list);
    expect(report).toMatchObject({
      kind: "whole",
      because: "order-lost",
      demoted: "a new item stood at the end that does not grow",
      known: { order: "scan" },
    });
  });

  it("says that it began anew where a link expired on the way", async () => {
    const list = modelList();
    list.onStep = () => {
      if (list.requests !== 3) return;
      list.onStep = () => {};
      list.expireLinks();
    };
    expect(await walk(list)).toMatchObject({ kind: "whole", because: "link-expired", known: { pages: 5, items: 50 } });
    expect(list.requests).toBe(3 + 5);
  });

  it("says nothing of the kind while the order holds", async () => {
    const list = await tailed();
    list.insert(1, list.items.length);
    const report = await walk(list);
    expect(report.kind).toBe("tail");
    expect("demoted" in report || "fallback" in report).toBe(false);
  });
});
