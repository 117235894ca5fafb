#!/usr/bin/env node
// The entry of the process: listens to signals first, then loads the program (program.ts). Loading takes half a second, and a process
// that is alone in its container (PID 1) misses for good what comes before somebody listens. The single place that ends the process and
// listens to signals. Imports nothing else.

const stop = new AbortController();
const onSignal = () => {
  // The first one drains; a second one does not wait.
  if (stop.signal.aborted) process.exit(1);
  stop.abort();
};
process.on("SIGINT", onSignal);
process.on("SIGTERM", onSignal);
// Started by another program that is gone now: nobody is left to stop this one.
process.on("disconnect", onSignal);

const { describeBug, main } = await import("./program.ts");
// Without this Node prints the error with everything attached to it; unhandled rejections come this way too.
process.on("uncaughtException", (error: unknown) => {
  process.stderr.write(`${describeBug(error)}\n`);
  process.exit(1);
});
const args = process.argv.slice(2);
// Nothing has begun yet, and only `serve` has an end of its own to it.
if (stop.signal.aborted && args[0] !== "serve") process.exit(1);
process.exit(await main(args, stop));
