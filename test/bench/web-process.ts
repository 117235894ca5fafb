// A Syncline with the role web in a process of its own: web-process.ts REDIS_URL POLICIES TOKENS.
// Asked by web.ts through child.ts: its port, its CPU, and for how long it let nothing else run.
import { startApp } from "../../src/app/app.ts";
import { giveWay } from "../../src/cli/serve.ts";
import { policyChecks } from "../../src/cli/shared-options.ts";
import { createLogger } from "../../src/ops/logger.ts";
import { benchPrefix } from "./bench-app.ts";
import { answerParent } from "./child.ts";
import { webSet } from "./web-installation.ts";

const [url = "", policies = "", tokens = ""] = process.argv.slice(2);
giveWay(["web"]);
let port = 0;
let blockedMs = 0;
let isWatching = false;

const app = await startApp({
  set: webSet(Number(policies)),
  redis: { url, prefix: benchPrefix },
  roles: ["web"],
  variables: { T: "bench" },
  log: createLogger("info", (line) => {
    const { event, url: at = "" } = JSON.parse(line);
    if (event === "web.listening") port = Number(new URL(at).port);
    else if (event !== "serve.ready") process.stderr.write(`${line}\n`);
  }),
  web: { host: "127.0.0.1", port: 0, tokens, auth: undefined, isReadOnly: false, checks: policyChecks },
  takeOverAfterMs: 30_000,
  drainMs: 5_000,
});
answerParent(
  {
    port: () => ({ port }),
    /** The longest stretch of work since the last call; watched from the first call on. */
    blocked: () => {
      const longest = blockedMs;
      blockedMs = 0;
      if (!isWatching) watchTurns();
      return { longest };
    },
  },
  () => app.stop(),
);

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/** CPU between two turns of a timer: what others on this machine take is not in it. */
function watchTurns(): void {
  isWatching = true;
  let turnMs = cpuMs();
  setInterval(() => {
    const nowMs = cpuMs();
    blockedMs = Math.max(blockedMs, nowMs - turnMs);
    turnMs = nowMs;
  }, 1);
}
