import { describe, expect, it } from "vitest";
import { type EventFields, silentLog } from "../../../src/core/event-log.ts";
import { type Pause, parsePause } from "../../../src/model/pause.ts";
import { createPauseReader } from "../../../src/schedule/pause-reader.ts";

const pause = (name: string, sinceMs: number, untilMs: number | null): Pause => ({
  v: 1,
  scope: "policy",
  name,
  note: "release",
  actor: "ada@desk",
  sinceMs,
  untilMs,
  endedBy: null,
});

function watch(pauses: Pause[]) {
  const events: string[] = [];
  const info = (event: string, fields: EventFields = {}) =>
    events.push(`${event} ${fields["name"]} by ${fields["by"]}`);
  return { events, read: createPauseReader(async () => pauses, { ...silentLog, info }) };
}

describe("the pause watch", () => {
  it("tells what is in force at the start, what is set and ended later, and each once", async () => {
    const pauses = [pause("old", 1, 2), pause("running", 1, null)];
    const { events, read } = watch(pauses);
    await read(10);
    await read(11);
    expect(events).toEqual(["pause.set running by undefined"]);
    pauses.push(pause("new", 12, 20));
    await read(12);
    pauses[1] = { ...pause("running", 1, 15), endedBy: "ben@desk" };
    await read(16);
    await read(17);
    expect(events.slice(1)).toEqual(["pause.set new by undefined", "pause.cleared running by ben@desk"]);
  });

  it("reports the end of an expired pause, and of one that lay between two ticks", async () => {
    const pauses = [pause("timed", 1, 20)];
    const { events, read } = watch(pauses);
    await read(19);
    await read(20);
    pauses.push(pause("short", 21, 22));
    await read(30);
    expect(events).toEqual([
      "pause.set timed by undefined",
      "pause.cleared timed by null",
      "pause.set short by undefined",
      "pause.cleared short by null",
    ]);
  });

  it.each([8.65e15, 8.64e16])("tells of a stored pause whose end no date holds: %d", async (untilMs) => {
    const { events, read } = watch([parsePause(pause("far", 1, untilMs))]);
    await read(10);
    expect(events).toEqual(["pause.set far by undefined"]);
  });
});
