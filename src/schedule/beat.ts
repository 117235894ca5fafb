// The scheduler's alarm clock: calls back about once a second by the machine's clock, whatever happens to that clock.
// Called by scheduler.ts only; decides nothing.
//
// Each beat is a node-cron expression of its own that names one instant, since node-cron walks through all matches that it has
// missed: for "every second" and a clock put forward by a day that takes 14 s in which nothing else runs, by a year hours.
// A clock that is put back leaves node-cron waiting for the old time; the watch, which counts real seconds, does not.
import cron from "node-cron";
import { systemClock } from "../core/clock.ts";

/** A running beat. */
export interface Beat {
  /** Ends it: no call back after this. */
  stop(): void;
}

/** How often it beats. */
export const beatMs = 1_000;
/** So many looks of the watch without a beat mean that the clock has been put back. A blocked process is one look late, not many. */
const silentLooksMax = 2;

/** Starts to beat. `onRenewed`: the clock had been put back, and the beat was begun anew. */
export function startBeat(onBeat: () => void, onRenewed: () => void): Beat {
  let silentLooks = 0;
  let alarm = setAlarm(beat);
  function beat(): void {
    silentLooks = 0;
    const rung = alarm;
    alarm = setAlarm(beat);
    rung.end();
    onBeat();
  }
  const endWatch = systemClock.every(beatMs, () => {
    silentLooks += 1;
    if (silentLooks <= silentLooksMax) return;
    onRenewed();
    beat();
  });
  return {
    stop: () => {
      endWatch();
      alarm.end();
    },
  };
}

/** Rings once, at the next full second; also when that is long past because the clock was put forward. */
function setAlarm(ring: () => void): { end(): void } {
  const at = new Date((Math.floor(systemClock.nowMs() / beatMs) + 1) * beatMs);
  const time = `${at.getUTCSeconds()} ${at.getUTCMinutes()} ${at.getUTCHours()} ${at.getUTCDate()} ${at.getUTCMonth() + 1} *`;
  let isOver = false;
  const onTime = () => {
    if (isOver) return;
    isOver = true;
    ring();
  };
  const task = cron.schedule(time, onTime, { timezone: "UTC", suppressMissedWarning: true });
  task.on("execution:missed", onTime);
  return {
    end: () => {
      isOver = true;
      Promise.resolve(task.destroy()).catch(() => {
        // A task in this process has nothing to fail on; whatever it was, this alarm does not ring again.
      });
    },
  };
}
