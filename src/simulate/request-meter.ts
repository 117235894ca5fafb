// How many requests a service would get: an estimate from the events of a simulation, in which no
// request fails.
import { needsBaseline, type Policy } from "../config/policy-set.ts";
import { getOrMake } from "../core/get-or-make.ts";
import { MinHeap } from "../core/min-heap.ts";
import { approvalsAfterMs, defaultPace, walkGapMs, walkPaceMs } from "../feeds/pace.ts";
import { parseExpectation } from "../feeds/poll-expectation.ts";
import type { Task } from "../model/task.ts";
import type { SimulationEvent } from "./events.ts";

/** The walks of one (service, repository). Fed with runs in the order of time. */
export class FeedWalks {
  /** Walks so far, of each list. */
  walks = 0;
  readonly #walkMs: number;
  readonly #onWalk: (atMs: number) => void;
  readonly #ends = new MinHeap<undefined>();
  #startedAtMs = Number.NEGATIVE_INFINITY;
  #nextMs = Number.POSITIVE_INFINITY;
  /** The last news: a run began, or a walk saw the end of one. The pace slows down from then on. */
  #freshAtMs = 0;

  /** `walkMs`: how long one walk takes. `onWalk` hears of each. */
  constructor(walkMs: number, onWalk: (atMs: number) => void = () => {}) {
    this.#walkMs = walkMs;
    this.#onWalk = onWalk;
  }

