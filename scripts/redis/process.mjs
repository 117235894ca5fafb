// The life of one private Redis process: launched under a guard, awaited, pinged, stopped. Called
// by redis.mjs only. The guard is a shell that waits for the end of its standard input, which comes
// when the starter ends, however it ends. Waits for what the server says, never for time.
import { spawn } from "node:child_process";
import { connect, createServer } from "node:net";
import { Problem } from "../bootstrap/run.mjs";

// The shell becomes the server (exec), so the child's process id is the server's. The guard in the
// background reads "done" when the end was wanted; on the bare end of the input it kills the server
// and removes what the starter cannot.
const guarded = `
exec 3<&0
{
  read -r word <&3
  if [ "$word" != done ]; then
    kill -9 $$
    [ -z "$GUARD_CONTAINER" ] || docker rm -f "$GUARD_CONTAINER"
    [ -z "$GUARD_DIR" ] || rm -rf "$GUARD_DIR"
  fi
} >/dev/null 2>&1 &
exec "$@" </dev/null 3<&-
`;
const outputCharactersMax = 16_384;
const pingTimeoutMs = 5_000;
const stopTimeoutMs = 3_000;

/** Starts a command that dies with this process. `ownDir` or `container` is removed with it. */
export function launchGuarded(command, { env = {}, ownDir = "", container = "" }) {
  const child = spawn("/bin/sh", ["-c", guarded, "guard", ...command], {
    // In a session of its own: a Ctrl-C at the terminal is for the starter, who still needs its
    // Redis to stop cleanly.
    detached: true,
    env: { ...process.env, ...env, GUARD_DIR: ownDir, GUARD_CONTAINER: container },
    stdio: ["pipe", "pipe", "pipe"],
  });
  const guard = { process: child, output: "", ended: undefined, letGo: () => letGo(child) };
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text) => {
      guard.output = (guard.output + text).slice(-outputCharactersMax);
      child.emit("output");
    });
  }
  child.stdin.on("error", () => {}); // The guard may be gone before it hears "done".
  guard.ended = new Promise((resolve) => {
    child.once("error", (error) => {
      guard.output += error.message;
      resolve();
    });
    child.once("close", resolve);
  });
  guard.ended.then(() => child.stdin.end("done\n"));
  return guard;
}

/** From here on the server keeps nobody's event loop alive. */
function letGo(child) {
  for (const handle of [child, child.stdin, child.stdout, child.stderr]) handle.unref();
}

/**
 * Resolves to "ready" when the server says that it accepts connections, to "port-taken" when it
 * could not have its port.
 * @throws Problem with the server's last words when it ends or says nothing for `timeoutMs`.
 */
export async function awaitReady(guard, timeoutMs) {
  const said = (text) => guard.output.includes(text);
  let timer;
  const silence = new Promise((resolve) => {
    timer = setTimeout(resolve, timeoutMs);
  });
  const ready = new Promise((resolve) => {
    guard.process.on("output", () => said("Ready to accept connections") && resolve());
  });
  await Promise.race([ready, guard.ended, silence]);
  clearTimeout(timer);
  if (said("Ready to accept connections")) return "ready";
  if (/address already in use|port is already allocated/i.test(guard.output)) return "port-taken";
  const lastWords = guard.output.trim().split("\n").slice(-3).join(" | ");
  throw new Problem(`Redis did not start: ${lastWords || "it said nothing"}`, [
    "set REDIS_URL to a Redis that runs already",
  ]);
}

/** Sends PING and waits for any answer of a Redis; "-NOAUTH" is one too. */
export function ping(port) {
  return new Promise((resolve, reject) => {
    const fail = (why) => reject(new Problem(`Redis on 127.0.0.1:${port} does not answer PING: ${why}`, ["try again"]));
    const socket = connect({ port, host: "127.0.0.1" }, () => socket.write("PING\r\n"));
    socket.setTimeout(pingTimeoutMs, () => socket.destroy(new Error("no answer in time")));
    socket.once("data", (answer) => {
      if (/^(\+PONG|-NOAUTH)/.test(answer.toString())) resolve();
      else fail(answer.toString().trim());
      socket.destroy();
    });
    socket.once("error", (error) => fail(error.message));
    socket.once("end", () => fail("it closed the connection"));
  });
}

/**
 * Ends the server and waits until it has ended: asked first (a frozen one is woken up), then
 * killed. Cleans up after it.
 */
export async function stopProcess(guard, cleanUp) {
  const child = guard.process;
  if (child.exitCode === null && child.signalCode === null) {
    for (const handle of [child, child.stdout, child.stderr]) handle.ref();
    child.kill("SIGCONT");
    child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), stopTimeoutMs);
    await guard.ended;
    clearTimeout(timer);
  }
  await guard.ended;
  await cleanUp();
}

/** A port of 127.0.0.1 that was free a moment ago. */
export function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}
