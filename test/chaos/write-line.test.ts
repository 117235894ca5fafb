import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { expect, it } from "vitest";

const module = new URL("write-line.ts", import.meta.url).href;

it("loses no line when a replica fills the pipe and exits at once", async () => {
  const program = `import { writeLine } from ${JSON.stringify(module)};
    void process.stdout; // From now on a full pipe is an error to whoever writes past the stream.
    for (let line = 0; line < 5000; line += 1) writeLine("line " + line + " " + "x".repeat(100));
    process.kill(process.pid, "SIGKILL");`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
  expect(await once(child, "close")).toEqual([null, "SIGKILL"]);
  expect(lines).toHaveLength(5_000);
  expect(lines.at(-1)).toBe(`line 4999 ${"x".repeat(100)}`);
});
