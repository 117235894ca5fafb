import { expect, it } from "vitest";
import { narrowTo, type QueryContext, wholeView } from "../../../src/queries/query-context.ts";
import { setOf } from "../../support/kept-set.ts";
import { testPolicy } from "../../support/policies.ts";

it("what callers may see of a set is worked out once, and anew for another set", () => {
  const set = setOf([testPolicy({ name: "wages", labels: { team: "hr" } }), testPolicy({ name: "orders" })]);
  const context = { set, view: wholeView } as unknown as QueryContext;
  const seen = (within: QueryContext, labels = "team=hr") => narrowTo(within, { services: undefined, labels }).set;
  const names = (within: QueryContext, labels?: string) => seen(within, labels).policies.map(({ name }) => name);
  expect([names(context), names(context, "team=it"), names(context)]).toEqual([["wages"], [], ["wages"]]);
  expect(seen({ ...context })).toBe(seen(context));
  const next = setOf([testPolicy({ name: "leave", labels: { team: "hr" } })]);
  expect(names({ ...context, set: next })).toEqual(["leave"]);
});
