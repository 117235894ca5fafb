import { expect, it } from "vitest";
import { policyChecks } from "../../../src/cli/shared-options.ts";
import { loadPolicies } from "../../../src/config/load-policies.ts";
import { fileWith, folderOf, variables } from "./policy-fixture.ts";

async function load(poll: string) {
  const folder = await folderOf({ "p.yaml": fileWith(`  - { name: watch, service: main, poll: ${poll} }`) });
  const loaded = await loadPolicies(folder, { variables, checks: policyChecks });
  return loaded.ok
    ? loaded.set.policies.map(({ action }) => action)
    : loaded.problems.map(({ line, message }) => `${line}: ${message}`);
}

it("a poll is told when it changes, unless it says otherwise", async () => {
  expect(await load("{ list: masks }")).toEqual([
    { kind: "poll", list: "masks", expect: undefined, notifyOn: "change" },
  ]);
  expect(await load('{ list: triggers, offending: "!item.isActive", notifyOn: always }')).toEqual([
    { kind: "poll", list: "triggers", expect: undefined, offending: "!item.isActive", notifyOn: "always" },
  ]);
});

it("a poll with a wrong expression is refused where it stands", async () => {
  expect(await load('{ list: masks, offending: "!mask.name" }')).toEqual(["5: poll.offending: Unknown variable: mask"]);
  expect(await load('{ list: masks, expect: "count == previous.count" }')).toEqual([
    "5: poll.expect: `previous` is null at the first poll: write `previous == null || …`",
  ]);
  expect(await load("{ list: masks, notifyOn: never }")).toEqual([
    expect.stringMatching(/^5: poll\.notifyOn: .*change.*always/),
  ]);
});
