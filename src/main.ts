#!/usr/bin/env node
// The entry of the process. It listens to signals first, then loads the program (cli/program.ts),
// which takes half a second: alone in a container (PID 1), it would lose a signal that comes before
// it listens. Only this file ends the process and listens to signals. It imports nothing else.

const stop = new AbortController();
const onSignal = () => {
  // The first signal drains; the second ends the process at once.
  if (stop.signal.aborted) process.exit(1);
  stop.abort();
};
const echoWithinS = 0.5;
let interruptedAtS = Number.NEGATIVE_INFINITY;
process.on("SIGINT", () => {
  // Under `npm run` each Ctrl-C comes twice: npm passes on what the terminal has sent already.
  if (process.uptime() - interruptedAtS < echoWithinS) return;
  interruptedAtS = process.uptime();
  onSignal();
});
process.on("SIGTERM", onSignal);
// The parent process is gone: no other signal will come.
process.on("disconnect", onSignal);

const { describeBug, main } = await import("./cli/program.ts");
// Otherwise Node prints the error with all its properties. Unhandled rejections come here too.
process.on("uncaughtException", (error: unknown) => {
  process.stderr.write(`${describeBug(error)}\n`);
  process.exit(1);
});
const args = process.argv.slice(2);
// No command has begun yet, and only `serve` has its own way to end.
if (stop.signal.aborted && args[0] !== "serve") process.exit(1);
process.exit(await main(args, stop));
