// The hot reload on a real folder, with real links swapped as the kubelet swaps those of a
// ConfigMap.
import { mkdir, mkdtemp, readdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { policyChecks } from "../../../src/cli/shared-options.ts";
import { loadPolicies } from "../../../src/config/load-policies.ts";
import type { PolicySet } from "../../../src/config/policy-set.ts";
import { PolicyWatch, readUnmoved, type WatchOptions } from "../../../src/config/watch-policies.ts";
import { nextTurn, systemClock } from "../../../src/core/clock.ts";
import type { Component } from "../../../src/core/component.ts";
import type { EventFields } from "../../../src/core/event-log.ts";

const loading = { variables: { TOKEN: "t" }, checks: policyChecks };
let folder: string;
let watch: Component | undefined;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "syncline-watch-"));
});
afterEach(async () => {
  await watch?.stop();
  watch = undefined;
  await rm(folder, { recursive: true });
});

const services = "apiVersion: syncline/v1\nservices:\n  main: { baseUrl: http://127.0.0.1:1, token: { env: TOKEN } }\n";
const policy = (name: string, syncJob = 1) =>
  `  - { name: ${name}, service: main, run: { syncJobs: [${syncJob}] }, schedule: { every: 1h } }\n`;
const fileOf = (...names: string[]) => `${services}policies:\n${names.map((name) => policy(name)).join("")}`;

/** A started watch, what it adopted, and a log to wait on. */
async function start(path: string, { adopt, ...options }: Partial<WatchOptions> = {}) {
  const loaded = await loadPolicies(path, loading);
  if (!loaded.ok) throw new Error(loaded.problems[0]?.message);
  const adopted: PolicySet[] = [];
  const events: (EventFields & { event: string })[] = [];
  let wake = () => {};
  const note = (event: string, fields: EventFields = {}) => {
    events.push({ ...fields, event });
    wake();
  };
  watch = new PolicyWatch({
    ...loading,
    path,
    current: loaded.set,
    adopt: (set) => {
      adopt?.(set);
      adopted.push(set);
    },
    log: { info: note, warn: note, error: note },
    ...options,
  });
  await watch.start();
  const until = async (event: string, count = 1) => {
    while (events.filter((one) => one.event === event).length < count) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
    return events.filter((one) => one.event === event)[count - 1];
  };
  return { adopted, events, until, namesOf: (set: PolicySet | undefined) => set?.policies.map(({ name }) => name) };
}

/** Writes a file as a careful writer does. */
async function replaceFile(file: string, text: string): Promise<void> {
  await writeFile(`${file}.new`, text);
  await rename(`${file}.new`, file);
}

/**
 * Swaps a folder as the kubelet does: a new folder with all files, then one rename of the link
 * `..data`.
 */
async function swapConfigMap(volume: string, version: number, files: Readonly<Record<string, string>>): Promise<void> {
  const next = `..2026_11_21_${version}`;
  await mkdir(join(volume, next));
  for (const [name, text] of Object.entries(files)) await writeFile(join(volume, next, name), text);
  await symlink(next, join(volume, "..data_tmp"));
  await rename(join(volume, "..data_tmp"), join(volume, "..data"));
  const old = (await readdir(volume)).filter((name) => name.startsWith("..2026") && name !== next);
  for (const name of old) await rm(join(volume, name), { recursive: true });
}

