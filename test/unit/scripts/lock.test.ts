// The lock that keeps two bootstraps of one folder apart.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { withLock } from "../../../scripts/bootstrap/lock.mjs";

let folder = "";
let lock = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "syncline-lock-"));
  lock = join(folder, "the.lock");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function leaveLockOf(pid: number, startedAt: string): void {
  mkdirSync(lock);
  writeFileSync(join(lock, "owner.json"), JSON.stringify({ pid, startedAt, token: `${pid}-left` }));
}

describe("withLock", () => {
  it("gives back the result of the work and leaves nothing behind", async () => {
    expect(await withLock(lock, () => "result")).toBe("result");
    expect(readdirSync(folder)).toEqual([]);
  });

  it("lets go when the work fails", async () => {
    await expect(withLock(lock, () => Promise.reject(new Error("no luck")))).rejects.toThrow("no luck");
    expect(await withLock(lock, () => "again")).toBe("again");
  });

  it("takes over from a process that is no more", async () => {
    const gone = spawnSync(process.execPath, ["-e", ""]);
    leaveLockOf(gone.pid, "");
    expect(await withLock(lock, () => "mine", { waitMs: 0 })).toBe("mine");
  });

  it("takes over when the process id now belongs to another process", async () => {
    leaveLockOf(process.pid, "started at another time");
    expect(await withLock(lock, () => "mine", { waitMs: 0 })).toBe("mine");
  });

  it("takes over from a lock without a note", async () => {
    mkdirSync(lock);
    writeFileSync(join(lock, "owner.json"), "{");
    expect(await withLock(lock, () => "mine", { waitMs: 0 })).toBe("mine");
  });

  it("takes over an empty folder", async () => {
    mkdirSync(lock);
    expect(await withLock(lock, () => "mine", { waitMs: 0 })).toBe("mine");
  });

  it("waits for a living holder, says so, and gives up in the end", async () => {
    const waits: number[] = [];
    const inner = withLock(lock, () => withLock(lock, () => "never", { waitMs: 0, onWait: (pid) => waits.push(pid) }));
    await expect(inner).rejects.toThrow(`process ${process.pid} has held the lock ${lock} for too long`);
    expect(waits).toEqual([process.pid]);
  });

  it("lets many processes in one at a time, also past a dead one", async () => {
    leaveLockOf(spawnSync(process.execPath, ["-e", ""]).pid, "");
    const module = new URL("../../../scripts/bootstrap/lock.mjs", import.meta.url).href;
    const script = `const { withLock } = await import(${JSON.stringify(module)});
      const { mkdirSync, rmdirSync } = await import("node:fs");
      for (let round = 0; round < 50; round += 1)
        await withLock(${JSON.stringify(lock)}, async () => {
          mkdirSync(${JSON.stringify(join(folder, "inside"))}); // fails when another one is inside
          await new Promise(setImmediate);
          rmdirSync(${JSON.stringify(join(folder, "inside"))});
        });`;
    const ends = Array.from({ length: 4 }, () =>
      once(spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: "inherit" }), "exit"),
    );
    expect(await Promise.all(ends)).toEqual([
      [0, null],
      [0, null],
      [0, null],
      [0, null],
    ]);
  });
});
