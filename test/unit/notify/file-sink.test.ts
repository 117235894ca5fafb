import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createFileSink } from "../../../src/notify/file-sink.ts";
import { noticeOf } from "../../support/receiver.ts";

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "syncline-file-sink-"));
  path = join(folder, "n.jsonl");
});
afterEach(() => rmSync(folder, { recursive: true }));

const sink = (more: { bytesMax?: number; filesMax?: number; path?: string } = {}) =>
  createFileSink({ kind: "file", path, bytesMax: 1_000_000, filesMax: 3, ...more });
const signal = new AbortController().signal;
const linesOf = (file: string) => readFileSync(file, "utf8").trimEnd().split("\n");
const idsOf = (file: string) => linesOf(file).map((line) => JSON.parse(line).id);

describe("a file sink", () => {
  it("appends a line of JSON for each notice", async () => {
    for (const id of ["a", "b"]) expect(await sink().deliver(noticeOf(id), signal)).toEqual({ type: "taken" });
    expect(readFileSync(path, "utf8").endsWith("}\n")).toBe(true);
    expect(idsOf(path)).toEqual(["a", "b"]);
  });

  it("puts full files aside, the newest first, and keeps so many", async () => {
    await sink().deliver(noticeOf("1"), signal);
    const { size } = statSync(path);
    const small = sink({ bytesMax: 2 * size, filesMax: 3 });
    for (const id of ["2", "3", "4", "5", "6", "7"]) await small.deliver(noticeOf(id), signal);
    expect(idsOf(path)).toEqual(["7"]);
    expect(idsOf(`${path}.1`)).toEqual(["5", "6"]);
    expect(idsOf(`${path}.2`)).toEqual(["3", "4"]);
    expect(existsSync(`${path}.3`)).toBe(false);
  });

  it("starts its file anew when it is full, and still writes a longer line", async () => {
    const tiny = sink({ bytesMax: 1, filesMax: 1 });
    for (const id of ["a", "b"]) expect(await tiny.deliver(noticeOf(id), signal)).toEqual({ type: "taken" });
    expect(idsOf(path)).toEqual(["b"]);
    expect(existsSync(`${path}.1`)).toBe(false);
  });

  it("ends a line that a killed process left unfinished", async () => {
    await sink().deliver(noticeOf("a"), signal);
    appendFileSync(path, '{"specversion":"1.0","id":"ha');
    await sink().deliver(noticeOf("b"), signal);
    const [first, broken, last, ...more] = linesOf(path);
    expect([JSON.parse(first ?? "").id, broken, JSON.parse(last ?? "").id]).toEqual([
      "a",
      '{"specversion":"1.0","id":"ha',
      "b",
    ]);
    expect(more).toEqual([]);
  });

  it("follows when its file is moved away", async () => {
    const one = sink();
    await one.deliver(noticeOf("a"), signal);
    rmSync(path);
    await one.deliver(noticeOf("b"), signal);
    expect(idsOf(path)).toEqual(["b"]);
  });

  it("says why it cannot write", async () => {
    mkdirSync(join(folder, "d"));
    expect(await sink({ path: join(folder, "d") }).deliver(noticeOf("a"), signal)).toMatchObject({
      type: "later",
      reason: expect.stringContaining("EISDIR"),
    });
    expect(await sink({ path: join(folder, "no", "where") }).deliver(noticeOf("a"), signal)).toMatchObject({
      type: "later",
      reason: expect.stringContaining("ENOENT"),
    });
  });

  it.skipIf(!existsSync("/dev/full"))("waits while the disk is full", async () => {
    expect(await sink({ path: "/dev/full" }).deliver(noticeOf("a"), signal)).toEqual({
      type: "later",
      reason: "/dev/full cannot be written (ENOSPC)",
    });
  });
});
