// Stories of policies whose sync jobs hang, fail and recover in turn, made up from a seed, and what
// tells them to a notifier: for tests of what is told. test/support/notice-oracle.ts says what is
// due.
import type { NotificationSettings, NotifyRule, Policy } from "../../src/config/policy-set.ts";
import type { Notice } from "../../src/model/notice.ts";
import type { Outcome } from "../../src/model/outcome.ts";
import { createRandom, type SeededRandom } from "../chaos/seeded-random.ts";
import {
  type DueNotice,
  dueNotices,
  type Named,
  type Story,
  type StoryOutcome,
  type StoryRule,
  type StoryStep,
} from "./notice-oracle.ts";
import { changeRule, notifiedPolicy, silentRule } from "./notify-fixture.ts";

/** What a story is told to: a notifier, its book, and a clock that the story moves. */
export interface StoryFixture {
  nowMs: number;
  notifications: NotificationSettings;
  policies: readonly Policy[];
  diesBeforeSave: boolean;
  readonly delivered: readonly { readonly sink: string; readonly notice: Notice }[];
  ended(policy: string, changes: Partial<Outcome>): void | Promise<void>;
  missed(policy: string): void | Promise<void>;
  masksRead(policy: string, syncJobs: readonly string[]): void | Promise<void>;
  after(durationMs: number): Promise<void>;
  restart(): void;
}

const slotEveryMs = 20_000;
const deadlineMs = 50_000;
const slotsMax = 30;
const minuteMs = 60_000;

const endings = {
  well: ["succeeded", "completed"],
  fail: ["failed", "run-failed"],
  hang: ["timed-out", "deadline"],
  conflict: ["conflicts", "new-conflicts"],
  unknown: ["unknown", "redis-loss"],
  lost: ["unknown", "answer-lost"],
  blocked: ["blocked", "approval-waiting"],
  unreachable: ["failed", "unreachable"],
  late: ["missed", "too-late"],
} as const;
type Phase = keyof typeof endings;
const phaseWeights: Readonly<Record<Phase, number>> = {
  ...{ well: 6, fail: 4, hang: 4, conflict: 2, unknown: 1, lost: 1, blocked: 1, unreachable: 1, late: 1 },
};

/** Makes up the story of a seed. It begins at a whole minute. */
export function planStory(seed: number, beginMs: number): Story {
  return new Planner(seed, beginMs).plan();
}

class Planner {
  readonly #seed: number;
  readonly #beginMs: number;
  readonly #random: SeededRandom;
  readonly #steps: StoryStep[] = [];
  readonly #phases = new Map<string, { phase: Phase; slots: number }>();
  readonly #busyUntilMs = new Map<string, number>();
  #named: Record<string, readonly string[] | "masks">;
  #masked: readonly string[];
  /**
   * What is decided at a look, and not for an event, may be decided otherwise after a death:
   * stories with deaths have none of it.
   */
  readonly #mayDie: boolean;
  readonly #used = new Set<number>();

  constructor(seed: number, beginMs: number) {
    this.#seed = seed;
    this.#beginMs = beginMs;
    this.#random = createRandom(seed);
    this.#mayDie = this.#random.chance(0.4);
    this.#masked = this.#random.chance(0.5) ? ["11", "4"] : ["11", "4", "7"];
    this.#named = { p: this.#random.chance(0.25) ? "masks" : this.#masked, q: ["20"] };
  }