describe("a watched policy file", () => {
  it("is taken over when it changes, with the names of what differs", async () => {
    const file = join(folder, "policies.yaml");
    await writeFile(file, fileOf("stays", "goes"));
    const { adopted, until, namesOf } = await start(file);
    await replaceFile(file, `${services}policies:\n${policy("stays", 7)}${policy("comes")}`);
    expect(await until("config.reloaded")).toMatchObject({
      policies: 2,
      policiesAdded: 1,
      policiesAddedNames: ["comes"],
      policiesChangedNames: ["stays"],
      policiesRemovedNames: ["goes"],
      config: adopted[0]?.contentHash,
    });
    expect(namesOf(adopted[0])).toEqual(["stays", "comes"]);
  });

  it("is not checked again while it is what the process has loaded", async () => {
    const file = join(folder, "policies.yaml");
    await writeFile(file, fileOf("one"));
    const looked = Promise.withResolvers<void>();
    let [checks, sleeps] = [0, 0];
    const sleep = async () => {
      sleeps += 1;
      if (sleeps > 10) looked.resolve();
      await nextTurn();
    };
    const noteRejected = () => {
      checks += 1;
    };
    await start(file, { clock: { ...systemClock, sleep }, noteRejected });
    await looked.promise;
    expect(checks).toBe(0);
  });

  it("is seen when it is written in place, too", async () => {
    const file = join(folder, "policies.yaml");
    await writeFile(file, fileOf("one"));
    const { adopted, until, namesOf } = await start(file);
    await writeFile(file, fileOf("one", "two"));
    await until("config.reloaded");
    expect(adopted.map(namesOf)).toEqual([["one", "two"]]);
  });

  it("with mistakes is rejected once with number and first place; the good set stays", async () => {
    const file = join(folder, "policies.yaml");
    await writeFile(file, fileOf("good"));
    const { adopted, events, until } = await start(file, { pollMs: 20 });
    await replaceFile(file, `${fileOf("good")}  - { nam: wrong }\n`);
    expect(await until("config.rejected")).toMatchObject({ problems: 3, where: `${file}:6` });
    await replaceFile(file, `${fileOf("good")}  - { nam: other }\n  - 7\n`);
    await until("config.rejected", 2);
    await rm(file);
    expect(await until("config.rejected", 3)).toMatchObject({ problems: 1, where: file });
    expect(adopted).toEqual([]);
    await replaceFile(file, `# as before\n${fileOf("good")}`);
    await until("config.recovered");
    expect(adopted).toEqual([]);
    await replaceFile(file, fileOf("good", "better"));
    await until("config.reloaded");
    expect(events.map(({ event }) => event)).toEqual([
      "config.rejected",
      "config.rejected",
      "config.rejected",
      "config.recovered",
      "config.reloaded",
    ]);
  });

  it("that means the same with other words changes nothing", async () => {
    const file = join(folder, "policies.yaml");
    await writeFile(file, fileOf("one"));
    const { adopted, events, until } = await start(file);
    await replaceFile(file, `# a remark\n${fileOf("one")}`);
    await replaceFile(file, fileOf("one", "two"));
    await until("config.reloaded");
    expect(adopted).toHaveLength(1);
    expect(events).toHaveLength(1);
  });

  it("is rejected when it cannot be put in force; the next is compared to the active", async () => {
    const file = join(folder, "policies.yaml");
    await writeFile(file, fileOf("one"));
    let refuse = true;
    const { until } = await start(file, {
      adopt: () => {
        if (refuse) throw new Error("there is no token");
      },
    });
    await replaceFile(file, fileOf("one", "two"));
    expect(await until("config.rejected")).toMatchObject({ message: "there is no token" });
    refuse = false;
    await replaceFile(file, fileOf("one", "two", "three"));
    expect(await until("config.reloaded")).toMatchObject({ policiesAddedNames: ["two", "three"] });
  });

  it("is found by the poll when a link elsewhere changes, which raises no event", async () => {
    const [real, file] = [join(folder, "real"), join(folder, "etc")];
    await mkdir(real);
    await mkdir(file);
    await writeFile(join(real, "policies.yaml"), fileOf("one"));
    await symlink(join(real, "policies.yaml"), join(file, "policies.yaml"));
    const { until } = await start(join(file, "policies.yaml"), { pollMs: 20 });
    await replaceFile(join(real, "policies.yaml"), fileOf("one", "two"));
    expect(await until("config.reloaded")).toMatchObject({ policiesAddedNames: ["two"] });
  });

  it("is found by the poll also after it has lain still for long", async () => {
    const [real, link] = [join(folder, "real.yaml"), join(folder, "etc", "policies.yaml")];
    await mkdir(join(folder, "etc"));
    await writeFile(real, fileOf("one"));
    await symlink(real, link);
    const looked = Promise.withResolvers<void>();
    let sleeps = 0;
    const sleep = async () => {
      sleeps += 1;
      if (sleeps > 10) looked.resolve();
      await nextTurn();
    };
    const nowMs = () => systemClock.nowMs() + 3_600_000;
    const { until } = await start(link, { clock: { ...systemClock, nowMs, sleep } });
    await looked.promise;
    await replaceFile(real, fileOf("one", "two"));
    expect(await until("config.reloaded")).toMatchObject({ policiesAddedNames: ["two"] });
  });
});

