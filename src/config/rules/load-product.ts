// The worst load of one slot when everything fails: attempts × tries × pages, in requests and in
// time. Loading computes it for each policy and refuses too much. Pure; called by load-policies.ts
// through checkLoad.
import { formatDuration } from "../../core/duration.ts";
import { policyDefaults } from "../defaults.ts";
import type { Problem } from "../problem.ts";
import { viewOf, type YamlView } from "../yaml/view.ts";
import type { YamlFile } from "../yaml/yaml-file.ts";
import { policyLimits } from "./policy-limits.ts";

/**
 * The requests of a policy. `pages`: the most pages of one reading of a list; 1 for a single
 * request.
 */
export interface LoadShape {
  /**
   * The most sync jobs that one slot starts; for declared objects, their updates and verifying
   * reads.
   */
  readonly starts: number;
  /** Requests of one reading; 0 when nothing is read. */
  readonly pages: number;
  readonly requestTimeoutMs: number;
  /** undefined: no limit. */
  readonly requestsPerSecond: number | undefined;
}

/** The worst case of one slot. */
export interface LoadProduct {
  /** attempts × tries × pages + attempts × starts. */
  readonly requests: number;
  /**
   * How long one task can read, if each request takes its full time-out and waits for the limiter.
   */
  readonly readingMs: number;
}

/**
 * The factors. queue/queues.ts, service/service-options.ts, tasks/poll.ts and tasks/process-task.ts
 * have the same numbers; a test compares them.
 */
export const multipliers = {
  attempts: 8,
  tries: 3,
  itemsOfPoll: 10_000,
  masks: 20_000,
  itemsOfPage: 100,
  maskStarts: 1_000,
};

/** The longest wait between two tries of a read (service/retry.ts: 0.5 s, then 1 s). */
const retryWaitMs = 1_000;
/** The longest wait between two attempts of a task (tasks/process-task.ts). */
const attemptWaitMs = 60_000;

/** Computes the worst case. */
export function toLoadProduct({ starts, pages, requestTimeoutMs, requestsPerSecond }: LoadShape): LoadProduct {
  const { attempts, tries } = multipliers;
  const paceMs = requestsPerSecond === undefined ? 0 : 1_000 / requestsPerSecond;
  const requestMs = requestTimeoutMs + retryWaitMs + paceMs;
  return {
    requests: attempts * tries * pages + attempts * starts,
    readingMs: attempts * (tries * pages * requestMs + attemptWaitMs),
  };
}

/** The services of all files as written, by name. */
export function servicesOf(files: readonly YamlFile[]): ReadonlyMap<string, YamlView> {
  return new Map(files.flatMap((file) => viewOf(file.value).at("services").entries()));
}

/**
 * The problems of policies whose worst case is too much. A policy with an unknown or invalid
 * service is skipped.
 */
export function checkLoad(file: YamlFile, services: ReadonlyMap<string, YamlView>): readonly Problem[] {
  return viewOf(file.value)
    .at("policies")
    .items()
    .flatMap((policy) => {
      const service = services.get(policy.at("service").text() ?? "");
      const found = service === undefined ? undefined : problemOf(policy, service);
      return found === undefined ? [] : [file.problemAt(found.at.path, found.message, { hint: found.hint })];
    });
}

interface Found {
  readonly at: YamlView;
  readonly message: string;
  readonly hint: string;
}

function problemOf(policy: YamlView, service: YamlView): Found | undefined {
  const shape = shapeOf(policy, service);
  const { requests, readingMs } = toLoadProduct(shape);
  const name = policy.at("name").text() ?? "";
  const at = policy.at("service");
  const factors = `${multipliers.attempts} attempts × ${multipliers.tries} tries × ${shape.pages} pages`;
  const rate = shape.requestsPerSecond;
  if (rate !== undefined && shape.pages > 1 && rate < policyLimits.pagedReadsPerSecondMin) {
    const message = `${name} reads a list of up to ${shape.pages} pages, which ${rate} requests a second is too slow for: ${policyLimits.pagedReadsPerSecondMin} is the least`;
    return { at, message, hint: "raise limits.requestsPerSecond of the service, or expect only count" };
  }
  const looksBefore = policy.at("delete").isPresent || policy.at("apply").isPresent;
  if (rate !== undefined && looksBefore && rate < policyLimits.looksBeforePerSecondMin) {
    const message = `${name} reads before it changes anything, which ${rate} requests a second is too slow for: ${policyLimits.looksBeforePerSecondMin} is the least`;
    return { at, message, hint: "raise limits.requestsPerSecond of the service" };
  }
  if (requests > policyLimits.requestsOfSlotMax) {
    const message = `a slot of ${name} could come to ${requests} requests (${factors}, and ${shape.starts} starts with ${multipliers.attempts} attempts); ${policyLimits.requestsOfSlotMax} is the most`;
    return { at, message, hint: "start fewer sync jobs in one policy" };
  }
  if (readingMs > policyLimits.readingMsMax) {
    const most = formatDuration(policyLimits.readingMsMax);
    const message = `a reading of ${name} could go on for ${days(readingMs)} (${factors} of ${formatDuration(shape.requestTimeoutMs)} each); ${most} is the most`;
    return { at, message, hint: "shorten timeouts.request of the service, or raise its limits.requestsPerSecond" };
  }
  return undefined;
}

function shapeOf(policy: YamlView, service: YamlView): LoadShape {
  const { itemsOfPoll, masks, itemsOfPage, maskStarts } = multipliers;
  const expect = policy.at("poll").at("expect").text() ?? "";
  const fromMasks = policy.at("run").at("fromMasks").isPresent;
  const listed = [...policy.at("run").at("syncJobs").items(), ...policy.at("activate").at("syncJobs").items()];
  // A similar word only makes the check stricter.
  const pollPages = /\bitems\b/.test(expect) ? itemsOfPoll / itemsOfPage : 1;
  const apply = policy.at("apply");
  const declared = apply.entries().flatMap(([, objects]) => objects.entries());
  const readsMasks = fromMasks || apply.at("docMasks").isPresent;
  return {
    starts: fromMasks ? maskStarts : listed.length + 2 * declared.length,
    pages: readsMasks ? masks / itemsOfPage : policy.at("poll").isPresent ? pollPages : declared.length > 0 ? 1 : 0,
    requestTimeoutMs: service.at("timeouts").at("request").durationMs() ?? policyDefaults.requestTimeoutMs,
    requestsPerSecond: service.at("limits").at("requestsPerSecond").number(),
  };
}

function days(durationMs: number): string {
  return `${Math.round(durationMs / 86_400_000)} days`;
}
