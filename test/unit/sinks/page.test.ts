import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadPolicies } from "../../../src/config/load-policies.ts";
import { noticeKinds } from "../../../src/tasks/notice.ts";
import { checks, folderOf } from "../config/policy-fixture.ts";

const page = readFileSync(join(import.meta.dirname, "../../../docs/sinks.md"), "utf8");

describe("docs/sinks.md", () => {
  it("names every kind of notice", () => {
    expect(noticeKinds.filter((kind) => !page.includes(`\`${kind}\``))).toEqual([]);
  });

  it("begins with sinks that load", async () => {
    const yaml = /```yaml\n([^`]+)```/.exec(page)?.[1] ?? "";
    const folder = await folderOf({ "p.yaml": `apiVersion: syncline/v1\n${yaml}` });
    const variables = { SLACK_URL: "https://hooks.slack.com/services/T0/B0/X" };
    const loaded = await loadPolicies(folder, { variables, checks });
    expect(loaded.ok ? [...loaded.set.sinks.keys()] : loaded.problems).toEqual(["ops", "chat", "log"]);
  });
});
