// Whether a service that hangs on every request delays the starts of other ones (P7). Part of `npm
// run bench`.
//
// Two whole sets side by side, each a Redis, one Syncline worker and three services: `main`,
// `other` and `third`. Single starts of `main` and `other` are added at an even pace, to both sets
// in turns, so that whatever the machine does meanwhile strikes both alike. First all services are
// well: how far the sets differ then is noise. Then `third` of one set is full of tasks and hangs
// on each of them. Latency: from the adding of a start to the arrival of its request at the
// service, on the machine's monotonic clock.
import { parseArgs } from "node:util";
import { startPrivateRedis } from "../../scripts/redis.mjs";
import { silentLog } from "../../src/core/event-log.ts";
import { Producer } from "../../src/queue/producer.ts";
import { tasksOf } from "../../src/schedule/slot-tasks.ts";
import { benchPrefix, benchSet, policyOf } from "./bench-app.ts";
import { BenchChild } from "./child.ts";
import { noteFigure } from "./figures.ts";
import { monotonicMs, quantile } from "./redis-figures.ts";

const { values: given } = parseArgs({
  options: {
    /** Of each set and phase. */
    starts: { type: "string", default: "3000" },
    /** Milliseconds between two starts, of whichever set. */
    every: { type: "string", default: "10" },
    /** Tasks of the service that hangs: more than its limit of 8 lets through. */
    fill: { type: "string", default: "200" },
  },
});
const starts = Number(given.starts);
const everyMs = Number(given.every);
const arriveWithinMs = 60_000;
const names = ["main", "other", "third"] as const;
type Name = (typeof names)[number];

/** A Redis, a worker, three services. */
class Side {
  readonly #parts: Awaited<ReturnType<typeof openSide>>;
  readonly #addedMs = new Map<string, number>();
  #jobs = 0;

  constructor(parts: Awaited<ReturnType<typeof openSide>>) {
    this.#parts = parts;
  }

  async add(name: Name, count: number): Promise<void> {
    const syncJobs = Array.from({ length: count }, () => {
      this.#jobs += 1;
      return this.#jobs;
    });
    const policy = policyOf(this.#parts.set, `accepted-${name}`);
    const slot = { slotMs: Date.now(), origin: "manual", covers: [] } as const;
    const tasks = tasksOf({ ...policy, action: { kind: "run", syncJobs } }, slot);
    for (const { id } of tasks) this.#addedMs.set(id, monotonicMs());
    await this.#parts.producer.enqueue(tasks);
  }

  /**
   * Latencies of all starts of `main` and `other` since the last call, when all have arrived, in
   * the order in which they were added.
   */
  async latencies(count: number): Promise<number[]> {
    const found: { readonly addedMs: number; readonly latencyMs: number }[] = [];
    for (const untilMs = monotonicMs() + arriveWithinMs; found.length < count; ) {
      for (const name of ["main", "other"] as const)
        for (const [id, atMs] of Object.entries(await this.#parts.services[name].ask("arrivals"))) {
          const addedMs = this.#addedMs.get(id) ?? Number.NaN;
          found.push({ addedMs, latencyMs: atMs - addedMs });
        }
      if (monotonicMs() > untilMs) throw new Error(`${found.length} of ${count} starts arrived`);
    }
    return found.sort((a, b) => a.addedMs - b.addedMs).map(({ latencyMs }) => latencyMs);
  }

  async hang(tasks: number): Promise<void> {
    await this.#parts.services.third.ask("configure", { hang: 1 });
    await this.add("third", tasks);
  }

  async close(): Promise<void> {
    const { services, worker, producer, server } = this.#parts;
    await services.third.ask("drop");
    await worker.stop();
    await producer.close();
    for (const service of Object.values(services)) await service.stop();
    await server.stop();
  }
}

const [one, two] = [new Side(await openSide()), new Side(await openSide())];
await phase(Math.ceil(starts / 10));
const well = await phase(starts);
await two.hang(Number(given.fill));
const hanging = await phase(starts);
report();
await Promise.all([one.close(), two.close()]);
process.exit(0);

async function openSide() {
  const server = await startPrivateRedis();
  const services = {
    main: new BenchChild("fake-service.ts", []),
    other: new BenchChild("fake-service.ts", []),
    third: new BenchChild("fake-service.ts", []),
  };
  const urls: Record<string, string> = {};
  for (const name of names) urls[name] = `http://127.0.0.1:${(await services[name].ask("port"))["port"]}`;
  const set = await benchSet({ services: urls, concurrency: 8 });
  const worker = new BenchChild("app-process.ts", [server.url, "8", ...names.map((name) => `${name}=${urls[name]}`)]);
  await worker.ask("cpu");
  return { server, services, set, worker, producer: new Producer({ url: server.url, prefix: benchPrefix }, silentLog) };
}

/** So many starts of each side, the first one changing from pair to pair. */
async function phase(count: number): Promise<{ readonly one: number[]; readonly two: number[] }> {
  for (let pair = 0; pair < count; pair += 1) {
    for (const side of pair % 2 === 0 ? [one, two] : [two, one]) {
      const added = side.add(pair % 4 < 2 ? "main" : "other", 1);
      await new Promise((resolve) => setTimeout(resolve, everyMs));
      await added;
    }
  }
  return { one: await one.latencies(count), two: await two.latencies(count) };
}

function report(): void {
  process.stdout.write(
    `${starts} starts of each set and phase, one every ${everyMs} ms; p50 and p99 in milliseconds\n`,
  );
  const show = (values: readonly number[]) =>
    `${quantile(values, 0.5).toFixed(2)} ${quantile(values, 0.99).toFixed(2)}`;
  const ratio = (kind: string, { one: a, two: b }: typeof well) =>
    process.stdout.write(
      `${kind}: ${show(a)} · ${show(b)}; p99 ÷ p99 ${(quantile(b, 0.99) / quantile(a, 0.99)).toFixed(2)}, ` +
        `of tenths of it ${tenths(a, b).join(" ")}\n`,
    );
  ratio("all services well", well);
  const noted = { what: "p99 of a start beside a hanging service", unit: "ms", wants: "less" } as const;
  noteFigure({ ...noted, value: quantile(hanging.two, 0.99), goal: { times: 1.1, of: "beside none" } });
  noteFigure({ ...noted, value: quantile(hanging.one, 0.99), by: "beside none" });
  ratio("a third service of the second set hangs", hanging);
}

/** The ratio in each tenth of the time, lowest first: how much chance there is in it. */
function tenths(a: readonly number[], b: readonly number[]): string[] {
  const part = (values: readonly number[], index: number) =>
    values.slice((index * values.length) / 10, ((index + 1) * values.length) / 10);
  const ratios = Array.from({ length: 10 }, (_, i) => quantile(part(b, i), 0.99) / quantile(part(a, i), 0.99));
  return ratios.toSorted((x, y) => x - y).map((value) => value.toFixed(2));
}
