import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { auditedSlotsMax, auditSlots } from "../../../src/schedule/audit-slots.ts";
import { planSlots } from "../../../src/schedule/plan-slots.ts";
import { toRecords } from "../../../src/schedule/slot-tasks.ts";
import { testPolicy } from "../../support/policies.ts";

const second = 1_000;
const policy = testPolicy();
const every5 = (count: number, firstMs = 5 * second) =>
  Array.from({ length: count }, (_, index) => firstMs + index * 5 * second);
const recordsOf = (slots: readonly number[], of = policy) =>
  toRecords(of, planSlots(of, slots, { nowMs: slots.at(-1) ?? 0, pauses: [] }));
const input = (slots: readonly number[], of = policy) => ({
  watermarkMs: slots.at(-1) ?? 0,
  keptSinceMs: 0,
  records: recordsOf(slots, of),
  fromMs: undefined,
  toMs: 1_000 * second,
  nowMs: (slots.at(-1) ?? 0) + 2 * second,
});

describe("the audit of slots", () => {
  it("finds nothing where the ledger has each slot", () => {
    const audit = auditSlots(policy, input(every5(12)));
    expect(audit).toMatchObject({ slots: 12, findings: [], limitedBy: undefined, isCut: false, afterMs: 0 });
    expect(audit?.records).toHaveLength(12);
  });

  it("names exactly the records that were removed or added", () => {
    fc.assert(
      fc.property(fc.subarray(every5(40)), fc.subarray([7, 12, 33, 101].map((at) => at * second)), (gone, foreign) => {
        const whole = input(every5(40));
        const records = [
          ...whole.records.filter(({ slotMs }) => !gone.includes(slotMs)),
          ...foreign.map((slotMs) => ({ slotMs, state: "missed" as const, detail: "outside-window" })),
        ].sort((a, b) => a.slotMs - b.slotMs);
        const findings = auditSlots(policy, { ...whole, records })?.findings ?? [];
        const of = (problem: string) => findings.filter((one) => one.problem === problem).map(({ slotMs }) => slotMs);
        expect(of("lost")).toEqual(gone);
        expect(of("no-slot")).toEqual(foreign);
        expect(findings).toHaveLength(gone.length + foreign.length);
      }),
    );
  });

  it("calls slots after the mark unplanned once a scheduler should have looked", () => {
    const whole = input(every5(2));
    const late = auditSlots(policy, { ...whole, nowMs: 46 * second });
    expect(late?.findings).toEqual([{ slotMs: 15 * second, problem: "unplanned" }]);
    expect(auditSlots(policy, { ...whole, nowMs: 45 * second })).toMatchObject({ slots: 9, pending: 7, findings: [] });
  });

  it("begins where the ledger's memory begins, and says so when more was asked for", () => {
    const whole = { ...input(every5(12)), keptSinceMs: 30 * second, records: recordsOf(every5(12)).slice(6) };
    expect(auditSlots(policy, whole)).toMatchObject({
      slots: 6,
      findings: [],
      afterMs: 30 * second,
      limitedBy: undefined,
    });
    expect(auditSlots(policy, { ...whole, fromMs: 0 })).toMatchObject({ slots: 6, limitedBy: "memory" });
    expect(auditSlots(policy, { ...whole, fromMs: 40 * second, toMs: 50 * second })).toMatchObject({
      slots: 3,
      limitedBy: undefined,
    });
  });

  it("does not judge slots of an earlier schedule by the present one", () => {
    const before = testPolicy({ schedule: { kind: "every", everyMs: 7_000, spreadMs: 0 } });
    const old = recordsOf([7 * second, 14 * second], before);
    const present = recordsOf(every5(3, 15 * second));
    const audit = auditSlots(policy, { ...input(every5(3, 15 * second)), records: [...old, ...present] });
    expect(audit).toMatchObject({ slots: 3, findings: [], afterMs: 14 * second, limitedBy: "schedule-changed" });
  });

  it("ends after a bounded number of slots and says so", () => {
    const fast = testPolicy({ schedule: { kind: "every", everyMs: second, spreadMs: 0 } });
    const far = 2 * auditedSlotsMax * second;
    const audit = auditSlots(fast, { ...input([]), records: [], watermarkMs: far, nowMs: far, toMs: far });
    expect(audit).toMatchObject({ slots: auditedSlotsMax, isCut: true, toMs: auditedSlotsMax * second });
    expect(audit?.findings).toHaveLength(auditedSlotsMax);
  });

  it("ignores a policy without a schedule, or one without a scheduler yet", () => {
    expect(auditSlots(testPolicy({ schedule: undefined }), input([]))).toBeUndefined();
    expect(auditSlots(policy, { ...input([]), watermarkMs: undefined })).toBeUndefined();
  });
});
