// Where queries look: Redis, the queues, and what the caller may see. Here alone a caller's rights
// become a view: all that shows or changes something asks the view's set, or `sees`. Built by app/
// for the web server.
import type { PolicySet } from "../config/policy-set.ts";
import { getOrMake } from "../core/get-or-make.ts";
import { hasLabels } from "../model/label.ts";
import type { Pause } from "../model/pause.ts";
import type { SlotRecord } from "../model/slot-record.ts";
import { parseTaskId } from "../model/task.ts";
import type { NoticeQueues } from "../queue/notice-queues.ts";
import type { Producer } from "../queue/producer.ts";
import type { FailedTasks } from "../store/failed-tasks.ts";
import type { ReadStates } from "../store/policy-states.ts";
import type { RedisTarget, Store } from "../store/redis.ts";

/** What a caller is held to; undefined: not. `labels`: a selector (model/label.ts), never empty. */
export interface Bounds {
  readonly services: ReadonlySet<string> | undefined;
  readonly labels: string | undefined;
}

/**
 * What a caller may see. `key`: the same for the same view. `holds`: whether a policy of this name
 * is part of it. `sees`: whether this is; a `service` that is not known is not judged.
 */
export interface View {
  readonly key: string;
  readonly isNarrowed: boolean;
  readonly holds: (policy: string) => boolean;
  readonly sees: (about: { readonly policy: string; readonly service?: string | undefined }) => boolean;
}

/** A text without the ids of tasks that the caller may not see. */
export function withoutUnseen(text: string, { isNarrowed, sees }: View): string {
  if (!isNarrowed) return text;
  return text.replaceAll(/\S+/g, (word) => {
    const task = parseTaskId(word);
    return task === undefined || sees(task) ? word : "a task that you may not see";
  });
}

/** The same of what an outcome says: it may name the task that its sync job was busy with. */
export function seenOutcome<Told extends { readonly detail: string }>(outcome: Told, view: View): Told {
  return view.isNarrowed ? { ...outcome, detail: withoutUnseen(outcome.detail, view) } : outcome;
}

/** A pause, without the words of a service: a policy in quarantine may have left it since. */
export function seenPause(pause: Pause, { isNarrowed }: View): Pause {
  return isNarrowed && pause.cause === "quarantine" ? { ...pause, note: "it failed too often in a row" } : pause;
}

/** A slot's record, without its note where that tells of what the caller may not see. */
export function seenRecord(record: SlotRecord, view: View): SlotRecord {
  const { note, ...rest } = record;
  if (!view.isNarrowed || note === undefined) return record;
  const seen = seenNote(rest.detail, note, view);
  return seen === undefined ? rest : { ...rest, note: seen };
}

/** The same of a text that ends with such a note: `slot 02:30 skipped (quarantine): …`. */
export function withoutUnseenNote(text: string, view: View): string {
  if (!view.isNarrowed) return text;
  return text.replace(toldNote, (_told, detail: string, note: string) => {
    const seen = seenNote(detail, note, view);
    return seen === undefined ? "" : `: ${seen}`;
  });
}

/** A deadline's sentence may go on after the note. */
const toldNote =
  /(?<=\((predecessor|quarantine|after-within|stale-input)\)): (.*?)(?=(?:; made up for [^;]+ later)?$)/s;

/** Notes that begin with another policy, or with a task of it. */
const tellsOfOther = new Set(["predecessor", "followed", "after-within", "stale-input"]);

/** A slot that was caught up after a quarantine (`released`) has the note of that. */
function seenNote(detail: string, note: string, view: View): string | undefined {
  if (detail === "quarantine" || detail === "released") return undefined;
  if (!tellsOfOther.has(detail)) return note;
  const [first = ""] = note.split(" ");
  return view.holds(parseTaskId(first)?.policy ?? first) ? withoutUnseenNote(note, view) : undefined;
}

/** The view of one who is held to nothing. */
export const wholeView: View = { key: "", isNarrowed: false, holds: () => true, sees: () => true };

/** Where queries look. `set`: with what the view holds, only. */
export interface QueryContext {
  readonly store: Store;
  readonly target: RedisTarget;
  readonly producer: Producer;
  readonly notices: NoticeQueues;
  readonly readStates: ReadStates;
  /** Remembers what it has read. */
  readonly failedTasks: FailedTasks;
  readonly set: PolicySet;
  /** The services of the whole installation; not set: those of `set`. */
  readonly allServices?: readonly string[];
  readonly view: View;
}

/** What is enough to read states. `readStates`: default is anew. */
export type StateContext = Pick<QueryContext, "store"> & Partial<Pick<QueryContext, "readStates">>;

/** What the callers within some bounds may see of a set: worked out once for all their requests. */
const narrowedSets = new WeakMap<PolicySet, Map<string, Pick<QueryContext, "set" | "view">>>();
/** So many bounds are remembered for a set: tokens and grants seldom have as many. */
const boundsMax = 100;

/**
 * The same, with only what a caller within these bounds may see. Held to services: those, and their
 * policies. Held to labels: policies that have all of them, the services of these policies, and
 * nothing that has no policy.
 */
export function narrowTo(context: QueryContext, bounds: Bounds): QueryContext {
  const { services, labels } = bounds;
  if (services === undefined && labels === undefined) return context;
  const { set } = context;
  const key = JSON.stringify([services === undefined ? null : [...services], labels ?? null]);
  const known = getOrMake(narrowedSets, set, () => new Map());
  const narrowed = getOrMake(known, key, () => narrow(set, bounds, key));
  for (const oldest of known.keys()) if (known.size > boundsMax) known.delete(oldest);
  return { ...context, ...narrowed, allServices: [...set.services.keys()] };
}

function narrow(set: PolicySet, { services, labels }: Bounds, key: string): Pick<QueryContext, "set" | "view"> {
  const policies = set.policies.filter(
    (policy) => (services?.has(policy.service) ?? true) && (labels === undefined || hasLabels(policy, labels)),
  );
  const names = new Set(policies.map(({ name }) => name));
  const used = labels === undefined ? services : new Set(policies.map(({ service }) => service));
  const seen = {
    ...set,
    policies,
    services: new Map([...set.services].filter(([name]) => used?.has(name))),
    // Sinks and digests tell of all.
    sinks: new Map(),
    notifications: { ...set.notifications, digests: [] },
  };
  const view: View = {
    key,
    isNarrowed: true,
    holds: (policy) => names.has(policy),
    sees: ({ policy, service }) =>
      (labels === undefined || names.has(policy)) && (service === undefined || (services?.has(service) ?? true)),
  };
  return { set: seen, view };
}
