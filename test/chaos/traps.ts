// Traps inside a replica: points around the steps of its work, at which it kills, stops or blocks
// itself as its script says. Used by replica-main.ts only. Wraps methods of the real classes; what
// they do stays as it is.
import { withTimeLimit } from "../../src/core/clock.ts";
import { isJsonObject } from "../../src/core/json.ts";
import { Producer } from "../../src/queue/producer.ts";
import { type Exchange, type ExchangeResult, Transport } from "../../src/service/transport.ts";
import { SlotLedger } from "../../src/store/slot-ledger.ts";
import type { Point, Trap } from "./fault-script.ts";
import { startSteps, type WatchedStep } from "./start-steps.ts";
import { writeLine } from "./write-line.ts";

/** Every step that has points: those of the schedules here, those of starts from start-steps.ts. */
const watched: readonly WatchedStep[] = [
  around(SlotLedger.prototype, "openWatermarks", "watermarks"),
  around(SlotLedger.prototype, "record", "record"),
  around(Producer.prototype, "enqueue", "enqueue"),
  around(SlotLedger.prototype, "confirmQueued", "confirm"),
  ...startSteps,
];

/** A step of schedules, by the noun in the names of its points; the compiler finds its method. */
function around<T extends object>(prototype: T, method: keyof T & string, noun: string): WatchedStep {
  return { prototype, method, before: `before-${noun}`, after: `after-${noun}` };
}

/** Sets the traps of this life. A point without a trap costs a look into a map. */
export function setTraps(traps: readonly Omit<Trap, "life">[]): void {
  const passes = new Map<Point, number>();
  const pass = (point: Point) => {
    const count = (passes.get(point) ?? 0) + 1;
    passes.set(point, count);
    for (const trap of traps) if (trap.point === point && trap.pass === count) spring(trap);
  };
  for (const step of watched) wrap(step, pass);
}

/** Keeps the event loop busy: nothing else happens in this process meanwhile. */
export function blockLoop(forMs: number): void {
  const untilMs = performance.now() + forMs;
  while (performance.now() < untilMs);
}

/**
 * Puts the clock that all replicas share forward by so much, as far as the scheduler of this
 * process sees.
 */
export function shiftSharedClock(byMs: number): void {
  const real: unknown = Reflect.get(SlotLedger.prototype, "nowMs");
  if (typeof real !== "function") throw new Error("the ledger has no clock");
  Reflect.set(SlotLedger.prototype, "nowMs", async function shifted(this: unknown) {
    return Number(await Reflect.apply(real, this, [])) + byMs;
  });
}

/** What an exchange may take beyond its own time-out. */
const overtimeMs = 5_000;
const held = new Error("an exchange is held");

/**
 * Tells of each exchange with a service that is not over after so long: it holds a worker's place.
 * One with a longer time-out has that and its overtime. As in the watchdog, a time in which this
 * process stood still does not count.
 */
export function watchExchanges(longestMs: number): void {
  const send = Transport.prototype.send;
  Transport.prototype.send = function watchedSend(this: Transport, exchange: Exchange): Promise<ExchangeResult> {
    const { method, url, timeouts } = exchange;
    const limitMs = Math.max(longestMs, timeouts.requestMs + overtimeMs);
    const tell = () => writeLine(JSON.stringify({ event: "exchange.held", method, path: url.pathname, limitMs }));
    const sent = send.call(this, exchange);
    withTimeLimit(sent, limitMs, () => held).catch((error: unknown) => {
      if (error === held) tell();
    });
    return sent;
  };
}

function spring({ point, action, forMs }: Omit<Trap, "life">): void {
  // Before it strikes, since a process that is stopped or dead writes nothing.
  writeLine(JSON.stringify({ event: "trap.sprung", point, action, forMs }));
  if (action === "block") blockLoop(forMs);
  else process.kill(process.pid, action === "kill" ? "SIGKILL" : "SIGSTOP");
}

function wrap(step: WatchedStep, pass: (point: Point) => void): void {
  const { prototype, method, before, after, firstByte, special } = step;
  const original: unknown = Reflect.get(prototype, method);
  if (typeof original !== "function") throw new Error(`there is no method ${method} to watch`);
  Reflect.set(prototype, method, async function watchedStep(this: unknown, ...args: readonly unknown[]) {
    pass(before);
    const further = special?.(args);
    if (further !== undefined) pass(further);
    const told = firstByte === undefined ? args : args.map((arg) => watchFirstByte(arg, () => pass(firstByte)));
    const result: unknown = await Reflect.apply(original, this, told);
    pass(after);
    return result;
  });
}

/**
 * Options of a request with a last look before its first byte: passes the point right before that
 * look, and tells when it lets the byte out.
 */
function watchFirstByte(arg: unknown, pass: () => void): unknown {
  if (!isJsonObject(arg)) return arg;
  const { beforeSend, idempotencyKey: taskId } = arg;
  if (typeof beforeSend !== "function") return arg;
  const look = (): unknown => {
    pass();
    const isLetOut: unknown = beforeSend();
    if (isLetOut === true) writeLine(JSON.stringify({ event: "first-byte.let-out", taskId, atMs: Date.now() }));
    return isLetOut;
  };
  return { ...Object(arg), beforeSend: look };
}
