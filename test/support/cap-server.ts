// SAP CAP over the paths of the service (test/contract/cap): a real OData server that nobody here wrote, in a process of its own.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** A running one: 250 activities, 200 conflict details, three sync jobs; a page has 100. */
export interface CapServer {
  readonly baseUrl: string;
  readonly stop: () => void;
}

/** Starts it; takes some seconds. */
export async function startCapServer(): Promise<CapServer> {
  const cwd = join(import.meta.dirname, "../contract/cap");
  const serve = createRequire(import.meta.url).resolve("@sap/cds/bin/serve.js");
  const cap = spawn(process.execPath, [serve, "srv", "--in-memory", "--port", "0"], {
    cwd,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const lines: string[] = [];
  let baseUrl = "";
  cap.stderr.on("data", (text: Buffer) => lines.push(text.toString()));
  for await (const line of createInterface(cap.stdout)) {
    lines.push(line);
    const port = /http:\/\/localhost:(\d+)/.exec(line)?.[1];
    if (port !== undefined) baseUrl = `http://localhost:${port}`;
    if (/launched in/.test(line)) break;
  }
  cap.stdout.resume();
  if (baseUrl === "") throw new Error(`CAP did not start:\n${lines.join("\n")}`);
  return { baseUrl, stop: () => cap.kill() };
}
