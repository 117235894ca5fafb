// Viewers and programs in a process of their own: web-viewers-process.ts TOKENS. Viewers sign in as
// people do, keep a stream open and fetch their page at each change, as its script does; programs
// ask the API with their token at an even pace. Asked by web-viewers.ts through child.ts.
import { readdirSync, readFileSync } from "node:fs";
import { Agent, get, type IncomingMessage, request } from "node:http";
import { setPriority } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { answerParent } from "./child.ts";
import { viewedLists, viewedPages } from "./web-installation.ts";

// Viewers have machines of their own. Linux knows a priority of each thread.
for (const thread of readdirSync("/proc/self/task")) setPriority(Number(thread), 19);
const [file = ""] = process.argv.slice(2);
const tokens = readFileSync(file, "utf8").split("\n");
const agent = new Agent({ keepAlive: true, maxSockets: 100 });
/** The cookies of those who have signed in. */
const cookies = new Map<number, string>();
/** From one address so many may sign in at once, then one a second. */
const [signInsAtOnce, signInEveryMs] = [60, 1_100];
let port = 0;
let [pagesRead, unchanged, listsRead, failed, changes, bytes] = [0, 0, 0, 0, 0, 0];
let stop: (() => void)[] = [];

answerParent(
  {
    /** At `at`: `viewers` streams, all of the first page when `isOne`, and `perSecond` requests. */
    begin: async ({ at = 0, viewers = 0, perSecond = 0, isOne = 0 }) => {
      port = at;
      [pagesRead, unchanged, listsRead, failed, changes, bytes] = [0, 0, 0, 0, 0, 0];
      for (let viewer = 0; viewer < viewers; viewer += 1) await signIn(viewer);
      for (let viewer = 0; viewer < viewers; viewer += 1)
        await view(viewer, isOne > 0 ? 0 : viewer % viewedPages.length);
      if (perSecond === 0) return {};
      let asked = 0;
      const timer = setInterval(() => {
        asked += 1;
        const authorization = `Bearer ${tokenOf(asked)}`;
        void read(viewedLists[asked % viewedLists.length] ?? "", { authorization }).then(() => {
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

function tokenOf(caller: number): string {
  return tokens[caller % tokens.length] ?? "";
}

/** Signs in, once for all blocks; resolves with the cookie of the session. */
async function signIn(viewer: number): Promise<string> {
  const known = cookies.get(viewer);
  if (known !== undefined) return known;
  if (cookies.size >= signInsAtOnce) await delay(signInEveryMs);
  const headers = { "content-type": "application/x-www-form-urlencoded", "sec-fetch-site": "same-origin" };
  const form = new URLSearchParams({ token: tokenOf(viewer), next: "/" }).toString();
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const asked = request({ host: "127.0.0.1", port, path: "/sign-in", method: "POST", headers }, resolve);
    asked.on("error", reject).end(form);
  });
  answer.resume();
  const [cookie] = answer.headers["set-cookie"]?.[0]?.split(";") ?? [];
  if (cookie === undefined) throw new Error(`signing in is answered with ${answer.statusCode}`);
  cookies.set(viewer, cookie);
  return cookie;
}

/** Opens a stream; resolves when the server has begun it. */
async function view(viewer: number, page: number): Promise<void> {
  const cookie = await signIn(viewer);
  let tag = "";
  let isBusy = false;
  const refresh = async () => {
    if (isBusy) return;
    isBusy = true;
    tag = await read(viewedPages[page] ?? "/", tag === "" ? { cookie } : { cookie, "if-none-match": tag });
    pagesRead += 1;
    isBusy = false;
  };
  return new Promise((resolve) => {
    const stream = get(optionsOf("/events", { cookie }), (answer) => {
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
async function read(path: string, headers: Record<string, string>): Promise<string> {
  try {
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      get({ ...optionsOf(path, headers), agent }, resolve).on("error", reject);
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

function optionsOf(path: string, headers: Record<string, string>) {
  return { host: "127.0.0.1", port, path, headers: { "accept-encoding": "gzip", ...headers } };
}
