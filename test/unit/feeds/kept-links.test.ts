import { describe, expect, it } from "vitest";
import {
  freshWalk,
  type ListKnowledge,
  readKnowledge,
  withoutCredentials,
} from "../../../src/feeds/strategy/choose-walk.ts";

const path = "/odata/approvals";
const plain = "https://a.example/odata/approvals?$skip=100";
const signed = "https://a.example/odata/approvals?$skip=100&sig=canary-link";
const known: ListKnowledge = { ...readKnowledge(null), order: "tail", pages: 9, lastPage: plain, openFrom: plain };
const underway = { ...freshWalk(7, 3), restarts: 1, pages: 4, items: 400, next: plain, lastPage: plain };

describe("the knowledge of a list", () => {
  it("is kept as it is when its links only say where to go on", () => {
    expect(withoutCredentials({ ...known, underway }, path)).toEqual({ ...known, underway });
  });

  it("loses both links when one has a credential: the other would skip pages", () => {
    for (const links of [{ lastPage: signed }, { openFrom: signed }]) {
      const kept = withoutCredentials({ ...known, ...links }, path);
      expect(kept).toEqual({ ...known, lastPage: null, openFrom: null, notKept: "sig" });
      // So it stays until a link that may be kept stands there.
      expect(withoutCredentials(kept, path)).toEqual(kept);
      expect(withoutCredentials({ ...kept, lastPage: plain }, path)).toMatchObject({ lastPage: plain, notKept: null });
    }
  });

  it("begins a walk anew that stands on such a link, with what it had counted", () => {
    for (const links of [{ next: signed }, { lastPage: signed }, { openFrom: signed }]) {
      const kept = withoutCredentials({ ...known, underway: { ...underway, ...links } }, path);
      expect(kept.underway).toEqual({ ...freshWalk(7, 3), restarts: 1 });
      expect(JSON.stringify(kept)).not.toContain("canary");
    }
  });
});
