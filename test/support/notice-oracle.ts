// Says which notices are due, from what happened and when: the rules of docs/notifications.md
// written down a second time, for tests. Shares no code with src/telling. It knows one service that
// is never down for more than one policy, so what may be an outage is told when its window closes.

/**
 * What a sink is told: every change; every outcome; the third failure in a row and its end; more
 * than two conflicts; ends alone.
 */
export type StoryRule = "change" | "every" | "three" | "many" | "ends";

/** The end of a task, or a slot that was missed (`target` ''). */
export interface StoryOutcome {
  readonly atMs: number;
  readonly policy: string;
  readonly target: string;
  readonly task: string;
  readonly slotMs: number;
  readonly status: string;
  readonly reason: string;
  readonly newConflicts: number;
  /** Those from before that are open. */
  readonly stillConflicts?: number;
}

/**
 * What happens, and when the notifier looks. `dies`: between handing over and saving; the next
 * process begins anew.
 */
export type StoryStep =
  | ({ readonly kind: "outcome" } & StoryOutcome)
  | {
      readonly kind: "masks";
      readonly atMs: number;
      readonly policy: string;
      readonly slotMs: number;
      readonly syncJobs: readonly string[];
    }
  | { readonly kind: "reload"; readonly atMs: number; readonly policies: Named }
  | { readonly kind: "look"; readonly atMs: number; readonly dies: boolean; readonly restarts: boolean };

/** Sync jobs of each policy, or masks that name them. */
export type Named = Readonly<Record<string, readonly string[] | "masks">>;

/** A story. `policies`: the sync jobs that each names at first. `rules`: of each policy by sink. */
export interface Story {
  readonly seed: number;
  readonly policies: Named;
  readonly rules: Readonly<Record<string, Readonly<Record<string, StoryRule>>>>;
  readonly quiet: { readonly fromMs: number; readonly toMs: number } | undefined;
  readonly steps: readonly StoryStep[];
}

type State = "conflicts" | "blocked" | "missed" | "unknown" | "failing";
const worse: readonly State[] = ["conflicts", "blocked", "missed", "unknown", "failing"];

/** What a notice must say. `since`: of what is told; undefined where it says none. */
export interface DueNotice {
  readonly sink: string;
  readonly kind: string;
  readonly policy: string;
  /** `state`, `before` or, of an outcome, nothing. */
  readonly state: string;
  readonly target: string;
  readonly task: string;
  readonly status: string;
  readonly since: number | undefined;
  readonly inRow: number | undefined;
  readonly leftOut: number | undefined;
}

/** The last ending of a sync job, where it was not plainly good. */
interface Bad {
  readonly outcome: StoryOutcome;
  readonly sinceMs: number;
  readonly row: number;
  /** So many of its conflicts are open. */
  readonly open: number;
  /** What it was before it became worse than conflicts. */
  readonly left: Bad | undefined;
  /** It may be the service's doing: not told before the window closes. */
  isInWindow: boolean;
}

interface Belief {
  readonly state: State;
  readonly target: string;
  readonly sinceMs: number;
}

interface Why {
  readonly ending?: StoryOutcome;
  readonly gone?: ReadonlyMap<string, Bad>;
}

const groupWaitMs = 30_000;
const forgetAfterMs = 120_000;

/** The notices that are due in a story, in the order in which each sink gets them. */
export function dueNotices(story: Story): DueNotice[] {
  return new Oracle(story).read();
}

class Oracle {
  readonly #story: Story;
  readonly #bad = new Map<string, Map<string, Bad>>();
  readonly #beliefs = new Map<string, Belief>();
  readonly #masks = new Map<string, readonly string[]>();
  readonly #waiting = new Map<string, DueNotice>();
  #named: Readonly<Record<string, readonly string[] | "masks">>;
  #windowMs: number | undefined;
  #forgetMs = 0;
  /** The policies that this process saw at its last look. */
  #seen: string | undefined;
  #said: DueNotice[] = [];

  constructor(story: Story) {
    this.#story = story;
    this.#named = story.policies;
  }

