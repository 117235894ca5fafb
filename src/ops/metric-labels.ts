// The labels of metrics and every value that each may take; metrics.ts turns any other value into
// `other`. No label holds an id, a message or a URL: the configuration bounds the number of series.
import { errorKinds } from "../core/errors.ts";
import { version } from "../core/version.ts";
import { listNames, wholeReasons } from "../model/feed.ts";
import { noticeKinds } from "../model/notice.ts";
import { outcomeStatuses } from "../model/outcome.ts";
import { taskKinds } from "../model/task.ts";
import { queueKinds } from "../model/task-processing.ts";
import { operations } from "../service/operations.ts";

/** How many names have series of their own, until the process ends; later names share `other`. */
export const namesMax = { policy: 1_000, service: 100, sink: 50 } as const;

/** The value for anything outside the lists. */
export const otherValue = "other";

/** The labels whose values are closed lists. */
export const closedLabels = {
  slotOutcome: ["started", "skipped", "missed", "coalesced"],
  status: outcomeStatuses,
  kind: taskKinds,
  noticeKind: noticeKinds,
  role: ["scheduler", "worker", "web"],
  startOutcome: ["accepted", "refused", "failed", "unknown", "not-sent"],
  requestOutcome: ["ok", ...errorKinds],
  operation: Object.keys(operations),
  list: listNames,
  walkOutcome: ["whole", "part", "failed"],
  wholeReason: wholeReasons,
  novelty: ["new", "again", "known"],
  queue: queueKinds,
  state: ["waiting", "active", "delayed"],
  cause: ["pause", "quarantine"],
  breakerCause: ["none", ...errorKinds],
  trouble: ["stale", "failing", "conflicts", "unknown", "missed", "late", "quarantined"],
  reader: ["walk", "poll"],
  againResult: ["same", "other", "unknown"],
  renewal: ["renewed", "failed"],
  link: ["rebased", "refused"],
  deliveryResult: ["delivered", "refused", "retried", "given-up"],
  statusClass: ["2xx", "3xx", "4xx", "5xx"],
  webRefusal: [
    ...["unauthenticated", "no-grant", "scope-too-small", "refused", "sign-in-failed", "wrong-host"],
    ...["too-large", "too-many-requests", "too-many-streams"],
  ] as const,
  version: [version],
  node: [process.versions.node],
} as const satisfies Record<string, readonly string[]>;

/** For each trouble and service, how many policies are named: the oldest first. */
export const worstPoliciesMax = 5;

/** A label: a closed list, a kind of configured names, or an open one. */
export type LabelName = keyof typeof closedLabels | keyof typeof namesMax | (typeof openLabels)[number];

/** Labels whose values are free: worstPoliciesMax, the named policies or the routes bound them. */
export const openLabels = ["worstPolicy", "owner", "labels", "webOperation"] as const;

/** Whether a label's values are free. */
export function isOpenLabel(label: string): label is (typeof openLabels)[number] {
  return openLabels.some((one) => one === label);
}

/** A label's name in a scrape, where it differs from the table's. */
const shownNames: Partial<Record<LabelName, string>> = {
  worstPolicy: "policy",
  breakerCause: "cause",
  slotOutcome: "outcome",
  startOutcome: "outcome",
  requestOutcome: "outcome",
  walkOutcome: "outcome",
  wholeReason: "reason",
  againResult: "result",
  renewal: "outcome",
  link: "outcome",
  deliveryResult: "result",
  noticeKind: "kind",
  webOperation: "operation",
  statusClass: "status",
  webRefusal: "reason",
};

/** The label's name in a scrape. Labels of different lists may share a name such as `outcome`. */
export function shownLabel(label: LabelName): string {
  return shownNames[label] ?? label;
}

/** Whether a label's values are names from the policy files. */
export function isNameLabel(label: LabelName): label is keyof typeof namesMax {
  return label in namesMax;
}
