// The passwords of Redis, wherever they come from, are known to the net before anything is
// connected, and certificates are never left out in silence.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { CommandIo } from "../../../src/cli/command-io.ts";
import { redisTarget } from "../../../src/cli/shared-options.ts";
import { readSettings } from "../../../src/config/settings.ts";
import { withoutKnownSecrets } from "../../../src/core/secrets.ts";
import { folderForTest } from "../../support/folder.ts";

function ioWith(variables: Readonly<Record<string, string>>): CommandIo {
  return {
    out: () => {},
    err: () => {},
    colours: false,
    settings: readSettings(variables),
    readInput: async () => "",
    signal: new AbortController().signal,
    exitCode: 0,
  };
}

const open = (redisUrl: string, variables: Readonly<Record<string, string>> = {}) =>
  redisTarget({ redisUrl, prefix: "{syncline}" }, ioWith(variables));

it("certificates are refused where Redis is asked without TLS", async () => {
  const file = join(folderForTest(), "ca.crt");
  await writeFile(file, "CA");
  for (const url of ["redis://h", "redis+sentinel://h/main"])
    expect(() => open(url, { REDIS_CA_FILE: file })).toThrow(
      "do nothing where the address of Redis does not speak TLS",
    );
  expect(open("rediss://h", { REDIS_CA_FILE: file }).access).toMatchObject({ ca: "CA" });
});

it.each([
  ["one server", "redis://user:canary-one-1%40x@h:6379/1", ["canary-one-1%40x", "canary-one-1@x"]],
  ["Sentinels", "rediss+sentinel://user:canary-two-2@h1:26379,h2:26379/main", ["canary-two-2"]],
  ["a cluster", "redis+cluster://:canary-three-3@h1:1,h2:2,[::1]:3", ["canary-three-3"]],
])("the password in the URL of %s is taken out of every line", (_, url, forms) => {
  open(url);
  for (const form of forms) expect(withoutKnownSecrets(`WRONGPASS ${form}.`)).toBe("WRONGPASS […].");
});

it("a password that a URL cannot hold is taken out too, although the URL is refused", () => {
  for (const password of ["canary/four-4", "canary#five-5", "canary?six-6", "canary@seven-7"]) {
    expect(() => open(`redis://:${password}@h:6379,`)).toThrow("REDIS_URL");
    expect(withoutKnownSecrets(`at redis.connect ${password}.`)).toBe("at redis.connect […].");
  }
});

it("a password in a variable or a file of its own is taken out of every line", async () => {
  const folder = folderForTest();
  const file = async (text: string) => {
    const path = join(folder, text.slice(0, 12));
    await writeFile(path, `${text}\n`);
    return path;
  };
  open("redis://h", { REDIS_PASSWORD: "canary-eight-8", REDIS_SENTINEL_PASSWORD_FILE: await file("canary-nine-9") });
  open("redis://h", { REDIS_PASSWORD_FILE: await file("canary-ten-10") });
  expect(withoutKnownSecrets("canary-eight-8 canary-nine-9 canary-ten-10")).toBe("[…] […] […]");
});
