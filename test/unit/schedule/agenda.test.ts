import { expect, it } from "vitest";
import { Agenda } from "../../../src/schedule/agenda.ts";
import { testPolicy } from "../../support/policies.ts";

// Loops of the scheduler share a round: one may have recorded slots that another leaves to others.
it("a policy that is off the agenda does not come back with its watermark", () => {
  const agenda = new Agenda();
  agenda.adopt([testPolicy({ name: "own" }), testPolicy({ name: "left" })], new Map(), 0);
  expect(agenda.remove(["left"])).toEqual(["left"]);
  for (const name of ["own", "left"]) agenda.moveWatermark(name, 5_000);
  expect(agenda.names()).toEqual(new Set(["own"]));
  expect(agenda.schedules()).toMatchObject([{ policy: "own", beginsMs: 5_000 }]);
});
