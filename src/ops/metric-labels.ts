// The labels that metrics may have, and every value that each may take. Read by metrics.ts, which turns anything else into `other`.
// No label ever holds an id, a message or a URL: the number of series is bounded by what is configured.
import { errorKinds } from "../core/error-kind.ts";
import { listNames } from "../core/list-name.ts";
import { version } from "../core/version.ts";
import { operations } from "../service/operations.ts";
import { noticeKinds } from "../tasks/notice.ts";
import { outcomeStatuses } from "../tasks/outcome.ts";
import { taskKinds } from "../tasks/task.ts";

/** Of so many names each has series of its own; those that come later share `other`. Until the process ends. */
export const namesMax = { policy: 1_000, service: 100, sink: 50 } as const;

/** What anything becomes that is not in the lists. */
export const otherValue = "other";

/** The labels whose values are closed lists. */
export const closedLabels = {
  slotOutcome: ["started", "skipped", "missed", "coalesced"],
  status: outcomeStatuses,
  kind: taskKinds,
  noticeKind: noticeKinds,
  role: ["scheduler", "worker"],
  startOutcome: ["accepted", "refused", "failed", "unknown", "not-sent"],
  requestOutcome: ["ok", ...errorKinds],
  operation: Object.keys(operations),
  list: listNames,
  walkOutcome: ["whole", "part", "failed"],
  novelty: ["new", "again", "known"],
  queue: ["actions", "polls"],
  state: ["waiting", "active", "delayed"],
  cause: ["pause", "quarantine"],
  renewal: ["renewed", "failed"],
  link: ["rebased", "refused"],
  deliveryResult: ["delivered", "refused", "retried", "given-up"],
  version: [version],
  node: [process.versions.node],
} as const satisfies Record<string, readonly string[]>;

/** The name of a label in the table: a closed list, or one of the kinds of configured names. */
export type LabelName = keyof typeof closedLabels | keyof typeof namesMax;

/** Under which name a label is shown, where that is not its name in the table. */
const shownNames: Partial<Record<LabelName, string>> = {
  slotOutcome: "outcome",
  startOutcome: "outcome",
  requestOutcome: "outcome",
  walkOutcome: "outcome",
  renewal: "outcome",
  link: "outcome",
  deliveryResult: "result",
  noticeKind: "kind",
};

/** The label's name in what is scraped: labels of different lists may be called `outcome`. */
export function shownLabel(label: LabelName): string {
  return shownNames[label] ?? label;
}

/** Whether a label's values are names from the policy files. */
export function isNameLabel(label: LabelName): label is keyof typeof namesMax {
  return label in namesMax;
}

/** The names of one kind that have series of their own. */
export class LabelNames {
  readonly #names = new Set<string>();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  /** Takes names in, in their order, as far as there is room. Answers those that are new. */
  takeIn(names: Iterable<string>): string[] {
    const fresh: string[] = [];
    for (const name of names) {
      if (this.#names.size >= this.#max) break;
      if (this.#names.has(name)) continue;
      this.#names.add(name);
      fresh.push(name);
    }
    return fresh;
  }

  has(name: string): boolean {
    return this.#names.has(name);
  }
}
