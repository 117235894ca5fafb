import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { checkExpression } from "../../../../src/core/expression.ts";
import { type ListProposal, proposeMapping } from "../../../../src/feeds/discover/propose.ts";
import { listNames } from "../../../../src/model/feed.ts";

const startMs = Date.parse("2026-11-01T00:00:00Z");
const iso = (minute: number) => new Date(startMs + minute * 60_000).toISOString();
const clues = { syncJobIds: new Set(["10", "11", "12", "13"]), joinElsewhere: undefined };
const many = (make: (number: number) => unknown, count = 100) =>
  Array.from({ length: count }, (_, index) => make(index + 1));

function expressions(proposal: ListProposal): Record<string, string | undefined> {
  return Object.fromEntries(proposal.lines.map(({ fact, expression }) => [fact, expression]));
}

function certainties(proposal: ListProposal): Record<string, string> {
  return Object.fromEntries(proposal.lines.map(({ fact, certainty }) => [fact, certainty]));
}

describe("the proposal of a mapping", () => {
  it("reads plain names, and is sure where words and end times agree", () => {
    const items = many((n) => ({
      activityId: n,
      syncJobId: 10 + (n % 4),
      state: n > 95 ? "Running" : n % 9 === 0 ? "Failed" : "Finished",
      startedAt: iso(n),
      finishedAt: n > 95 ? null : iso(n + 1),
    }));
    const proposal = proposeMapping("activities", items, clues);
    expect(expressions(proposal)).toEqual({
      id: "item.activityId",
      syncJobId: "item.syncJobId",
      startedAt: "item.startedAt",
      finished: 'item.state in ["Finished", "Failed"]',
      succeeded: 'item.state == "Finished"',
    });
    expect(certainties(proposal)).toEqual({
      id: "high",
      syncJobId: "high",
      startedAt: "high",
      finished: "high",
      succeeded: "high",
    });
    expect(proposal.grows).toBe("at its end");
    expect(proposal.limits).toEqual([]);
  });

  it("is not sure of a state of which it saw one value only, or none that goes on", () => {
    const items = (states: readonly string[], count?: number) =>
      many(
        (n) => ({ activityId: n, syncJobId: 10 + (n % 4), state: states[n % states.length], startedAt: iso(n) }),
        count,
      );
    const one = proposeMapping("activities", items(["Finished"]), clues);
    expect(expressions(one)["finished"]).toBe('item.state == "Finished"');
    expect(certainties(one)).toMatchObject({ finished: "low", succeeded: "low" });
    expect(one.lines.find(({ fact }) => fact === "finished")?.why).toContain("nor any other value");
    const two = proposeMapping("activities", items(["Finished", "Failed"]), clues);
    expect(certainties(two)).toMatchObject({ finished: "medium", succeeded: "high" });
    const few = proposeMapping("activities", items(["Running", "Finished", "Failed"], 19), clues);
    expect(Object.values(certainties(few)).every((certainty) => certainty === "low")).toBe(true);
    expect(few.lines[0]?.why).toContain("from 19 items only");
  });

  it("tells by end times which codes are final, and not which of them are good", () => {
    const items = many((n) => ({
      a: n,
      b: 10 + (n % 4),
      c: n > 90 ? 7 : n % 2,
      d: iso(n),
      e: n > 90 ? null : iso(n + 1),
    }));
    const proposal = proposeMapping("activities", items, clues);
    expect(expressions(proposal)).toMatchObject({ finished: "item.c in [1, 0]", succeeded: undefined });
    expect(certainties(proposal)).toMatchObject({ finished: "medium", succeeded: "none" });
    expect(proposal.limits).toEqual(["How a run ended cannot be told: one that failed ends like one that went well."]);
  });

  it("takes a flag of the result for how an activity went, and not for its end", () => {
    const proposed = (more: (n: number) => object) => {
      const activity = (n: number) => ({ activityId: n, success: n <= 95 && n % 9 !== 0, startedAt: iso(n) });
      const items = many((n) => ({ ...activity(n), ...more(n) }));
      return expressions(proposeMapping("activities", items, clues));
    };
    const succeeded = "item.success == true";
    const finished = "item.?finishedAt.orValue(null) != null";
    expect(proposed((n) => ({ finishedAt: n > 95 ? null : iso(n + 1) }))).toMatchObject({ finished, succeeded });
    expect(proposed(() => ({}))).toMatchObject({ finished: undefined, succeeded: undefined });
    const flagged = { finished: "item.isFinished == true", succeeded };
    expect(proposed((n) => ({ isFinished: n <= 95 }))).toMatchObject(flagged);
  });

  it("takes no state for final where words and end times disagree", () => {
    const items = many((n) => ({
      id: n,
      syncJobId: 10,
      status: n > 50 ? "Done" : "Running",
      startedAt: iso(n),
      endedAt: n > 50 ? null : iso(n + 1),
    }));
    expect(expressions(proposeMapping("activities", items, clues))["finished"]).not.toContain("Done");
  });

  it("reads seconds since 1970, odd names, objects, and a list with the newest first", () => {
    const items = many((n) => ({
      "Activity Id": 1_000 - n,
      job: { id: String(10 + (n % 4)) },
      when: 1_760_000_000 - n * 60,
    })).map((item) => item);
    const proposal = proposeMapping("activities", items, clues);
    expect(expressions(proposal)).toMatchObject({
      id: 'item["Activity Id"]',
      syncJobId: "item.job.id",
      startedAt: "item.when",
      finished: undefined,
    });
    expect(proposal.grows).toBe("at its front");
  });

  it("never takes a time, a counter of things or a name for an id", () => {
    const items = many((n) => ({ at: iso(n), itemsCount: (n * 37) % 1_009, documentName: `Contract ${n}.docx` }));
    const proposal = proposeMapping("activities", items, clues);
    expect(expressions(proposal)["id"]).toBeUndefined();
    expect(expressions(proposal)["label"]).toBe("item.documentName");
    expect(proposal.limits).toHaveLength(2);
  });

  it("proposes no ending for an activity that is not recognised once it has changed", () => {
    const items = many((n) => ({ syncJobId: 10 + (n % 4), state: n > 95 ? "Running" : "Finished", startedAt: iso(n) }));
    const proposal = proposeMapping("activities", items, clues);
    const [id, , , finished] = proposal.lines;
    expect(id).toMatchObject({ certainty: "none" });
    expect(finished).toMatchObject({ fact: "finished", expression: undefined, instead: 'item.state == "Finished"' });
    expect(proposal.limits.join(" ")).toContain("evidence: inferred");
  });

  it("holds a field with few small numbers for a sync job only with doubt", () => {
    const items = many((n) => ({ id: n, priority: 1 + (n % 3) }));
    const ids = {
      syncJobIds: new Set(Array.from({ length: 50 }, (_, index) => String(index + 1))),
      joinElsewhere: undefined,
    };
    expect(certainties(proposeMapping("activities", items, ids))["syncJobId"]).toBe("low");
  });

  it("reads a field that may be missing without failing on the items that lack it", () => {
    const items = many((n) => ({
      id: n,
      syncJobId: 10 + (n % 4),
      ...(n > 60 ? {} : { completedOn: iso(n + 1) }),
      startedOn: iso(n),
    }));
    expect(expressions(proposeMapping("activities", items, clues))["finished"]).toBe(
      "item.?completedOn.orValue(null) != null",
    );
  });

  it("guesses no zone silently", () => {
    const items = many((n) => ({ id: n, syncJobId: 10, startedAt: iso(n).slice(0, 19) }));
    const line = proposeMapping("activities", items, clues).lines.find(({ fact }) => fact === "startedAt");
    expect(line).toMatchObject({ expression: 'item.startedAt + "Z"', certainty: "low" });
  });

  it("has nothing to say of an empty list", () => {
    const proposal = proposeMapping("activities", [], clues);
    expect(proposal.lines.every(({ expression }) => expression === undefined)).toBe(true);
  });

  it("never throws, and proposes nothing that does not compile, whatever the items are", () => {
    const name = fc.oneof(
      fc.constantFrom("__proto__", "in", "id", "state"),
      fc.string({ unit: fc.constantFrom(..."aB1_$ .\"'\\\n[]{}é\u2028") }),
    );
    const item = fc.oneof(fc.anything(), fc.object({ maxDepth: 4 }), fc.dictionary(name, fc.jsonValue()));
    const same = fc
      .tuple(fc.dictionary(name, fc.jsonValue()), fc.nat({ max: 40 }))
      .map(([one, times]) => Array(times).fill(one));
    fc.assert(
      fc.property(fc.constantFrom(...listNames), fc.oneof(fc.array(item, { maxLength: 40 }), same), (list, items) => {
        for (const { expression } of proposeMapping(
          list,
          JSON.parse(JSON.stringify(items, (_, value) => (typeof value === "bigint" ? 1 : value)) ?? "[]"),
          clues,
        ).lines)
          if (expression !== undefined) expect(checkExpression(expression, "item")).toBeUndefined();
        proposeMapping(list, items, clues);
      }),
      { numRuns: 60 },
    );
  });
});
