// One replica as a process: what `syncline serve` does, with a clock that is off and with traps.
// Started by replica.ts. Its clock is shifted before anything of Syncline is loaded, so that every
// library sees it so.
import { shiftClock } from "../support/shifted-clock.ts";
import type { ReplicaOrder, ReplicaOrders, WarmUpOrders } from "./replica-orders.ts";

const orders: ReplicaOrders | WarmUpOrders = JSON.parse(process.env["CHAOS_REPLICA"] ?? "");
if (!orders.isWarmUp && orders.clockShiftMs !== 0) shiftClock(orders.clockShiftMs);
// The driver is gone: nobody is left to stop this process.
process.on("disconnect", () => process.exit(1));

const { startApp } = await import("../../src/app/app.ts");
const { policyChecks } = await import("../../src/cli/shared-options.ts");
const { loadPolicies } = await import("../../src/config/load-policies.ts");
const { createLogger } = await import("../../src/ops/logger.ts");
const { blockLoop, setTraps, shiftSharedClock, watchExchanges } = await import("./traps.ts");
const { writeLine } = await import("./write-line.ts");
if (orders.isWarmUp) process.exit(0);

process.on("message", ({ order, ms }: ReplicaOrder) => {
  if (order === "block") blockLoop(ms);
  else if (order === "clock") shiftClock(ms);
  else shiftSharedClock(ms);
});
setTraps(orders.traps);
if (orders.exchangeMsMax !== undefined) watchExchanges(orders.exchangeMsMax);
const variables = process.env;
const loaded = await loadPolicies(orders.config, { variables, checks: policyChecks });
if (!loaded.ok) throw new Error(loaded.problems.map(({ line, message }) => `${line}: ${message}`).join("\n"));
const log = createLogger("info", writeLine);
const app = await startApp({
  set: loaded.set,
  redis: orders.redis,
  roles: orders.roles,
  variables,
  log,
  takeOverAfterMs: orders.takeOverAfterMs,
  drainMs: orders.drainMs,
  watch: { path: orders.config, checks: policyChecks },
  timing: orders.timing,
  pace: orders.pace,
});
log.info("serve.ready");
process.once("SIGTERM", () => {
  app.stop().then(
    () => process.exit(0),
    (error: unknown) => {
      process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
      process.exit(1);
    },
  );
});
