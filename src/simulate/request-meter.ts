// How many requests a service would get: an estimate from the events of a simulation. Used by `plan --requests`.
// Counts neither retries nor requests for tokens, nor the search for a start whose answer got lost: nothing goes wrong here.
import type { Policy } from "../config/policy-set.ts";
import { approvalsAfterMs } from "../feeds/pace.ts";
import { parseExpectation } from "../feeds/poll-expectation.ts";
import type { Task } from "../tasks/task.ts";
import type { SimulationEvent } from "./events.ts";
import { FeedWalks } from "./feed-walks.ts";

/** Requests by what they are for. */
export interface Requests {
  /** One POST for each run and each activation, and one read for an activation that is looked at; a deletion is one read and one DELETE. */
  starts: number;
  /** Pages of the activities, of the conflict details and of the approvals, read to follow runs. */
  feeds: number;
  /** Counts, or pages where an expectation looks at the items; and the looks at declared sync jobs. */
  polls: number;
  /** Pages of masks, for policies with `fromMasks`, and once for each declared mask. */
  masks: number;
}

/** What is assumed: how many pages a list has, how long a request takes, and whether a service's activations are looked at. */
export interface RequestAssumptions {
  readonly showsActive: (service: string) => boolean;
  readonly pages: number;
  readonly requestMs: number;
}

/** Activities and conflict details; approvals are walked for themselves. */
const feedsOfRun = 2;

function startRequests({ action, service }: Policy, { showsActive }: RequestAssumptions): number {
  if (action.kind === "activate") return showsActive(service) ? 2 : 1;
  return action.kind === "delete" || (action.kind === "run" && action.activate === true) ? 2 : 1;
}

interface Followed {
  readonly service: string;
  readonly walks: FeedWalks;
  readonly approvals: FeedWalks;
}

/** Counts the requests of each service. */
export class RequestMeter {
  readonly #assumed: RequestAssumptions;
  readonly #byService = new Map<string, Requests>();
  readonly #walks = new Map<string, Followed>();
  readonly #pollRequests = new Map<Policy, number>();

  constructor(assumed: RequestAssumptions) {
    this.#assumed = assumed;
  }

  add(event: SimulationEvent): void {
    if (event.event === "planned" || event.event === "not-started") return;
    const requests = this.#requestsOf(event.task.service);
    if (event.event === "masks") requests.masks += this.#assumed.pages;
    else if (event.task.kind === "poll") requests.polls += this.#pollRequestsOf(event.policy);
    else if (event.task.kind === "apply") this.#look(event.task, requests);
    else requests.starts += startRequests(event.policy, this.#assumed);
    if (event.event === "started" && event.task.kind === "run") this.#follow(event);
  }

  /** The requests of each service. Ask once, at the end: whoever is followed then is followed to the end. */
  requests(): ReadonlyMap<string, Readonly<Requests>> {
    for (const { service, walks, approvals } of this.#walks.values()) {
      for (const list of [walks, approvals]) list.advance(Number.MAX_SAFE_INTEGER);
      this.#requestsOf(service).feeds += (walks.walks * feedsOfRun + approvals.walks) * this.#assumed.pages;
    }
    this.#walks.clear();
    return this.#byService;
  }

  /** A look at a declared object, by its name (core/declared-object.ts). Nothing is drifting here, so nothing is changed. */
  #look({ target }: Pick<Task, "target">, requests: Requests): void {
    if (target.startsWith("syncJob-")) requests.polls += 1;
    if (target.startsWith("docMask-")) requests.masks += this.#assumed.pages;
  }

  #follow({ policy, task, atMs, heldUntilMs }: Extract<SimulationEvent, { readonly event: "started" }>): void {
    const key = JSON.stringify([task.service, task.repository]);
    const walkMs = this.#assumed.pages * this.#assumed.requestMs;
    const { service } = task;
    const known = this.#walks.get(key) ?? { service, walks: new FeedWalks(walkMs), approvals: new FeedWalks(walkMs) };
    this.#walks.set(key, known);
    const { until, blockedAfterMs } = policy.follow;
    known.walks.begin(atMs, until === "accepted" ? undefined : heldUntilMs);
    if (until === "accepted" || blockedAfterMs === undefined) return;
    const isLong = heldUntilMs - atMs > approvalsAfterMs(blockedAfterMs);
    known.approvals.begin(atMs, isLong ? heldUntilMs : undefined);
  }

  #requestsOf(service: string): Requests {
    const known = this.#byService.get(service) ?? { starts: 0, feeds: 0, polls: 0, masks: 0 };
    this.#byService.set(service, known);
    return known;
  }

  #pollRequestsOf(policy: Policy): number {
    const known = this.#pollRequests.get(policy);
    if (known !== undefined) return known;
    const readsItems = policy.action.kind === "poll" && parseExpectation(policy.action).readsItems;
    const requests = readsItems ? this.#assumed.pages : 1;
    this.#pollRequests.set(policy, requests);
    return requests;
  }
}
