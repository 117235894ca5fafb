// Lists that change while they are read, links that expire, processes that die: whatever happens,
// each item is reported once.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LinkExpired, walkList } from "../../../../src/feeds/strategy/walk.ts";
import { Crash, ModelList, type ModelOptions } from "../../../support/model-list.ts";

const limits = { auditEveryMs: 1_000, scanForMs: 10_000 };

const options = fc.record<ModelOptions>({
  paging: fc.constantFrom("offset", "key"),
  growsAt: fc.constantFrom("end", "front", "anywhere"),
  pageSize: fc.integer({ min: 1, max: 5 }),
  emptyPages: fc.boolean(),
});

type Event = "insert" | "remove" | "expire" | "crash" | "nothing";

const event = fc.record({
  what: fc.oneof<fc.WeightedArbitrary<Event>[]>(
    { weight: 4, arbitrary: fc.constant("nothing") },
    { weight: 4, arbitrary: fc.constant("insert") },
    { weight: 2, arbitrary: fc.constant("remove") },
    { weight: 1, arbitrary: fc.constant("expire") },
    { weight: 1, arbitrary: fc.constant("crash") },
  ),
  at: fc.nat({ max: 100 }),
});

function happen(list: ModelList, { what, at }: { readonly what: Event; readonly at: number }): void {
  if (what === "insert") list.insert(1 + (at % 3), at);
  if (what === "remove") list.remove(at);
  if (what === "expire") list.expireLinks();
  if (what === "crash") throw new Crash();
}

async function walk(list: ModelList, nowMs: number): Promise<void> {
  try {
    await walkList(list.known, {
      list,
      seq: () => list.seq(),
      takeIn: list.takeIn,
      save: (known) => list.save(known),
      nowMs,
      limits,
    });
  } catch (error) {
    if (!(error instanceof Crash) && !(error instanceof LinkExpired)) throw error;
  }
}

