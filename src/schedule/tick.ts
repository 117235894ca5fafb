// The scheduler's tick: calls back about once a second by the machine's clock, even when that clock
// is changed. Called by scheduler.ts only; decides nothing.
//
// Each tick is a node-cron expression that names one instant. With one for "every second",
// node-cron would go through all missed matches after a clock put forward: by a year, for hours.
// After a clock put back it waits for the old time; the watchdog, which counts real seconds, renews
// the tick.
import cron from "node-cron";
import { nextTurn, systemClock } from "../core/clock.ts";

/** A running tick. */
export interface Ticker {
  /** Stops it: no callback after this. */
  stop(): void;
}

/** How often it ticks. */
export const tickMs = 1_000;
/** More silent rounds than this: the clock was put back. A blocked process is one round late. */
const silentRoundsMax = 2;

/** Starts to tick. `onRenewed`: the clock was put back, and the tick began anew. */
export function startTicker(onTick: () => void, onRenewed: () => void): Ticker {
  let silentRounds = 0;
  let alarm = setAlarm(tick);
  function tick(): void {
    silentRounds = 0;
    const rung = alarm;
    alarm = setAlarm(tick);
    rung.end();
    onTick();
  }
  const endWatchdog = systemClock.every(tickMs, () => {
    silentRounds += 1;
    if (silentRounds <= silentRoundsMax) return;
    onRenewed();
    tick();
  });
  return {
    stop: () => {
      endWatchdog();
      alarm.end();
    },
  };
}

/** Rings once, at the next full second, also when the clock was put forward past it. */
function setAlarm(ring: () => void): { end(): void } {
  const at = new Date((Math.floor(systemClock.nowMs() / tickMs) + 1) * tickMs);
  const time = `${at.getUTCSeconds()} ${at.getUTCMinutes()} ${at.getUTCHours()} ${at.getUTCDate()} ${at.getUTCMonth() + 1} *`;
  let isOver = false;
  const onTime = () => {
    if (isOver) return;
    isOver = true;
    ring();
  };
  const task = cron.schedule(time, onTime, { timezone: "UTC", suppressMissedWarning: true });
  task.on("execution:missed", onTime);
  // The second went by while the task was made: node-cron now waits for that instant next year.
  if (systemClock.nowMs() >= at.getTime()) void nextTurn().then(onTime);
  return {
    end: () => {
      isOver = true;
      Promise.resolve(task.destroy()).catch(() => {
        // An in-process task cannot fail here; in any case this alarm does not ring again.
      });
    },
  };
}