  read(): DueNotice[] {
    const out: DueNotice[] = [];
    const gathered: Story["steps"][number][] = [];
    for (const step of this.#story.steps) {
      if (step.kind === "reload") this.#named = step.policies;
      else if (step.kind !== "look") gathered.push(step);
      // What was not saved is decided again, and told with the same ids.
      else if (step.dies) this.#seen = undefined;
      else {
        if (this.#seen !== JSON.stringify(this.#named)) this.#forgetMs = step.atMs + forgetAfterMs;
        this.#seen = JSON.stringify(this.#named);
        for (const one of gathered.splice(0)) this.#happen(one);
        this.#closeWindow(step.atMs);
        this.#forget(step.atMs);
        out.push(...this.#handOver(step.atMs));
        // Another process: it waits before it forgets anything.
        if (step.restarts) this.#seen = undefined;
      }
    }
    return out;
  }

  #happen(step: Story["steps"][number]): void {
    if (step.kind === "masks") {
      const all = this.#badOf(step.policy);
      this.#masks.set(step.policy, step.syncJobs);
      const lookup = all.get("masks");
      all.delete("masks");
      const ending = {
        ...step,
        target: "masks",
        status: "started",
        reason: "masks-read",
        newConflicts: 0,
        task: "",
      };
      this.#settle(step.policy, { gone: this.#takeGone(step.policy), ...(lookup ? { ending } : {}) });
    } else if (step.kind === "outcome") this.#end(step);
  }

  #end(outcome: StoryOutcome): void {
    const { policy, target, status, reason, slotMs, atMs, newConflicts, stillConflicts = 0 } = outcome;
    for (const [sink, rule] of Object.entries(this.#story.rules[policy] ?? {}))
      if (rule === "every") this.#say({ sink, kind: "outcome", state: "", outcome });
    if (status === "skipped") return;
    const all = this.#badOf(policy);
    const before = all.get(target);
    const isSuccess = status === "succeeded" || status === "conflicts";
    const missed = all.get("");
    if (isSuccess && missed !== undefined && missed.outcome.slotMs <= slotMs) all.delete("");
    all.delete(target);
    const left = before?.outcome.status === "conflicts" ? before : before?.left;
    const open = Math.max(newConflicts, Math.min(left?.open ?? 0, newConflicts + stillConflicts));
    if (status === "succeeded" && stillConflicts > 0 && left !== undefined) {
      all.set(target, { ...left, open });
    } else if (status !== "succeeded" || newConflicts > 0) {
      const isSame = before !== undefined && stateOf(before.outcome) === stateOf(outcome);
      const isFailing = stateOf(outcome) === "failing";
      if (reason === "unreachable") this.#windowMs ??= atMs;
      const isVague = reason === "unreachable" || reason === "answer-lost" || reason === "deadline";
      all.set(target, {
        outcome,
        sinceMs: isSame ? before.sinceMs : atMs,
        open: status === "conflicts" ? open : newConflicts,
        left: isSuccess ? undefined : left,
        row: isFailing ? (isSame ? before.row : 0) + 1 : 0,
        isInWindow: this.#windowMs !== undefined && isVague,
      });
    }
    this.#settle(policy, { ending: outcome });
  }

  #closeWindow(nowMs: number): void {
    if (this.#windowMs === undefined || nowMs - this.#windowMs < groupWaitMs) return;
    this.#windowMs = undefined;
    for (const [policy, all] of this.#bad) {
      for (const bad of all.values()) bad.isInWindow = false;
      this.#settle(policy, {});
    }
  }

  #forget(nowMs: number): void {
    if (nowMs < this.#forgetMs) return;
    this.#forgetMs = nowMs + forgetAfterMs;
    for (const policy of this.#bad.keys()) this.#settle(policy, { gone: this.#takeGone(policy) });
  }

  /** Takes out what the policy does not name any more. */
  #takeGone(policy: string): ReadonlyMap<string, Bad> {
    const named = this.#named[policy] === "masks" ? this.#masks.get(policy) : this.#named[policy];
    const all = this.#badOf(policy);
    const isNamed = (target: string) =>
      named === undefined ||
      target === "" ||
      (this.#named[policy] === "masks" && target === "masks") ||
      named.includes(target);
    const gone = new Map([...all].filter(([target]) => !isNamed(target)));
    for (const target of gone.keys()) all.delete(target);
    return gone;
  }

  /** Tells each sink of the policy what it does not believe yet. */
  #settle(policy: string, { ending, gone }: Why): void {
    for (const [sink, rule] of Object.entries(this.#story.rules[policy] ?? {})) {
      if (rule === "every") continue;
      const key = `${sink}/${policy}`;
      const belief = this.#beliefs.get(key);
      const lost = belief === undefined ? undefined : gone?.get(belief.target);
      const [worst, isElse] = this.#worstFor(policy, rule, ending?.target);
      if (worst !== undefined) {
        const [state, { outcome, sinceMs, row }] = worst;
        if (belief?.state === state && lost === undefined) continue;
        const fromMs = belief === undefined || lost !== undefined ? sinceMs : belief.sinceMs;
        this.#beliefs.set(key, { state, target: outcome.target, sinceMs: fromMs });
        if (rule !== "ends") this.#say({ sink, kind: "failing", state, outcome, sinceMs, row });
      } else if (belief !== undefined && (!isElse || lost !== undefined)) {
        this.#beliefs.delete(key);
        const { state, sinceMs } = belief;
        // It has recovered when each bad one has ended well: of one that left this is not known.
        const removed = lost ?? newestOf(gone, (bad) => isBadFor(rule, bad));
        if (removed === undefined && ending !== undefined)
          this.#say({ sink, kind: "recovered", state, outcome: ending, sinceMs });
        else if (removed !== undefined && rule !== "ends")
          this.#say({ sink, kind: "removed", state, outcome: removed.outcome, sinceMs });
      }
    }
  }

  /** The worst that a sink hears of, and whether something else is wrong. */
  #worstFor(policy: string, rule: StoryRule, target: string | undefined): [[State, Bad] | undefined, boolean] {
    let worst: [State, Bad] | undefined;
    let isElse = false;
    for (const bad of this.#badOf(policy).values()) {
      const state = bad.isInWindow ? undefined : heardAs(rule, bad);
      if (state === undefined) isElse ||= !["succeeded", "conflicts"].includes(bad.outcome.status);
      else if (worst === undefined || this.#isWorse([state, bad], worst, target)) worst = [state, bad];
    }
    return [worst, isElse];
  }

  #isWorse([a, one]: [State, Bad], [b, other]: [State, Bad], target: string | undefined): boolean {
    if (a !== b) return worse.indexOf(a) > worse.indexOf(b);
    if (one.outcome.target === target || other.outcome.target === target) return one.outcome.target === target;
    return one.outcome.atMs > other.outcome.atMs;
  }

  #say(said: {
    readonly sink: string;
    readonly kind: string;
    readonly state: string;
    readonly outcome: StoryOutcome;
    readonly sinceMs?: number;
    readonly row?: number;
  }): void {
    const { sink, kind, state, sinceMs: since, row: inRow, outcome } = said;
    const { policy, target, task, status } = outcome;
    this.#said.push({ sink, kind, policy, state, target, task, status, since, inRow, leftOut: undefined });
  }

