// Several replicas on one Redis, replaced as a Deployment replaces its pods: the new one must be
// ready before the old one is asked to stop. Watches all the while whether a scheduler is ready.
// Called by main.ts and by the test of rolling restarts.
import { systemClock } from "../../src/core/clock.ts";
import type { LogLine } from "../../src/ops/pretty-log.ts";
import type { Build } from "./builds.ts";
import { Pod } from "./pod.ts";

/** What a cluster is made of. */
export interface ClusterOptions {
  readonly replicas: number;
  /**
   * Further processes with the role worker alone; the replicas are schedulers alone then. 0: every
   * replica does both.
   */
  readonly workers: number;
  readonly build: Build;
  readonly config: string;
  readonly prefix: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Told each line of each pod's log. */
  readonly onEvent: (event: LogLine, pod: Pod) => void;
  /** Told what happens to the pods, in words. */
  readonly say: (what: string) => void;
}

const readyWithinMs = 30_000;
const probeEveryMs = 100;

/** The replicas. */
export class Cluster {
  readonly #options: ClusterOptions;
  readonly #places: { pod: Pod; readonly roles: string; generation: number }[] = [];
  readonly #watching = new AbortController();
  #watched: Promise<void> = Promise.resolve();
  #stopping = false;
  /** How often the probes were asked, and how often no scheduler was ready. */
  readonly probes = { asked: 0, without: 0 };

  constructor(options: ClusterOptions) {
    this.#options = options;
  }

  /** The pods in their places. */
  get pods(): readonly Pod[] {
    return this.#places.map(({ pod }) => pod);
  }

  /** Starts all replicas and, when all are ready, the watch over the schedulers. */
  async start(): Promise<void> {
    const { replicas, workers, build } = this.#options;
    const roles = workers === 0 ? "scheduler,worker" : "scheduler";
    const wanted = [...Array<string>(replicas).fill(roles), ...Array<string>(workers).fill("worker")];
    for (const role of wanted)
      this.#places.push({ pod: this.#create(this.#places.length, 0, { role, build }), roles: role, generation: 0 });
    await Promise.all(this.pods.map((pod) => this.#ready(pod)));
    this.#watched = this.#watch();
  }

  /** Replaces one pod: the next one is ready before this one is asked to stop. */
  async replace(index: number, build: Build = this.#options.build): Promise<void> {
    const place = this.#places[index];
    if (place === undefined) throw new Error(`there is no replica ${index + 1}`);
    const old = place.pod;
    place.generation += 1;
    const next = this.#create(index, place.generation, { role: place.roles, build });
    await this.#ready(next);
    place.pod = next;
    await old.stop();
    this.#options.say(`replica ${old.options.name} (${old.options.build.name}) stopped`);
  }

  /** Replaces every pod, one after the other. */
  async roll(build?: Build): Promise<void> {
    for (const index of this.#places.keys()) await this.replace(index, build);
  }

  /** Kills one pod without a warning; another one takes its place. */
  kill(index: number): void {
    const pod = this.pods[index];
    if (pod === undefined) throw new Error(`there is no replica ${index + 1}`);
    pod.kill();
  }

  /** Ends the watch and stops everything. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#watching.abort();
    await this.#watched;
    await Promise.all(this.pods.map((pod) => pod.stop()));
  }

  #create(index: number, generation: number, { role, build }: { role: string; build: Build }): Pod {
    const { config, prefix, environment, onEvent } = this.#options;
    const name = generation === 0 ? `${index + 1}` : `${index + 1}.${generation}`;
    const onDeath = (pod: Pod, how: string) => this.#revive(index, pod, how);
    return new Pod({ name, build, config, roles: role, prefix, environment, onEvent, onDeath });
  }

  async #ready(pod: Pod): Promise<void> {
    await pod.start();
    const endMs = systemClock.monotonicMs() + readyWithinMs;
    while (!(await pod.isReady())) {
      if (systemClock.monotonicMs() > endMs) throw new Error(`replica ${pod.options.name} is not ready after 30 s`);
      await systemClock.sleep(probeEveryMs);
    }
    this.#options.say(`replica ${pod.options.name} (${pod.options.build.name}) is ready, pid ${pod.pid}`);
  }

  #revive(index: number, dead: Pod, how: string): void {
    const place = this.#places[index];
    this.#options.say(`replica ${dead.options.name} died (${how})`);
    if (this.#stopping || place?.pod !== dead) return;
    place.generation += 1;
    place.pod = this.#create(index, place.generation, { role: place.roles, build: dead.options.build });
    this.#ready(place.pod).catch((error: unknown) => this.#options.say(`it could not be replaced: ${String(error)}`));
  }

  async #watch(): Promise<void> {
    const { signal } = this.#watching;
    while (!signal.aborted) {
      const schedulers = this.pods.filter(({ options }) => options.roles.includes("scheduler"));
      const ready = await Promise.all(schedulers.map((pod) => pod.isReady()));
      // Whoever was stopped while the answers came in counts by its replacement, which was ready
      // before.
      const replaced = schedulers.some((pod) => !this.pods.includes(pod));
      this.probes.asked += 1;
      if (!ready.includes(true) && !replaced) this.probes.without += 1;
      await systemClock.sleep(probeEveryMs, signal);
    }
  }
}
