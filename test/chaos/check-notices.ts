// Holds the notices of a trial of faults against its outcomes: each names the right task and
// status, each outcome is told to who hears every one, and what the last one says of a policy is
// how it fares. Called by check-faults.ts.
import type { Outcome } from "../../src/model/outcome.ts";
import type { Ledgers, ToldNotice } from "./fault-ledgers.ts";

const stateOf: Readonly<Record<string, string>> = {
  succeeded: "good",
  accepted: "good",
  conflicts: "conflicts",
  failed: "failing",
  "timed-out": "failing",
  "not-started": "failing",
  unknown: "unknown",
  blocked: "blocked",
  missed: "missed",
};
/**
 * A notice of an outage may come this much earlier than the outcome that is part of it, by their
 * clocks.
 */
const clockMs = 500;
/** What fails until a service counts as well again is part of its outage: groupWait, and a tick. */
const upAfterMs = 5_000;

/** Checks both files. */
export function checkNotices(ledgers: Ledgers): void {
  checkEach(ledgers);
  const changes = ledgers.told.notices.changes;
  for (const notice of changes) ledgers.saw(`notices ${notice.type.replace("syncline.", "")}`);
  const ofPolicy = Map.groupBy(unique(changes), ({ subject }) => subject ?? "");
  for (const { name } of ledgers.told.set.policies) checkPolicy(name, ofPolicy.get(name) ?? [], ledgers);
  checkOutages(unique(changes), ledgers);
}

/** A process that dies in between repeats a notice under the same id. */
function unique(notices: readonly ToldNotice[]): readonly ToldNotice[] {
  return [...new Map(notices.toReversed().map((notice) => [notice.id, notice])).values()].toReversed();
}

function checkEach(ledgers: Ledgers): void {
  const { each } = ledgers.told.notices;
  const outcomes = unique(each).filter(({ type }) => type === "syncline.outcome");
  const told = new Set<string>();
  for (const notice of outcomes) {
    ledgers.saw("notices of each outcome");
    const id = String(notice.data["taskId"]);
    if (told.has(id)) ledgers.wrong(`notice: ${id} is told twice`);
    told.add(id);
    const outcome = ledgers.outcomes.get(id);
    const isSame =
      outcome !== undefined &&
      (["status", "reason", "detail", "slot", "target", "startedAt", "finishedAt"] as const).every(
        (name) => outcome[name] === notice.data[name],
      );
    if (!isSame || notice.subject !== outcome.policy)
      ledgers.wrong(`notice: ${JSON.stringify(notice)} is not what the history says: ${JSON.stringify(outcome)}`);
    if (
      outcome !== undefined &&
      !String(notice.data["title"]).startsWith(`${outcome.policy}: ${outcome.status} (${outcome.reason})`)
    )
      ledgers.wrong(`notice: "${String(notice.data["title"])}" of ${id}, which is ${outcome.status}`);
  }
  for (const id of ledgers.outcomes.keys()) if (!told.has(id)) ledgers.wrong(`notice: none of ${id}`);
}

/** What a notice says of the task that it names. */
function untrueOf({ data, type }: ToldNotice, ledgers: Ledgers): string | undefined {
  const outcome = ledgers.outcomes.get(String(data["task"]));
  if (outcome === undefined) return "it names no task";
  const same = (["status", "reason", "slot", "target"] as const).find((name) => outcome[name] !== data[name]);
  if (same !== undefined) return `its task's ${same} is ${outcome[same]}`;
  if (type === "syncline.failing" && stateOf[outcome.status] !== data["state"]) return `the task is ${outcome.status}`;
  if (type === "syncline.recovered" && stateOf[outcome.status] !== "good") return `the task is ${outcome.status}`;
  return undefined;
}