  /**
   * In mute timing the latest of each policy waits for each sink; at their end it goes out before
   * anything newer.
   */
  #handOver(nowMs: number): DueNotice[] {
    const said = this.#said.splice(0);
    const { quiet } = this.#story;
    const isMuted = quiet !== undefined && nowMs >= quiet.fromMs && nowMs < quiet.toMs;
    if (!isMuted) {
      const waited = [...this.#waiting.values()];
      this.#waiting.clear();
      return [...waited, ...said];
    }
    for (const notice of said) {
      const key = `${notice.sink}/${notice.policy}`;
      const before = this.#waiting.get(key);
      const leftOut = before === undefined ? undefined : (before.leftOut ?? 0) + 1;
      this.#waiting.set(key, { ...notice, leftOut });
    }
    return [];
  }

  #badOf(policy: string): Map<string, Bad> {
    const known = this.#bad.get(policy) ?? new Map<string, Bad>();
    this.#bad.set(policy, known);
    return known;
  }
}

function newestOf(gone: ReadonlyMap<string, Bad> = new Map(), wants: (bad: Bad) => boolean): Bad | undefined {
  return [...gone.values()].filter(wants).toSorted((a, b) => b.outcome.atMs - a.outcome.atMs)[0];
}

/** Whether a sink has to wait for its end: it hears of it, or the sync job did not do its work. */
function isBadFor(rule: StoryRule, bad: Bad): boolean {
  return heardAs(rule, bad) !== undefined || !["succeeded", "conflicts"].includes(bad.outcome.status);
}

function stateOf({ status }: StoryOutcome): State | undefined {
  if (status === "succeeded") return undefined;
  if (status === "failed" || status === "timed-out" || status === "not-started") return "failing";
  return status as State;
}

/** As what a sink hears of it, by its rule. */
function heardAs(rule: StoryRule, { outcome, row, open }: Bad): State | undefined {
  const state = stateOf(outcome);
  if (rule === "change") return state;
  if (rule === "ends") return state === "conflicts" ? undefined : state;
  if (rule === "three") return state === "failing" && row >= 3 ? state : undefined;
  return open > 2 ? "conflicts" : undefined;
}