describe("reading an undocumented list", () => {
  it("reports each item exactly once, whatever happens between any two steps", async () => {
    const story = fc.record({
      options,
      first: fc.nat({ max: 30 }),
      walks: fc.array(fc.record({ events: fc.array(event, { maxLength: 12 }), pauseMs: fc.nat({ max: 1_500 }) }), {
        minLength: 1,
        maxLength: 12,
      }),
    });
    await fc.assert(
      fc.asyncProperty(story, async ({ options: shape, first, walks }) => {
        const list = new ModelList(shape);
        list.insert(first);
        let nowMs = 1;
        for (const { events, pauseMs } of walks) {
          const queue = [...events];
          list.onStep = () => {
            const next = queue.shift();
            if (next !== undefined) happen(list, next);
          };
          await walk(list, nowMs);
          nowMs += pauseMs;
        }
        // Then nothing happens any more, and the next audit comes: once for what was under way,
        // once whole.
        list.onStep = () => {};
        for (let round = 0; round < 2; round += 1) {
          nowMs += limits.auditEveryMs;
          await walk(list, nowMs);
        }
        expect(list.items.filter((id) => list.reports.get(id) !== 1)).toEqual([]);
        expect([...list.reports.values()].every((times) => times === 1)).toBe(true);
        expect(list.known.items).toBe(list.items.length);
      }),
      { numRuns: 1_000 },
    );
  });

  it("misses nothing without an audit in a stable order, also when items are removed", async () => {
    const ordered = options.map(
      (shape) => ({ ...shape, growsAt: shape.growsAt === "anywhere" ? "end" : shape.growsAt }) as const,
    );
    const calm = event.filter(({ what }) => what !== "remove");
    const story = fc.record({
      options: ordered,
      first: fc.integer({ min: 12, max: 40 }),
      walks: fc.array(
        fc.record({
          events: fc.array(calm, { maxLength: 8 }),
          removed: fc.array(fc.nat({ max: 50 }), { maxLength: 2 }),
        }),
        {
          minLength: 1,
          maxLength: 12,
        },
      ),
    });
    await fc.assert(
      fc.asyncProperty(story, async ({ options: shape, first, walks }) => {
        const list = new ModelList(shape);
        list.insert(first);
        await walk(list, 1);
        for (const { events, removed } of walks) {
          const queue = [...events];
          list.onStep = () => {
            const next = queue.shift();
            if (next !== undefined) happen(list, next);
          };
          await walk(list, 2);
          for (const at of removed) list.remove(at);
        }
        // One walk for what was under way, and one for what came behind its back.
        list.onStep = () => {};
        await walk(list, 3);
        await walk(list, 3);
        expect(list.items.filter((id) => list.reports.get(id) !== 1)).toEqual([]);
      }),
      { numRuns: 1_000 },
    );
  });

  it("sees each end without an audit in a stable order, whatever is added and removed", async () => {
    const story = fc.record({
      options: options.map((shape) => ({
        ...shape,
        growsAt: shape.growsAt === "anywhere" ? ("end" as const) : shape.growsAt,
        pageSize: shape.pageSize + 4,
      })),
      walks: fc.array(
        fc.record({
          added: fc.nat({ max: 5 }),
          opened: fc.boolean(),
          ended: fc.boolean(),
          removed: fc.array(fc.nat({ max: 50 }), { maxLength: 4 }),
        }),
        { minLength: 1, maxLength: 4 },
      ),
    });
    await fc.assert(
      fc.asyncProperty(story, async ({ options: shape, walks }) => {
        const list = new ModelList(shape);
        list.insert(40);
        for (let round = 0; round < 3; round += 1) {
          await walk(list, 1);
          list.insert(1);
        }
        for (const { added, opened, ended, removed } of walks) {
          list.insert(added);
          if (opened) list.open.add(list.items.at(shape.growsAt === "end" ? -1 : 0) ?? "");
          await walk(list, 2);
          for (const at of removed) list.remove(at);
          if (ended) list.open.clear();
        }
        list.open.clear();
        await walk(list, 3);
        expect(list.items.filter((id) => list.seenOpen.has(id))).toEqual([]);
      }),
      { numRuns: 1_000 },
    );
  });

  it("costs two requests and one per page of new items in a known order, at any length", async () => {
    for (const growsAt of ["end", "front"] as const) {
      for (const paging of ["key", "offset"] as const) {
        const list = new ModelList({ growsAt, paging, pageSize: 10 });
        list.insert(1_000);
        for (let round = 0; round < 4; round += 1) {
          await walk(list, 1);
          list.insert(1);
        }
        await walk(list, 1);
        expect(list.known.order).toBe(growsAt === "end" ? "tail" : "head");
        for (const fresh of [0, 1, 9, 10, 11, 95]) {
          list.insert(fresh);
          const before = list.requests;
          await walk(list, 1);
          expect(list.requests - before).toBeLessThanOrEqual(2 + Math.ceil(fresh / 10));
          expect(list.items.filter((id) => list.reports.get(id) !== 1)).toEqual([]);
        }
      }
    }
  });

  it("reads open items again with cheap walks, and drops an order that missed one", async () => {
    const list = new ModelList({ growsAt: "anywhere", paging: "key", pageSize: 10 });
    list.insert(100, 100);
    for (let round = 0; round < 4; round += 1) {
      await walk(list, 1);
      list.insert(1, list.items.length);
    }
    await walk(list, 1);
    expect(list.known.order).toBe("tail");
    list.insert(1, 3);
    await walk(list, 1);
    expect(list.known.order).toBe("tail");
    await walk(list, 1 + limits.auditEveryMs);
    expect(list.known.order).toBe("scan");
    expect(list.items.filter((id) => list.reports.get(id) !== 1)).toEqual([]);
  });

  // Many are more than a cheap walk reads again.
  it("reads a list with many open items whole, within two pages a second, until final", async () => {
    for (const growsAt of ["end", "front"] as const) {
      const list = new ModelList({ growsAt, paging: "key", pageSize: 10 });
      list.insert(300);
      const kindOf = async (nowMs: number) => {
        const report = await walkList(list.known, {
          list,
          seq: () => list.seq(),
          takeIn: list.takeIn,
          save: (known) => list.save(known),
          nowMs,
          limits: { ...limits, auditEveryMs: 3_600_000 },
        });
        return report.kind;
      };
      for (let round = 0; round < 4; round += 1) {
        await kindOf(1);
        list.insert(1);
      }
      const cheap = growsAt === "end" ? "tail" : "head";
      expect(await kindOf(1)).toBe(cheap);
      for (const id of list.items) list.open.add(id);
      list.insert(150);
      for (const id of list.items) list.open.add(id);
      await kindOf(2);
      await kindOf(3_600_001);
      expect(growsAt === "end" ? list.known.openToEnd : list.known.openToFront).toBeGreaterThan(40);
      expect(await kindOf(3_600_002)).toBe(cheap);
      expect(await kindOf(3_610_000)).toBe(cheap);
      // 46 pages, 500 ms each.
      expect(await kindOf(3_623_001)).toBe("whole");
      list.open.clear();
      expect(await kindOf(3_624_000)).toBe(cheap);
      expect(await kindOf(3_646_001)).toBe("whole");
      expect(await kindOf(3_670_000)).toBe(cheap);
      expect(list.known).toMatchObject({ openToEnd: 0, openToFront: 0 });
    }
  });
});
