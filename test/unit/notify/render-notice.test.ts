import { describe, expect, it } from "vitest";
import type { PolicySet } from "../../../src/config/policy-set.ts";
import type { Notice } from "../../../src/model/notice.ts";
import { withContext } from "../../../src/notify/notices.ts";
import { toBody } from "../../../src/notify/render-notice.ts";
import { noticeOf } from "../../support/receiver.ts";

const slack = (notice: Notice): string[] => JSON.parse(toBody(notice, "slack").text).text.split("\n");
const card = (notice: Notice) => JSON.parse(toBody(notice, "teams").text).attachments[0].content;

const failing: Notice = {
  ...noticeOf("n1", "contracts-nightly"),
  kind: "failing",
  at: "2026-11-20T23:31:05.123Z",
  title: "contracts-nightly: failing (server-error), sync job 42, 3 slots in a row",
  data: {
    detail: "answered with status 500 <b>",
    slot: "2026-11-20T22:30:00.000Z",
    targets: ["42", "43"],
    targetsCount: 2,
  },
  timezone: "Europe/Vienna",
  link: "https://grafana.example.com/d/syncline?var-policy=contracts-nightly&from=1",
};

const outage: Notice = {
  ...noticeOf("n2"),
  kind: "service-down",
  policy: null,
  title: "service main is down: 13 policies fail (a, b, c, …)",
  data: { policiesCount: 13, policies: Array.from({ length: 13 }, (_, index) => `policy-${index}`), leftOut: 2 },
};

const items: Notice = {
  ...noticeOf("n3"),
  kind: "items",
  policy: null,
  title: "conflictDetails of HR: 2 new",
  data: {
    list: "conflictDetails",
    repository: "HR",
    items: [
      { id: "a-1", label: "[click](https://evil.example)", syncJobId: "42", finished: true, succeeded: false },
      { id: "a-2" },
    ],
  },
};

describe("a chat message", () => {
  it("says in Slack what, why, about what, when in both clocks, and where to look", () => {
    expect(slack(failing)).toEqual([
      "contracts-nightly: failing (server-error), sync job 42, 3 slots in a row",
      "answered with status 500 &lt;b&gt;",
      "• sync job 42",
      "• sync job 43",
      "contracts-nightly · main · slot 2026-11-20 23:30:00 CET (22:30:00Z) · 2026-11-21 00:31:05 CET (2026-11-20 23:31:05Z)",
      "<https://grafana.example.com/d/syncline?var-policy=contracts-nightly&amp;from=1|look>",
    ]);
  });

  it("names ten of what it is about, and counts the rest and what it stands for", () => {
    const lines = slack(outage);
    expect(lines.slice(1, 3)).toEqual(["• policy-0", "• policy-1"]);
    expect(lines.slice(10)).toEqual([
      "• policy-9",
      "• and 3 more",
      "• and 2 earlier notices that this one stands for",
      "main · 2026-11-21 02:30:00Z",
    ]);
  });

  it.each([
    { policiesCount: 300, policies: outage.data["policies"] ?? [] },
    { targetsCount: 300, targets: Array.from({ length: 10 }, (_, index) => `${index}`) },
    { offending: 300, offendingItems: Array.from({ length: 10 }, (_, index) => `item-${index}`) },
  ])("counts what the data does not name, too: %o", (data) => {
    expect(slack({ ...outage, data }).at(-2)).toBe("• and 290 more");
  });

  it("says of new items their label, sync job and end", () => {
    expect(slack(items).slice(1, 3)).toEqual(["• [click](https://evil.example) (a-1), sync job 42, failed", "• a-2"]);
    expect(slack(items).at(-1)).toBe("main · HR · 2026-11-21 02:30:00Z");
  });

  it("is a card in Teams in which no label becomes a link", () => {
    const { body, actions } = card(items);
    const texts = body
      .slice(0, 3)
      .map(({ type, inlines }: { type: string; inlines: { text: string }[] }) => [type, inlines[0]?.text]);
    expect(texts).toEqual([
      ["RichTextBlock", "conflictDetails of HR: 2 new"],
      ["RichTextBlock", "• [click](https://evil.example) (a-1), sync job 42, failed"],
      ["RichTextBlock", "• a-2"],
    ]);
    expect(actions).toBeUndefined();
    expect(card(failing)).toMatchObject({
      actions: [{ type: "Action.OpenUrl", url: failing.link }],
      body: expect.arrayContaining([
        {
          type: "FactSet",
          facts: [
            { title: "policy", value: "contracts-nightly" },
            { title: "service", value: "main" },
            { title: "slot", value: "2026-11-20 23:30:00 CET (22:30:00Z)" },
            { title: "time", value: "2026-11-21 00:31:05 CET (2026-11-20 23:31:05Z)" },
          ],
        },
      ]),
    });
  });
});

describe("the context of a notice", () => {
  const policy = (name: string, timezone: string) =>
    ({ name, service: "main", timezone }) as unknown as PolicySet["policies"][0];
  const vienna = policy("nightly", "Europe/Vienna");
  const setOf = (policies: PolicySet["policies"], link?: string) => ({
    policies,
    notifications: { groupWaitMs: 0, muteTiming: undefined, ...(link === undefined ? {} : { link }) },
  });

  it("has the zone of its policy, or that of all policies of its service", () => {
    const tokyo = policy("other", "Asia/Tokyo");
    expect(withContext(noticeOf("n"), setOf([vienna, tokyo]), vienna).timezone).toBe("Europe/Vienna");
    const owned = withContext(noticeOf("n"), setOf([vienna]), { ...vienna, owner: "Ana, 4711" });
    expect(owned.data).toEqual({ ...noticeOf("n").data, owner: "Ana, 4711" });
    expect(slack(owned).at(-1)).toContain(" · owner Ana, 4711 · ");
    expect(withContext(outage, setOf([vienna, vienna])).timezone).toBe("Europe/Vienna");
    expect(withContext(outage, setOf([vienna, tokyo]))).toEqual(outage);
  });

  it("fills the link in; without a policy there is none that names one", () => {
    const link = "https://x.example/{kind}?p={policy}&s={service}&from={atMs}";
    const made = withContext({ ...noticeOf("n"), policy: "a b&c" }, setOf([vienna], link));
    expect(made.link).toBe("https://x.example/outcome?p=a%20b%26c&s=main&from=1795228200000");
    expect(JSON.parse(toBody(made, "cloudevents").text).data.link).toBe(made.link);
    expect(withContext(outage, setOf([vienna], link))).not.toHaveProperty("link");
    expect(withContext(outage, setOf([vienna], "https://x.example/{service}")).link).toBe("https://x.example/main");
  });
});