describe("a watched folder", () => {
  it("is taken over when a calendar changes, also after a broken one, in any folder", async () => {
    const year = new Date().getUTCFullYear();
    const days = (day: string) =>
      `BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART;VALUE=DATE:${year}${day}\nEND:VEVENT\nEND:VCALENDAR\n`;
    await mkdir(join(folder, "set"));
    await mkdir(join(folder, "elsewhere"));
    const [here, there] = [join(folder, "set/a.ics"), join(folder, "elsewhere/b.ics")];
    await writeFile(here, days("1224"));
    await writeFile(there, days("1224"));
    const calendars = "calendars: { a: { file: a.ics }, b: { file: ../elsewhere/b.ics } }\n";
    await writeFile(join(folder, "set/p.yaml"), `${calendars}${fileOf("one")}`);
    const { adopted, until } = await start(join(folder, "set"), { pollMs: 50 });
    await replaceFile(here, days("1225"));
    expect(await until("config.reloaded")).toMatchObject({ calendarsChanged: 1, calendarsChangedNames: ["a"] });
    await replaceFile(there, "broken");
    expect(await until("config.rejected")).toMatchObject({ where: `${there}:1` });
    await replaceFile(there, days("1226"));
    expect(await until("config.reloaded", 2)).toMatchObject({ calendarsChangedNames: ["b"] });
    expect([...(adopted.at(-1)?.calendars ?? [])].map(([, { events }]) => events[0]?.from)).toEqual([
      `${year}-12-25`,
      `${year}-12-26`,
    ]);
  });

  it("is rejected once for one content, also when it names a calendar no more, or anew", async () => {
    const path = join(folder, "set");
    await mkdir(path);
    await writeFile(join(path, "a.ics"), "broken");
    await writeFile(join(path, "p.yaml"), fileOf("one"));
    let [checks, wake] = [0, () => {}];
    const noteRejected = () => {
      checks += 1;
      wake();
    };
    const { events, until } = await start(path, { pollMs: 20, noteRejected });
    const checked = async (count: number) => {
      while (checks < count) await new Promise<void>((resolve) => (wake = resolve));
    };
    await replaceFile(join(path, "p.yaml"), `calendars: { a: { file: a.ics } }\n${fileOf("one")}`);
    await checked(2);
    await replaceFile(join(path, "p.yaml"), "policies: [");
    await checked(4);
    expect(events.map(({ event, where }) => [event, where])).toEqual([
      ["config.rejected", join(path, "a.ics:1")],
      ["config.rejected", join(path, "p.yaml:1")],
    ]);
    await replaceFile(join(path, "a.ics"), "broken, too");
    await replaceFile(join(path, "p.yaml"), `calendars: { a: { file: a.ics } }\n${fileOf("one")}`);
    await until("config.rejected", 3);
    await replaceFile(join(path, "a.ics"), "broken still");
    await until("config.rejected", 4);
  });

  it("is taken over when only the sample that it was rejected for is mended", async () => {
    const path = join(folder, "set");
    await mkdir(path);
    await writeFile(join(path, "p.yaml"), fileOf("one"));
    const { until } = await start(path, { pollMs: 50 });
    const mapping = "mapping: { activity: { id: item.id, sample: ../sample.json } }";
    await writeFile(join(folder, "sample.json"), "[");
    await replaceFile(join(path, "p.yaml"), fileOf("one", "two").replace("TOKEN }", `TOKEN }, ${mapping}`));
    expect(await until("config.rejected")).toMatchObject({
      problems: 1,
      message: expect.stringMatching(/^the sample is no JSON/),
    });
    await replaceFile(join(folder, "sample.json"), '[{ "id": "a" }]');
    expect(await until("config.reloaded")).toMatchObject({ policiesAddedNames: ["two"] });
  });

  it("is followed when files come and go, and when it is replaced as a whole", async () => {
    const path = join(folder, "config");
    await mkdir(path);
    await writeFile(join(path, "a.yaml"), fileOf("a"));
    const { adopted, until, namesOf } = await start(path, { pollMs: 1_000 });
    await writeFile(join(path, "b.yaml"), `apiVersion: syncline/v1\npolicies:\n${policy("b")}`);
    await until("config.reloaded", 1);
    await rm(join(path, "b.yaml"));
    await until("config.reloaded", 2);
    await rename(path, `${path}-old`);
    await mkdir(path);
    await writeFile(join(path, "a.yaml"), fileOf("another"));
    await until("config.reloaded", 3);
    await writeFile(join(path, "a.yaml"), fileOf("yet-another"));
    await until("config.reloaded", 4);
    expect(adopted.map(namesOf)).toEqual([["a", "b"], ["a"], ["another"], ["yet-another"]]);
  });

  it("of several ConfigMaps is read when all are there and of one set", async () => {
    const first = { "a.yaml": fileOf("a", "moves"), ".part-1-of-2": "one", ".part-2-of-2": "one" };
    const second = { "a.yaml": fileOf("a"), "b.yaml": `apiVersion: syncline/v1\npolicies:\n${policy("moves")}` };
    await swapConfigMap(folder, 0, { ...first, "b.yaml": "apiVersion: syncline/v1\n" });
    for (const name of ["a.yaml", "b.yaml", ".part-1-of-2", ".part-2-of-2"])
      await symlink(`..data/${name}`, join(folder, name));
    const { adopted, events, until } = await start(folder);
    // The kubelet has the first ConfigMap of the new set, without the policy, and the second one of
    // the old.
    await swapConfigMap(folder, 1, {
      ...first,
      ...second,
      "b.yaml": "apiVersion: syncline/v1\n",
      ".part-1-of-2": "two",
    });
    expect(await until("config.rejected")).toMatchObject({
      message: "holds parts of different sets of policies, or not all of one: .part-1-of-2, .part-2-of-2",
    });
    // A third ConfigMap, which pods of before do not mount.
    await swapConfigMap(folder, 2, {
      ...first,
      ...second,
      ".part-1-of-2": "two",
      ".part-2-of-2": "two",
      ".part-1-of-3": "x",
    });
    await symlink("..data/.part-1-of-3", join(folder, ".part-1-of-3"));
    await until("config.rejected", 2);
    await rm(join(folder, ".part-1-of-3"));
    await swapConfigMap(folder, 3, { ...first, ...second, ".part-1-of-2": "two", ".part-2-of-2": "two" });
    await until("config.recovered");
    expect([adopted, events.length]).toEqual([[], 3]);
  });

  it("swapped 200 times by its ..data link is never read in halves, and the last wins", async () => {
    const parts = Array.from({ length: 25 }, (_, index) => `part-${index}`);
    const version = (number: number) =>
      Object.fromEntries([
        ["main.yaml", services],
        ...parts.map((part) => [`${part}.yaml`, `apiVersion: syncline/v1\npolicies:\n${policy(`v${number}-${part}`)}`]),
      ]);
    await swapConfigMap(folder, 0, version(0));
    for (const name of Object.keys(version(0))) await symlink(`..data/${name}`, join(folder, name));
    const { adopted, events, until, namesOf } = await start(folder);
    let swapping = true;
    const torn: string[] = [];
    let reads = 0;
    const reading = (async () => {
      while (swapping) {
        const found = await readUnmoved(folder);
        reads += 1;
        const policyTexts = found?.read.texts.filter(({ text }) => text.includes("policies"));
        const versions = new Set(policyTexts?.map(({ text }) => /v\d+-/.exec(text)?.[0]));
        if (versions.size > 1 || (found !== undefined && found.read.problems.length > 0))
          torn.push([...versions].join());
      }
    })();
    for (let number = 1; number <= 200; number += 1) {
      await swapConfigMap(folder, number, version(number));
      // Now and then it lies still long enough to be taken over in between. A slow writer has more
      // versions taken over than these.
      const isInForce = () => namesOf(adopted.at(-1))?.includes(`v${number}-part-0`) === true;
      if (number % 100 === 0) while (!isInForce()) await until("config.reloaded", adopted.length + 1);
    }
    swapping = false;
    await reading;
    expect(torn).toEqual([]);
    expect(reads).toBeGreaterThan(50);
    expect(namesOf(adopted.at(-1))?.toSorted()).toEqual(parts.map((part) => `v200-${part}`).toSorted());
    expect(events.filter(({ event }) => event !== "config.reloaded")).toEqual([]);
    for (const set of adopted) expect(new Set(namesOf(set)?.map((name) => name.split("-")[0])).size).toBe(1);
  }, 120_000);
});
