import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { folderForTest } from "../../support/folder.ts";
import { noticeOf } from "../../support/receiver.ts";
import { redisForTest } from "../../support/redis.ts";
import { sinkOf, startSinks } from "../../support/sink-fixture.ts";

const redis = redisForTest();

/** A file system of 64 KiB; undefined where this user may not mount. */
function smallDisk(): string | undefined {
  const folder = join(folderForTest(), "disk");
  mkdirSync(folder);
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], { stdio: "ignore" });
  } catch {
    return undefined;
  }
  onTestFinished(() => void execFileSync("umount", ["-l", folder]));
  return folder;
}

it("a full disk stops only its own sink; drops are counted, and no line is torn", async (context) => {
  const disk = smallDisk();
  if (disk === undefined) return context.skip("needs the right to mount");
  const [full, other] = [join(disk, "n.jsonl"), join(folderForTest(), "n.jsonl")];
  writeFileSync(join(disk, "ballast"), Buffer.alloc(60 * 1_024));
  const file = (path: string) => ({ kind: "file", path, bytesMax: 1_000_000, filesMax: 2 }) as const;
  const { sinks, log, added } = await startSinks(redis, [
    sinkOf("full", file(full), { queueMax: 40 }),
    sinkOf("other", file(other)),
  ]);
  const ids = Array.from({ length: 100 }, (_, index) => `n${index + 1}`);
  const linesOf = (path: string) => readFileSync(path, "utf8").trimEnd().split("\n");
  for (const id of ids) await sinks.enqueue(["full", "other"].map((sink) => ({ sink, notice: noticeOf(id) })));
  await expect.poll(() => linesOf(other).length).toBe(100);
  await log.until(({ event, sink }) => event === "sink.failing" && sink === "full");
  rmSync(join(disk, "ballast"));
  await log.until(({ event, sink }) => event === "sink.recovered" && sink === "full");
  await expect.poll(async () => (await sinks.queues.backlog("full")).waiting).toBe(0);
  const dropped = added.get("syncline_sink_dropped_total full") ?? 0;
  const written = linesOf(full).map((line) => String(JSON.parse(line).id));
  // Every line is whole, none comes twice, and each notice was either written or counted.
  expect(new Set(written).size).toBe(written.length);
  expect(written.length + dropped).toBe(100);
  expect(dropped).toBeGreaterThan(0);
  expect(written).toEqual(ids.filter((id) => written.includes(id)));
  expect(log.named("sink.failing")).toHaveLength(1);
});