function checkPolicy(policy: string, notices: readonly ToldNotice[], ledgers: Ledgers): void {
  let state = "good";
  for (const notice of notices) {
    const { type, data } = notice;
    const wrong = (what: string) => ledgers.wrong(`notice: ${what}: ${JSON.stringify(notice)}`);
    if (type !== "syncline.failing" && type !== "syncline.recovered") {
      // A poll that finds something new, and silence, are told beside the state.
      if (type !== "syncline.outcome" && type !== "syncline.stale") wrong("of a kind that nothing here makes");
      continue;
    }
    const untrue = untrueOf(notice, ledgers);
    if (untrue !== undefined) wrong(untrue);
    if (type === "syncline.recovered") {
      if (data["before"] !== state && data["before"] !== "stale") wrong(`it was told to be ${state}`);
      if (data["before"] === state) state = "good";
    } else {
      if (data["state"] === state) wrong("told twice in a row");
      state = String(data["state"]);
      if (!String(data["title"]).startsWith(`${policy}: ${state} (`)) wrong("the title says otherwise");
    }
  }
  ledgers.saw("policies whose last notice was looked at");
  checkBelief(policy, state, ledgers);
}

/** What the sink believes at the end, where no outage stands in between. */
function checkBelief(policy: string, believed: string, ledgers: Ledgers): void {
  const ended = ledgers.told.outcomes
    .filter((outcome) => outcome.policy === policy && outcome.status !== "skipped")
    .toSorted((a, b) => Date.parse(a.finishedAt) - Date.parse(b.finishedAt));
  const last = ended.at(-1);
  if (last === undefined) return;
  const is = stateOf[last.status] ?? "good";
  if ((is === "good") === (believed === "good") || isInOutage(last, ledgers)) return;
  const told = ledgers.told.notices.changes.filter(({ data }) => data["service"] === last.service);
  const titles = told.map(({ time, data }) => `${time} ${String(data["title"])}`).join("; ");
  ledgers.wrong(
    `notice: ${policy} is told as ${believed}, and ${last.taskId} is ${last.status} (${last.reason}) at ${last.finishedAt}: ${titles}`,
  );
}

/**
 * Whether an instant lies in an outage of a service that was told: its failures, and their ends,
 * are part of it.
 */
function isInOutage({ service, finishedAt }: Outcome, { told }: Ledgers): boolean {
  const atMs = Date.parse(finishedAt);
  let sinceMs: number | undefined;
  for (const { type, data } of told.notices.changes) {
    if (data["service"] !== service || !type.startsWith("syncline.service-")) continue;
    const untilMs = Date.parse(String(data["until"]));
    if (
      type === "syncline.service-up" &&
      sinceMs !== undefined &&
      atMs >= sinceMs - clockMs &&
      atMs <= untilMs + upAfterMs
    )
      return true;
    sinceMs = type === "syncline.service-down" ? Date.parse(String(data["since"])) : undefined;
  }
  return sinceMs !== undefined && atMs >= sinceMs - clockMs;
}

function checkOutages(notices: readonly ToldNotice[], ledgers: Ledgers): void {
  const down = new Map<string, ToldNotice>();
  for (const notice of notices) {
    const { type, data } = notice;
    const service = String(data["service"]);
    const wrong = (what: string) => ledgers.wrong(`notice: ${what}: ${JSON.stringify(notice)}`);
    if (type === "syncline.service-down") {
      if (down.has(service)) wrong("told twice in a row");
      down.set(service, notice);
      for (const what of untrueOutage(notice, service, ledgers)) wrong(what);
    }
    if (type === "syncline.service-up") {
      const began = down.get(service);
      if (began === undefined || began.data["since"] !== data["since"]) wrong("of an outage that was not told");
      down.delete(service);
    }
  }
}

/**
 * Each policy that is said to fail must have failed, after it began and before it was told; and the
 * service must have failed.
 */
function untrueOutage({ data }: ToldNotice, service: string, { told }: Ledgers): string[] {
  const policies = data["policies"];
  const sinceMs = Date.parse(String(data["since"]));
  const isBad = (outcome: Outcome) =>
    ["failing", "unknown", "missed"].includes(stateOf[outcome.status] ?? "") &&
    Date.parse(outcome.finishedAt) >= sinceMs - clockMs;
  const findings: string[] = [];
  for (const policy of Array.isArray(policies) ? policies : [])
    if (!told.outcomes.some((outcome) => outcome.policy === policy && outcome.service === service && isBad(outcome)))
      findings.push(`${String(policy)} did not fail then`);
  const { exchanges = [], downs = [] } = told.services.get(service) ?? {};
  if (exchanges.every(({ isFaulty }) => !isFaulty) && downs.length === 0)
    findings.push("the service met everything well");
  return findings;
}