  plan(): Story {
    const random = this.#random;
    const policies = { ...this.#named };
    for (let slot = 0; slot < slotsMax; slot += 1) {
      const slotMs = this.#beginMs + slot * slotEveryMs;
      if (random.chance(0.06)) this.#reload(slotMs);
      for (const policy of ["p", "q"]) this.#slot(policy, slotMs);
    }
    const endMs = this.#beginMs + (slotsMax + 4) * slotEveryMs + 6 * minuteMs;
    const hasQuiet = !this.#mayDie && random.chance(0.6);
    const changedMs = this.#steps.find(({ kind }) => kind === "reload")?.atMs ?? endMs;
    for (let atMs = this.#beginMs + 2_500; atMs < endMs; atMs += random.integer(6, 45) * 1_000) {
      const dies = this.#mayDie && random.chance(0.15) && atMs < changedMs;
      this.#steps.push({ kind: "look", atMs: this.#free(atMs), dies, restarts: random.chance(0.05) });
    }
    const fromMs = this.#beginMs + random.integer(1, 5) * minuteMs;
    const rules: Readonly<Record<string, StoryRule>> = {
      ...{ ops: "change", boss: "three", desk: "many", ends: "ends" },
      ...(random.chance(0.5) ? { log: "every" } : {}),
    };
    return {
      seed: this.#seed,
      policies,
      rules: { p: rules, q: { ops: "change", boss: "three" } },
      quiet: hasQuiet ? { fromMs, toMs: fromMs + random.integer(1, 6) * minuteMs } : undefined,
      steps: this.#steps.toSorted((a, b) => a.atMs - b.atMs),
    };
  }

  /** A sync job leaves a policy, comes back, or changes from one to the other. */
  #reload(slotMs: number): void {
    const before = JSON.stringify(this.#named);
    const [from, to] = this.#random.chance(0.5) ? ["p", "q"] : ["q", "p"];
    const [giving = [], taking = []] = [from, to].map((name) => this.#namesOf(name ?? ""));
    const moved = this.#random.pick(["11", "4", "7", "20"]);
    const isKept = this.#random.chance(0.3);
    const isTaken = this.#random.chance(0.7);
    this.#name(from ?? "", isKept || giving.length < 2 ? giving : giving.filter((one) => one !== moved));
    this.#name(to ?? "", isTaken && !taking.includes(moved) ? [...taking, moved] : taking);
    if (JSON.stringify(this.#named) === before) return;
    this.#steps.push({ kind: "reload", atMs: this.#free(slotMs), policies: { ...this.#named } });
  }

  #namesOf(policy: string): readonly string[] {
    const named = this.#named[policy] ?? [];
    return named === "masks" ? this.#masked : named;
  }

  #name(policy: string, names: readonly string[]): void {
    if (this.#named[policy] === "masks") this.#masked = names;
    else this.#named[policy] = names;
  }

  #slot(policy: string, slotMs: number): void {
    const random = this.#random;
    if (random.chance(0.04)) {
      const atMs = this.#free(slotMs);
      this.#ended({
        atMs,
        policy,
        target: "",
        slotMs: atMs,
        status: "missed",
        reason: "catch-up-window",
        newConflicts: 0,
      });
      return;
    }
    if (this.#named[policy] === "masks") {
      const atMs = this.#free(slotMs + 100);
      if (random.chance(0.1)) {
        const ending = { status: "not-started", reason: "refused", newConflicts: 0 };
        this.#ended({ atMs, policy, target: "masks", slotMs, ...ending });
        return;
      }
      this.#steps.push({ kind: "masks", atMs, policy, slotMs: atMs, syncJobs: this.#masked });
    }
    for (const target of this.#namesOf(policy)) this.#task(policy, target, slotMs);
  }

  #task(policy: string, target: string, slotMs: number): void {
    const random = this.#random;
    const startMs = slotMs + 300;
    if ((this.#busyUntilMs.get(target) ?? 0) > startMs) {
      const skipped = { status: "skipped", reason: "overlap", newConflicts: 0 };
      this.#ended({ atMs: this.#free(startMs), policy, target, slotMs, ...skipped });
      return;
    }
    const phase = this.#phaseOf(target, policy);
    const takesMs = phase === "hang" ? deadlineMs : random.integer(200, 18_000);
    const atMs = this.#free(startMs + takesMs);
    this.#busyUntilMs.set(target, atMs);
    const [status, reason] = endings[phase];
    const newConflicts = phase === "conflict" || random.chance(0.05) ? random.integer(1, 4) : 0;
    const stillConflicts = (phase === "well" || phase === "conflict") && random.chance(0.5) ? random.integer(0, 3) : 0;
    this.#ended({ atMs, policy, target, slotMs, status, reason, newConflicts, stillConflicts });
  }

  /** What a sync job does for some slots now. */
  #phaseOf(target: string, policy: string): Phase {
    const known = this.#phases.get(target);
    if (known !== undefined && known.slots > 0) {
      known.slots -= 1;
      // Two policies that fail with their service at a time are an outage, which is told otherwise.
      const isOwn = policy === "p" || !["unreachable", "hang", "lost"].includes(known.phase);
      return isOwn && !(this.#mayDie && known.phase === "unreachable") ? known.phase : "fail";
    }
    this.#phases.set(target, { phase: this.#random.weighted(phaseWeights), slots: this.#random.integer(1, 4) });
    return this.#phaseOf(target, policy);
  }

  #ended(outcome: Omit<StoryOutcome, "task">): void {
    const { policy, target, slotMs } = outcome;
    const task = target === "" ? "" : `${policy}__run__${target}__${slotMs / 1_000}`;
    this.#steps.push({ kind: "outcome", ...outcome, task });
  }

