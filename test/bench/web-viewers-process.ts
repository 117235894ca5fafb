// Viewers and programs in a process of their own: web-viewers-process.ts TOKENS. Viewers keep a
// stream open and fetch their page at each change, as its script does; programs ask the API at an
// even pace. Asked by web-viewers.ts through child.ts.
import { readFileSync } from "node:fs";
import { Agent, get, type IncomingMessage } from "node:http";
import { setPriority } from "node:os";
import { answerParent } from "./child.ts";
import { viewedLists, viewedPages } from "./web-installation.ts";

// Viewers have machines of their own.
setPriority(19);
const [file = ""] = process.argv.slice(2);
const tokens = readFileSync(file, "utf8").split("\n");
const agent = new Agent({ keepAlive: true, maxSockets: 100 });
let port = 0;
let [pagesRead, unchanged, listsRead, failed, changes, bytes] = [0, 0, 0, 0, 0, 0];
let stop: (() => void)[] = [];

answerParent(
  {
    /** At `at`: `viewers` streams, all of the first page when `isOne`, and `perSecond` requests. */
    begin: async ({ at = 0, viewers = 0, perSecond = 0, isOne = 0 }) => {
      port = at;
      [pagesRead, unchanged, listsRead, failed, changes, bytes] = [0, 0, 0, 0, 0, 0];
      for (let viewer = 0; viewer < viewers; viewer += 1)
        await view(viewer, isOne > 0 ? 0 : viewer % viewedPages.length);
      if (perSecond === 0) return {};
      let asked = 0;
      const timer = setInterval(() => {
        asked += 1;
        void read(viewedLists[asked % viewedLists.length] ?? "", asked, {}).then(() => {
          listsRead += 1;
        });
      }, 1_000 / perSecond);
      stop.push(() => clearInterval(timer));
      return {};
    },
    end: () => {
      for (const one of stop) one();
      stop = [];
      return { pagesRead, unchanged, listsRead, failed, changes, bytes };
    },
  },
  async () => agent.destroy(),
);

/** Opens a stream; resolves when the server has begun it. */
function view(viewer: number, page: number): Promise<void> {
  let tag = "";
  let isBusy = false;
  const refresh = async () => {
    if (isBusy) return;
    isBusy = true;
    tag = await read(viewedPages[page] ?? "/", viewer, tag === "" ? {} : { "if-none-match": tag });
    pagesRead += 1;
    isBusy = false;
  };
  return new Promise((resolve) => {
    const stream = get(optionsOf("/events", viewer, {}), (answer) => {
      resolve();
      answer.on("data", (chunk: Buffer) => {
        if (!chunk.includes("changed")) return;
        changes += 1;
        void refresh();
      });
      answer.on("error", () => {});
    });
    stream.on("error", () => {});
    stop.push(() => stream.destroy());
  });
}

/** Reads all of an answer; resolves with its tag. */
async function read(path: string, caller: number, headers: Record<string, string>): Promise<string> {
  try {
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      get({ ...optionsOf(path, caller, headers), agent }, resolve).on("error", reject);
    });
    for await (const chunk of answer) bytes += (chunk as Buffer).length;
    if (answer.statusCode === 304) unchanged += 1;
    if (answer.statusCode !== 200 && answer.statusCode !== 304) failed += 1;
    return answer.headers.etag ?? "";
  } catch {
    // A kept connection that the server has just ended.
    failed += 1;
    return "";
  }
}

function optionsOf(path: string, caller: number, headers: Record<string, string>) {
  const authorization = `Bearer ${tokens[caller % tokens.length] ?? ""}`;
  return { host: "127.0.0.1", port, path, headers: { authorization, "accept-encoding": "gzip", ...headers } };
}
