// A Syncline worker whose every outcome goes to a webhook, in a process of its own:
// notified-app.ts REDIS_URL PREFIX SERVICE_URL HOOK_URL SECRET_FILE. Started by notified-starts.ts,
// and killed by it.
import { startApp } from "../../src/app/app.ts";
import { createLogger } from "../../src/ops/logger.ts";
import { answerParent } from "./child.ts";
import { notifiedSet } from "./notified-set.ts";

const [url = "", prefix = "", serviceUrl = "", hookUrl = "", secretFile = ""] = process.argv.slice(2);
const app = await startApp({
  set: await notifiedSet({ serviceUrl, hookUrl, secretFile }),
  redis: { url, prefix },
  roles: ["worker"],
  variables: { BENCH_TOKEN: "bench", SYNCLINE_OUTCOMES_KEPT: "100000" },
  log: createLogger("info", (line) => process.stdout.write(`${line}\n`)),
  takeOverAfterMs: 5_000,
  drainMs: 5_000,
});
answerParent({}, () => app.stop());
