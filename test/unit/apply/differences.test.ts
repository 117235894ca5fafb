import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { describeBlock, describeChanges, findDifferences, type Knowledge } from "../../../src/apply/differences.ts";
import { noRecord } from "../../../src/model/applied-record.ts";

const names = ["siteName", "siteId", "folderName", "folderId"];
const value = fc.constantFrom("a", "b", "c");
const some = <Value>(of: fc.Arbitrary<Value>) => fc.dictionary(fc.constantFrom(...names), of, { maxKeys: 4 });
const knowledge: fc.Arbitrary<Knowledge> = fc.record({
  entity: fc.option(some(fc.option(value)), { nil: undefined }),
  record: fc
    .record({ applied: some(value), returned: some(fc.option(value)) })
    .map((parts) => ({ ...noRecord, ...parts })),
  readOnly: fc.constant([]),
  isStale: fc.boolean(),
});

describe("what differs", () => {
  it("is only ever what is declared, and never what is live already", () => {
    fc.assert(
      fc.property(some(value), knowledge, (fields, known) => {
        const found = findDifferences({ kind: "driveTarget", id: 9, fields }, known);
        for (const { field, after } of found) {
          expect(fields[field]).toBe(after);
          expect(known.entity?.[field]).not.toBe(after);
        }
        for (const [field, wanted] of Object.entries(fields)) {
          const live = known.entity?.[field];
          if (live !== undefined && live !== wanted) expect(found.map((one) => one.field)).toContain(field);
        }
      }),
    );
  });

  it("of a target is what was never applied, or what the returned entity contradicts", () => {
    const record = { ...noRecord, applied: { siteName: "HR", siteId: "1" }, returned: { siteId: "2" } };
    const known = { entity: undefined, record, readOnly: [], isStale: false };
    const fields = { siteName: "HR", siteId: "1", folderName: "In" };
    expect(findDifferences({ kind: "siteTarget", id: 9, fields }, known)).toEqual([
      { field: "siteId", before: "2", isBeforeKnown: true, after: "1", isDrift: true, block: undefined },
      { field: "folderName", before: null, isBeforeKnown: false, after: "In", isDrift: false, block: undefined },
    ]);
  });
});

describe("what is told of it", () => {
  const change = { field: "name", before: "A", isBeforeKnown: true, after: "B", isDrift: false };

  it("tells drift from what was applied, and names no unknown value before", () => {
    const drift = { ...change, field: "siteId", isDrift: true };
    const fresh = { ...change, field: "folderId", before: null, isBeforeKnown: false };
    expect(describeChanges([change, drift, fresh])).toBe(
      'changed by hand and set again: siteId: "A" → "B"; set name: "A" → "B", folderId: "B"',
    );
    expect(describeChanges([])).toBe("");
  });

  it("cuts long values, and removes terminal escapes and what looks like a secret", () => {
    const odd = { ...change, before: "\u001b[31mred", after: `Bearer ${"x".repeat(30)}` };
    expect(describeChanges([odd])).toBe('set name: "\\u001b[31mred" → "Bearer […]"');
    expect(describeChanges([{ ...change, after: "y".repeat(5_000) }]).length).toBeLessThan(120);
  });

  it("says what to do about a field that is not taken", () => {
    expect(describeBlock({ ...change, block: { how: "ignored", said: "" } })).toBe(
      'name stayed "A" although the service answered with success; take it out of the policy, or change it in the service',
    );
    expect(describeBlock({ ...change, block: { how: "altered", said: "" } })).toBe(
      'name is "A" although "B" was sent and answered with success: the service writes it in another way, does not show it yet, or a person changed it; the next slot looks again',
    );
  });
});
