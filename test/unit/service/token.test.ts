import { execFileSync } from "node:child_process";
import { rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Clock, systemClock } from "../../../src/core/clock.ts";
import { type EventFields, silentLog } from "../../../src/core/event-log.ts";
import { fileToken, staticToken } from "../../../src/service/token.ts";
import { folderForTest } from "../../support/folder.ts";
import { mountSecrets } from "../../support/secret-mount.ts";
import { TestLog } from "../../support/test-log.ts";
import { connect, errorOf, json, startServer } from "./test-server.ts";

async function scratchFile(text: string): Promise<string> {
  const folder = folderForTest();
  const path = join(folder, "token");
  await writeFile(path, text);
  return path;
}

function movableClock(): Clock & { move(durationMs: number): void } {
  let nowMs = 0;
  return {
    ...systemClock,
    monotonicMs: () => nowMs,
    move: (durationMs) => {
      nowMs += durationMs;
    },
  };
}

describe("a static token", () => {
  it("is trimmed and always the same", async () => {
    const token = staticToken(" abc.def-1 \n");
    expect(await token.get()).toBe("abc.def-1");
    expect(await token.renew("abc.def-1")).toBe("abc.def-1");
  });

  it.each([
    ["empty", "", "empty"],
    ["blank", " \n", "empty"],
    ["of two lines", "abc\nsecret", "white space, control"],
    ["with a carriage return", "abc\r\nX-Evil: 1", "white space, control"],
    ["with a NUL", "abc\u0000secret", "white space, control"],
    ["with an umlaut", "abcäsecret", "white space, control"],
    ["with the word Bearer", "Bearer secret", "leave that word out"],
    ["over 64 KiB", "s".repeat(65_537), "over 64 KiB"],
  ])("%s is refused without being shown", (_, text, problem) => {
    let message = "";
    try {
      staticToken(text);
    } catch (error) {
      message = String(error);
    }
    expect(message).toContain("TokenError");
    expect(message).toContain(problem);
    expect(message).not.toContain("secret");
    expect(message.length).toBeLessThan(200);
  });
});

describe("a token as short as a word", () => {
  it("is told of once, since it is not taken out of logs", async () => {
    const { url } = await startServer((_, response) => json(response, { value: [] }));
    const log = new TestLog();
    for (const text of ["demo-token", "demo"]) {
      const client = connect(url, { token: staticToken(text), log });
      await client.getTriggers();
      await client.getTriggers();
    }
    expect(log.named("token.too-short")).toMatchObject([{ level: "warn", characters: 4, charactersMin: 8 }]);
  });
});

describe("a token in a file", () => {
  it("is read again after 30 s, and at once when it was refused", async () => {
    const path = await scratchFile("\uFEFFfirst\n");
    const clock = movableClock();
    const token = fileToken(path, clock);
    expect(await token.get()).toBe("first");
    await writeFile(`${path}.new`, "second");
    await rename(`${path}.new`, path);
    clock.move(29_999);
    expect(await token.get()).toBe("first");
    clock.move(1);
    expect(await token.get()).toBe("second");
    await writeFile(path, "third");
    expect(await token.renew("second")).toBe("third");
    expect(await token.get()).toBe("third");
  });

  it("follows the swap of a mounted secret: after a 401 at once, else within 30 s", async () => {
    const mount = await mountSecrets({ token: "token-before" });
    const clock = movableClock();
    const source = fileToken(mount.path("token"), clock);
    const server = await startServer((request, response) => {
      response.writeHead(request.headers.authorization === "Bearer token-after" ? 200 : 401);
      response.end();
    });
    const service = connect(server.url, { token: source });
    await errorOf(service.runSyncJob(1));
    await mount.swap({ token: "token-after" });
    await service.runSyncJob(1);
    expect(server.seen.map(({ headers }) => headers.authorization)).toEqual([
      "Bearer token-before",
      "Bearer token-before",
      "Bearer token-after",
    ]);
    await mount.swap({ token: "token-later" });
    clock.move(29_999);
    expect(await source.get()).toBe("token-after");
    clock.move(1);
    expect(await source.get()).toBe("token-later");
  });

  it("that is missing or empty may be retried, since it may come; a too long one not", async () => {
    const tried = (path: string) => errorOf(fileToken(path).get());
    expect(await tried("/nowhere/token")).toMatchObject({
      temporary: true,
      message: expect.stringContaining("ENOENT"),
    });
    expect(await tried(tmpdir())).toMatchObject({ temporary: true, message: expect.stringContaining("EISDIR") });
    expect(await tried(await scratchFile(" \n"))).toMatchObject({ temporary: true });
    expect(await tried(await scratchFile("s".repeat(70_000)))).toMatchObject({
      temporary: false,
      message: expect.stringContaining("over 64 KiB"),
    });
  });

  // It warns once a minute.
  it("stays in force while the file is missing or no token; a refusal ends that", async () => {
    const path = await scratchFile("good-token-1");
    const clock = movableClock();
    const warned: unknown[] = [];
    const log = { ...silentLog, warn: (event: string, fields?: EventFields) => void warned.push({ event, ...fields }) };
    const token = fileToken(path, clock, log);
    await token.get();
    for (const text of ["", "two words", "s".repeat(70_000), undefined]) {
      await (text === undefined ? rm(path) : writeFile(path, text));
      clock.move(30_000);
      expect(await token.get()).toBe("good-token-1");
    }
    expect(warned).toMatchObject([
      { event: "token.renewal-failed", message: `token file ${path} is empty: put the access token there` },
      { event: "token.renewal-failed", message: expect.stringContaining("over 64 KiB"), leftOut: 1 },
    ]);
    expect(await errorOf(token.renew("good-token-1"))).toMatchObject({ temporary: true });
    await writeFile(path, "good-token-2\r\n");
    clock.move(30_000);
    expect(await token.get()).toBe("good-token-2");
  });

  it("that is cut to nothing and written anew costs no start", async () => {
    const path = await scratchFile("token-before");
    const server = await startServer((request, response) => {
      response.writeHead(request.headers.authorization === "Bearer token-after" ? 200 : 401);
      response.end();
    });
    const service = connect(server.url, { token: fileToken(path) });
    await writeFile(path, "");
    expect(await errorOf(service.runSyncJob(1))).toMatchObject({ kind: "unreachable", sent: "no" });
    await writeFile(path, "token-after");
    await service.runSyncJob(1);
  });

  it("that is a pipe without a writer is empty, and holds nothing up", async () => {
    const path = `${await scratchFile("")}.pipe`;
    execFileSync("mkfifo", [path]);
    expect(await errorOf(fileToken(path).get())).toMatchObject({
      temporary: true,
      message: expect.stringMatching(/is empty|EAGAIN/),
    });
  }, 20_000);
});
