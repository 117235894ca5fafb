import { describe, expect, it } from "vitest";
import { findBlame } from "../../../src/apply/apply-object.ts";

const fields = ["siteName", "siteId", "folderName"];

describe("who is to blame for a 400", () => {
  it.each([
    ["The property 'siteId' is read-only.", { field: "siteId", isReadOnly: true }],
    ["SITEID cannot be changed", { field: "siteId", isReadOnly: true }],
    ["siteId: Immutable property", { field: "siteId", isReadOnly: true }],
    ["siteId is too long", { field: "siteId", isReadOnly: false }],
  ])("is the field that it names: %s", (answer, blame) => {
    expect(findBlame(fields, answer)).toMatchObject(blame);
  });

  it.each([
    undefined,
    "",
    "Invalid request data",
    "siteId cannot be changed without siteName",
    "mySiteIdentifier is read-only",
    "read-only properties sent",
  ])("is undecided when it names none or several: %s", (answer) => {
    expect(findBlame(fields, answer)).toMatchObject({ field: undefined, isReadOnly: false });
  });

  it("is the one that was sent alone, and read-only only when the service says so", () => {
    expect(findBlame(["siteId"], undefined)).toEqual({ field: "siteId", isReadOnly: false, said: "" });
    expect(findBlame(["siteId"], "read-only properties sent")).toMatchObject({ field: "siteId", isReadOnly: true });
  });

  it.each([
    "The sync job could not be updated: the name already exists",
    "A sync job cannot be changed while it is running",
    "The repository is in read-only mode",
    "The name of the sync job could not be updated",
  ])("is not read-only when the refusal is about the value or the moment: %s", (answer) => {
    expect(findBlame(["name"], answer)).toEqual({ field: "name", isReadOnly: false, said: answer });
  });
});
