import { describe, expect, it } from "vitest";
import { createItemReader } from "../../../src/feeds/mapping.ts";

describe("an expression that fails on an item", () => {
  const reader = () =>
    createItemReader("activities", { id: "item.id", syncJobId: "item.job", finished: "item.state == 'Done'" });

  it("leaves that fact of that item unknown, and nothing else", () => {
    const { read } = reader();
    expect(read({ id: 1, job: 42 })).toMatchObject({ id: "1", syncJobId: "42", finished: undefined });
    expect(read({ id: 2, job: 42, state: "Done" })).toMatchObject({ id: "2", finished: true });
  });

  it("is counted, and the item is named by its id", () => {
    const { read, failures } = reader();
    read({ id: 1, job: 42, state: "Done" });
    expect(failures()).toEqual({ count: 0, last: "", item: "" });
    read({ id: 2, state: "Done" });
    read({ id: 3, job: 42 });
    expect(failures()).toEqual({ count: 2, last: "finished: No such key: state", item: "3" });
  });

  it("names an item without an id by a hash", () => {
    const { read, failures } = reader();
    const { id } = read({ job: 42, state: "Done" });
    expect(id).toMatch(/^#[0-9a-f]+$/);
    expect(failures()).toMatchObject({ count: 1, item: id });
  });

  it("knows an approval by its documented fields", () => {
    const read = createItemReader("approvals").read({ approvalId: 7, itemName: "Release", itemId: "x" });
    expect(read).toMatchObject({ id: "7", label: "Release" });
  });
});