  /** An instant of its own, so that the order of what happens is plain. */
  #free(atMs: number): number {
    let freeMs = atMs;
    while (this.#used.has(freeMs)) freeMs += 1;
    this.#used.add(freeMs);
    return freeMs;
  }
}

/**
 * Tells a story to a fixture; answers where what was told is not what is due, one line for each, or
 * nothing.
 */
export async function checkStory(story: Story, fixture: StoryFixture): Promise<string[]> {
  fixture.notifications = { groupWaitMs: 30_000, muteTiming: toQuietHours(story) };
  fixture.policies = toPolicies(story, story.policies);
  for (const step of story.steps) await play(story, fixture, step);
  const seen = new Set<string>();
  const delivered = fixture.delivered.filter(({ sink, notice: { id } }) => {
    const isNew = !seen.has(`${sink} ${id}`);
    seen.add(`${sink} ${id}`);
    return isNew;
  });
  const told = bySinkAndPolicy(delivered.map(({ sink, notice }) => toDue(sink, notice)));
  const due = bySinkAndPolicy(dueNotices(story));
  const wrong = [...new Set([...told.keys(), ...due.keys()])].flatMap((key) => {
    const [is = [], should = []] = [told.get(key), due.get(key)];
    const at = Array.from({ length: Math.max(is.length, should.length) }).findIndex(
      (_, index) => is[index] !== should[index],
    );
    if (at < 0) return [];
    return [`${key}, notice ${at + 1}:\n  told ${is[at] ?? "nothing"}\n  due  ${should[at] ?? "nothing"}`];
  });
  return [...wrong, ...delivered.flatMap(({ notice }) => untrue(story, notice))].map(
    (line) => `seed ${story.seed}: ${line}`,
  );
}

/** A story for people, one line a step. */
export function storyText({ seed, policies, rules, quiet, steps }: Story): string {
  const beginMs = steps[0]?.atMs ?? 0;
  const at = (ms: number) => `+${((ms - beginMs) / 1_000).toFixed(1)}s`;
  const lines = steps.map(({ kind, atMs, ...rest }) => `${at(atMs)} ${kind} ${JSON.stringify(rest)}`);
  const hours = quiet === undefined ? "none" : `${at(quiet.fromMs)} to ${at(quiet.toMs)}`;
  return [`seed ${seed}: ${JSON.stringify(policies)} ${JSON.stringify(rules)}, mute timing ${hours}`, ...lines].join(
    "\n",
  );
}

