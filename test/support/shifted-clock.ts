// Shifts this process's wall clock, as everything in it sees it: `Date.now()` and `new Date()`. The
// monotonic clock and timers stay, as they do on a machine whose clock is set. Used by tests;
// import it before whatever reads the time.
const RealDate = Date;
let shiftMs = 0;

class ShiftedDate extends RealDate {
  constructor(...values: readonly unknown[]) {
    if (values.length === 0) super(ShiftedDate.now());
    // biome-ignore lint/suspicious/noExplicitAny: the constructor of Date has overloads that no spread fits.
    else super(...(values as [any]));
  }

  static override now(): number {
    return RealDate.now() + shiftMs;
  }
}

/**
 * Puts the clock of this process forward (or back, below 0) by so many milliseconds, on top of
 * earlier shifts.
 */
export function shiftClock(byMs: number): void {
  shiftMs += byMs;
  globalThis.Date = ShiftedDate as DateConstructor;
}

/** Puts the clock right again. */
export function restoreClock(): void {
  shiftMs = 0;
  globalThis.Date = RealDate;
}
