// How many requests a service would get: an estimate from the events of a simulation. Used by `plan --requests`.
// Counts neither retries nor requests for tokens, nor the search for a start whose answer got lost: nothing goes wrong here.
import type { Policy } from "../config/policy-set.ts";
import { parseExpression } from "../core/expression.ts";
import type { Task } from "../tasks/task.ts";
import type { SimulationEvent } from "./events.ts";
import { FeedWalks } from "./feed-walks.ts";

/** Requests by what they are for. */
export interface Requests {
  /** One POST for each run and each activation. */
  starts: number;
  /** Pages of the activities and of the conflict details, read to follow runs. */
  feeds: number;
  /** Counts, or pages where an expectation looks at the items; and the looks at declared sync jobs. */
  polls: number;
  /** Pages of masks, for policies with `fromMasks`, and once for each declared mask. */
  masks: number;
}

/** What is assumed: how many pages a list has, and how long a request takes. */
export interface RequestAssumptions {
  readonly pages: number;
  readonly requestMs: number;
}

const feedsOfRun = 2;

/** Counts the requests of each service. */
export class RequestMeter {
  readonly #assumed: RequestAssumptions;
  readonly #byService = new Map<string, Requests>();
  readonly #walks = new Map<string, { readonly service: string; readonly walks: FeedWalks }>();
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
    else requests.starts += 1;
    if (event.event === "started" && event.task.kind === "run") this.#follow(event);
  }

  /** The requests of each service. Ask once, at the end: whoever is followed then is followed to the end. */
  requests(): ReadonlyMap<string, Readonly<Requests>> {
    for (const { service, walks } of this.#walks.values()) {
      walks.advance(Number.MAX_SAFE_INTEGER);
      this.#requestsOf(service).feeds += walks.walks * feedsOfRun * this.#assumed.pages;
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
    const known = this.#walks.get(key) ?? { service: task.service, walks: new FeedWalks(walkMs) };
    this.#walks.set(key, known);
    known.walks.begin(atMs, policy.follow.until === "accepted" ? undefined : heldUntilMs);
  }

  #requestsOf(service: string): Requests {
    const known = this.#byService.get(service) ?? { starts: 0, feeds: 0, polls: 0, masks: 0 };
    this.#byService.set(service, known);
    return known;
  }

  #pollRequestsOf(policy: Policy): number {
    const known = this.#pollRequests.get(policy);
    if (known !== undefined) return known;
    const expect = policy.action.kind === "poll" ? policy.action.expect : undefined;
    const readsItems = expect !== undefined && parseExpression(expect, "list").uses("items");
    const requests = readsItems ? this.#assumed.pages : 1;
    this.#pollRequests.set(policy, requests);
    return requests;
  }
}