async function play(story: Story, fixture: StoryFixture, step: StoryStep): Promise<void> {
  fixture.nowMs = step.atMs;
  if (step.kind === "reload") fixture.policies = toPolicies(story, step.policies);
  else if (step.kind === "masks") await fixture.masksRead(step.policy, step.syncJobs);
  else if (step.kind === "outcome" && step.target === "") await fixture.missed(step.policy);
  else if (step.kind === "outcome") {
    const { policy, target, task: taskId, reason, newConflicts, stillConflicts = 0, slotMs } = step;
    const status = step.status as Outcome["status"];
    const said = { status, reason, newConflicts, stillConflicts, detail: `the detail of ${taskId}` };
    await fixture.ended(policy, { taskId, target, slot: new Date(slotMs).toISOString(), ...said });
  } else if (step.kind === "look") {
    fixture.diesBeforeSave = step.dies;
    await fixture.after(0).catch(() => {});
    fixture.diesBeforeSave = false;
    if (step.dies || step.restarts) fixture.restart();
  }
}

const rulesByWord: Readonly<Record<StoryRule, NotifyRule>> = {
  change: changeRule,
  every: { ...silentRule, every: true },
  three: { ...silentRule, failuresInRow: 3, recovery: true },
  many: { ...silentRule, conflicts: 2, recovery: true },
  ends: { ...silentRule, recovery: true },
};

function toPolicies({ rules }: Story, named: Named): Policy[] {
  return Object.entries(named).map(([name, names]) => {
    const notify = Object.entries(rules[name] ?? {}).map(([sink, rule]) => ({ ...rulesByWord[rule], sink }));
    const what = names === "masks" ? { fromMasks: {} } : { syncJobs: names.map(Number) };
    return notifiedPolicy(name, notify, { kind: "run", ...what });
  });
}

function toQuietHours({ quiet }: Story): NotificationSettings["muteTiming"] {
  if (quiet === undefined) return undefined;
  const minuteOf = (ms: number) => Math.floor(ms / minuteMs) % 1_440;
  return { fromMinute: minuteOf(quiet.fromMs), toMinute: minuteOf(quiet.toMs), timezone: "UTC", except: [] };
}

function toDue(sink: string, { kind, policy, data }: Notice): DueNotice {
  const text = (value: unknown) => (typeof value === "string" ? value : "");
  const number = (value: unknown) => (typeof value === "number" ? value : undefined);
  return {
    ...{ sink, kind, policy: policy ?? "", state: text(data["state"] ?? data["before"]) },
    ...{ target: text(data["target"]), task: text(data["task"] ?? data["taskId"]), status: text(data["status"]) },
    since: typeof data["since"] === "string" ? Date.parse(data["since"]) : undefined,
    inRow: number(data["inRow"]),
    leftOut: number(data["leftOut"]),
  };
}

function bySinkAndPolicy(notices: readonly DueNotice[]): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const { sink, policy, ...rest } of notices) {
    const line = JSON.stringify(rest, Object.keys(rest).toSorted());
    found.set(`${sink} of ${policy}`, [...(found.get(`${sink} of ${policy}`) ?? []), line]);
  }
  return found;
}

/** What a notice says of a task that is not so. */
function untrue({ steps }: Story, { kind, title, data }: Notice): string[] {
  const task = data["task"] ?? data["taskId"];
  const own = steps.find((step) => step.kind === "outcome" && step.task === task);
  if (own?.kind !== "outcome" || own.target === "") return [];
  const { target, status, reason, newConflicts, policy } = own;
  const isSo = Object.entries({ target, status, reason, newConflicts, detail: `the detail of ${own.task}` }).every(
    ([field, value]) => data[field] === value,
  );
  const isSuccess = status === "succeeded" || status === "conflicts";
  const isTitled =
    title.startsWith(`${policy}: `) &&
    (kind !== "failing" || title.includes(`sync job ${target}`) || target === "masks");
  return isSo && isTitled && (kind !== "recovered" || isSuccess)
    ? []
    : [`"${title}" is not so: ${JSON.stringify(data)}`];
}
