// Loaded before a process's own code (`node --import`): its wall clock is a minute ahead from the
// beginning.
import { shiftClock } from "./shifted-clock.ts";

shiftClock(60_000);