  /** A run begins. `endsAtMs`: until when it is followed; undefined: it only needs a baseline. */
  begin(nowMs: number, endsAtMs: number | undefined): void {
    this.advance(nowMs);
    if (this.#startedAtMs < nowMs) this.#walk(Math.max(nowMs, this.#earliestMs()));
    this.#freshAtMs = nowMs;
    if (endsAtMs !== undefined) this.#ends.push(endsAtMs, undefined);
    this.#pace();
  }

  /** Does the walks that are due up to this instant. */
  advance(untilMs: number): void {
    while (this.#nextMs <= untilMs) {
      this.#walk(this.#nextMs);
      let ended = 0;
      for (; (this.#ends.leastRank ?? Number.POSITIVE_INFINITY) <= this.#startedAtMs; ended += 1) this.#ends.pop();
      // A run whose end was seen needs one more walk: its conflicts must be read after it.
      if (ended > 0) {
        this.#freshAtMs = this.#startedAtMs;
        this.#walk(this.#earliestMs());
      }
      this.#pace();
    }
  }

  #walk(atMs: number): void {
    this.walks += 1;
    this.#onWalk(atMs);
    this.#startedAtMs = atMs;
  }

  #earliestMs(): number {
    return this.#startedAtMs + this.#walkMs + walkGapMs(defaultPace, this.#walkMs);
  }

  #pace(): void {
    const endedAtMs = this.#startedAtMs + this.#walkMs;
    const waitMs = walkPaceMs(defaultPace, Math.max(0, endedAtMs - this.#freshAtMs), this.#walkMs);
    this.#nextMs = this.#ends.leastRank === undefined ? Number.POSITIVE_INFINITY : endedAtMs + waitMs;
  }
}

/** Requests by purpose. */
export interface Requests {
  /** What starts something, with the reads that verify activations and precede deletions. */
  starts: number;
  /** Pages of the activities, of the conflict details and of the approvals, read to follow runs. */
  feeds: number;
  /** Counts, or pages where an expectation needs the items; and reads of declared sync jobs. */
  polls: number;
  /**
   * Pages of masks, for policies with `fromMasks`, and once for each declared mask. A fan-out reads
   * several pages twice, as they may shift.
   */
  masks: number;
}

/** `pages`: of every list. `showsActive`: whether a service's activations can be verified. */
export interface RequestAssumptions {
  readonly showsActive: (service: string) => boolean;
  readonly pages: number;
  readonly requestMs: number;
  /** Hears when how many requests are sent. */
  readonly onRequests?: (service: string, atMs: number, count: number) => void;
}

/** Activities and conflict details; approvals have walks of their own. */
const feedsOfRun = 2;

function totalOf({ starts, feeds, polls, masks }: Requests): number {
  return starts + feeds + polls + masks;
}

function startRequests({ action, service }: Policy, { showsActive }: RequestAssumptions): number {
  if (action.kind === "activate") return showsActive(service) ? 2 : 1;
  return action.kind === "delete" || (action.kind === "run" && action.activate === true) ? 2 : 1;
}

interface RepositoryWalks {
  readonly service: string;
  readonly walks: FeedWalks;
  readonly approvals: FeedWalks;
}

/** Counts the requests of each service. */
export class RequestMeter {
  readonly #assumed: RequestAssumptions;
  readonly #byService = new Map<string, Requests>();
  readonly #walks = new Map<string, RepositoryWalks>();
  readonly #pollPages = new Map<Policy, number>();

  constructor(assumed: RequestAssumptions) {
    this.#assumed = assumed;
  }

  add(event: SimulationEvent): void {
    if (event.event === "planned" || event.event === "not-started") return;
    const { service } = event.task;
    const requests = this.#requestsOf(service);
    const before = totalOf(requests);
    const { pages } = this.#assumed;
    if (event.event === "masks") requests.masks += pages > 1 ? 2 * pages : pages;
    else if (event.task.kind === "poll") requests.polls += this.#pollPagesOf(event.policy);
    else if (event.task.kind === "apply") this.#apply(event.task, requests);
    else requests.starts += startRequests(event.policy, this.#assumed);
    this.#assumed.onRequests?.(service, event.atMs, totalOf(requests) - before);
    if (event.event === "started" && event.task.kind === "run") this.#follow(event);
  }

  /** The requests of each service. Ask once, at the end: runs are followed to their end. */
  requests(): ReadonlyMap<string, Readonly<Requests>> {
    for (const { service, walks, approvals } of this.#walks.values()) {
      for (const list of [walks, approvals]) list.advance(Number.MAX_SAFE_INTEGER);
      this.#requestsOf(service).feeds += (walks.walks * feedsOfRun + approvals.walks) * this.#assumed.pages;
    }
    this.#walks.clear();
    return this.#byService;
  }

  /** One read of a declared object, by its name (core/declared-object.ts); nothing is changed. */
  #apply({ target }: Pick<Task, "target">, requests: Requests): void {
    if (target.startsWith("syncJob-")) requests.polls += 1;
    if (target.startsWith("docMask-")) requests.masks += this.#assumed.pages;
  }

  #follow({ policy, task, atMs, heldUntilMs }: Extract<SimulationEvent, { readonly event: "started" }>): void {
    if (!needsBaseline(policy.follow)) return;
    const key = JSON.stringify([task.service, task.repository]);
    const walkMs = this.#assumed.pages * this.#assumed.requestMs;
    const { service } = task;
    const walksOf = (lists: number) =>
      new FeedWalks(walkMs, (walkedMs) => this.#assumed.onRequests?.(service, walkedMs, lists * this.#assumed.pages));
    const make = () => ({ service, walks: walksOf(feedsOfRun), approvals: walksOf(1) });
    const known = getOrMake(this.#walks, key, make);
    const { until, blockedAfterMs } = policy.follow;
    known.walks.begin(atMs, until === "accepted" ? undefined : heldUntilMs);
    if (until === "accepted" || blockedAfterMs === undefined) return;
    const isLong = heldUntilMs - atMs > approvalsAfterMs(blockedAfterMs);
    known.approvals.begin(atMs, isLong ? heldUntilMs : undefined);
  }

  #requestsOf(service: string): Requests {
    return getOrMake(this.#byService, service, () => ({ starts: 0, feeds: 0, polls: 0, masks: 0 }));
  }

  #pollPagesOf(policy: Policy): number {
    const readsItems = () => policy.action.kind === "poll" && parseExpectation(policy.action).readsItems;
    return getOrMake(this.#pollPages, policy, () => (readsItems() ? this.#assumed.pages : 1));
  }
}
