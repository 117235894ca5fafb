// SAP CAP over the paths of the service (test/contract/cap): a real OData server that nobody here
// wrote, in a process of its own.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";

const orders = {
  ascending: [],
  descending: [{ ref: ["activityId"], sort: "desc" }],
  hash: [{ ref: ["state"] }, { ref: ["activityId"] }],
};

/** How it pages, and what it holds. */
export interface CapOptions {
  /** 100 unless set. */
  readonly pageSize?: number;
  /**
   * CAP's own option: links with base64 JSON that holds a key, instead of an offset. False unless
   * set.
   */
  readonly reliablePaging?: boolean;
  /** 250 unless set. */
  readonly activities?: number;
  /**
   * The order of the activities: by id, or by their state first, so that new ones come to stand
   * anywhere. Ascending unless set.
   */
  readonly order?: keyof typeof orders;
}

/** A running one: activities, 200 conflict details, three sync jobs. */
export interface CapServer {
  readonly baseUrl: string;
  readonly stop: () => void;
}

/** Starts it; takes some seconds. */
export async function startCapServer(options: CapOptions = {}): Promise<CapServer> {
  const { pageSize = 100, reliablePaging = false, activities = 250, order = "ascending" } = options;
  const config = {
    query: { limit: { default: pageSize, reliablePaging } },
    contract: { activities, orderBy: orders[order] },
  };
  const cwd = join(import.meta.dirname, "../contract/cap");
  const serve = createRequire(import.meta.url).resolve("@sap/cds/bin/serve.js");
  const cap = spawn(process.execPath, [serve, "srv", "--in-memory", "--port", "0"], {
    cwd,
    env: { ...process.env, CDS_CONFIG: JSON.stringify(config) },
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
