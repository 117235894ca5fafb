// 200 stories of policies whose sync jobs hang, fail and recover in turn, held against an oracle.
// `STORY=17` tells one again, with its steps; `STORIES=5000` tells more.
import { describe, expect, it } from "vitest";
import { checkStory, planStory, storyText } from "../../support/notice-stories.ts";
import { beginMs, NotifyFixture } from "../../support/notify-fixture.ts";

const one = process.env["STORY"];
const count = Number(process.env["STORIES"] ?? 200);
const seeds = one === undefined ? Array.from({ length: count }, (_, index) => index + 1) : [Number(one)];

describe("what is told of sync jobs that hang, fail and recover in turn", () => {
  it("is each change once, true to its task, with none missing and none twice", { timeout: 600_000 }, async () => {
    const kinds = new Map<string, number>();
    for (const seed of seeds) {
      const story = planStory(seed, beginMs);
      if (one !== undefined) process.stdout.write(`${storyText(story)}\n`);
      const fixture = new NotifyFixture([]);
      expect(await checkStory(story, fixture)).toEqual([]);
      for (const { notice } of fixture.delivered) kinds.set(notice.kind, (kinds.get(notice.kind) ?? 0) + 1);
    }
    if (one === undefined) expect([...kinds.keys()].toSorted()).toEqual(["failing", "outcome", "recovered", "removed"]);
  });
});
