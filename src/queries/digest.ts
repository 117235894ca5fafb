// A digest, for those who wait for the data: its title says whether all is well, its lines what is
// not and who must act (plain-troubles.ts), the worst first. One zone for all its times. Built for
// sinks by app/create-notifier.ts, and for `syncline digest`.
import type { DigestSettings, PolicySet } from "../config/policy-set.ts";
import { fillLink } from "../config/schema/notify.ts";
import { formatRoughly } from "../core/duration.ts";
import { dayAfter, localDate } from "../core/instant.ts";
import { counted, cutText, someNames } from "../core/plain-text.ts";
import { hashText } from "../core/stable-hash.ts";
import { hasLabels } from "../model/label.ts";
import type { Notice } from "../model/notice.ts";
import { showSubject } from "../model/pause.ts";
import { type AttentionItem, mustBeActedOn, readAttention } from "./attention.ts";
import { plainEnd, plainHealths, plainTime, troubleOf } from "./plain-troubles.ts";
import { countHealths, needsPerson, type PolicyLine } from "./policy-lines.ts";
import type { QueryContext } from "./query-context.ts";
import { type Report, readReport, reportCounts, showSpan } from "./report.ts";

/** What a digest is about. */
export interface DigestQuestion extends Pick<DigestSettings, "timezone" | "label" | "by"> {
  /** Days since this one count, today too; yesterday at the latest. */
  readonly sinceMs: number;
  readonly nowMs: number;
}

/** A digest in words. */
export interface Digest {
  readonly title: string;
  readonly detail: string;
  readonly lines: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
  readonly first: string;
  readonly last: string;
}

const needsMax = 25;
const groupsMax = 50;
const partsMax = 10;
const lineCharactersMax = 400;
const titleCharactersMax = 300;
/** Keeps a notice under 16 KiB. */
const bytesMax = 13_000;

/** Reads a digest. */
export async function readDigest(
  context: Pick<QueryContext, "set" | "store" | "target">,
  question: DigestQuestion,
): Promise<Digest> {
  const { timezone, label, nowMs, sinceMs, by } = question;
  const set = labelledSet(context.set, label);
  const { policies } = set;
  const last = localDate(nowMs, timezone);
  const [since, yesterday] = [localDate(sinceMs, timezone), dayAfter(last, -1)];
  const span = { first: since < yesterday ? since : yesterday, last };
  const attention = await readAttention({ ...context, set });
  const report = await readReport(context.store, { policies, withRemoved: false, span, today: last });
  // Of some policies, only what concerns them: sinks and processes are others' care.
  const items = attention.items.filter(({ about }) => label === "" || about === "policy" || about === "service");
  const troubles = items.map((item) => {
    const text = troubleOf(item, attention.status.services, question);
    return `${cutText(text, lineCharactersMax)}${linkOf(item, set, nowMs)}`;
  });
  const lines = [
    ...firstOf(troubles, needsMax, "more of this kind"),
    ...wellAgain(report, attention.lines),
    ...pausedLines(attention.lines, question),
    ...(by === undefined ? [] : groupLines(by, attention.lines, report)),
  ];
  return {
    title: titleOf(attention.lines, items, label),
    detail: `${showSpan(report.span)}: ${reportCounts(report, plainEnd)}. Times are those of ${timezone}`,
    lines: cutLines(lines),
    counts: Object.fromEntries(attention.counts),
    ...report.span,
  };
}

/** The id of a digest's notice. */
export function digestId(name: string, key: string): string {
  return `digest-${hashText(JSON.stringify([name, key]), 32)}`;
}

/** A digest as a notice. `key`: the same for the same digest, so that a repetition is seen. */
export function digestNotice(
  { title, lines, detail, counts, first, last }: Digest,
  { name, key, nowMs, dueMs, timezone }: DigestHead,
): Notice {
  const lateMs = dueMs === undefined ? 0 : nowMs - dueMs;
  const late =
    lateMs < lateFromMs
      ? ""
      : `, due ${plainTime(dueMs ?? nowMs, { timezone, nowMs })}, ${formatRoughly(lateMs, Math.round)} late`;
  return {
    ...{ v: 1, id: digestId(name, key), kind: "digest", orderKey: `digest:${name}` },
    ...{ at: new Date(nowMs).toISOString(), policy: null, service: null, timezone },
    title: cutText(`${title}${late}`, titleCharactersMax),
    data: {
      ...{ digest: name, detail, lines: [...lines], counts: { ...counts }, from: first, to: last },
      ...(dueMs === undefined ? {} : { slot: new Date(dueMs).toISOString() }),
    },
  };
}

/** Which digest, and when it was due; undefined: made by hand. */
interface DigestHead extends Pick<DigestSettings, "name" | "timezone"> {
  readonly key: string;
  readonly nowMs: number;
  readonly dueMs: number | undefined;
}

/** A notifier looks every five seconds: below this, a digest is in time. */
const lateFromMs = 120_000;

function labelledSet(set: PolicySet, label: string): PolicySet {
  if (label === "") return set;
  const policies = set.policies.filter((policy) => hasLabels(policy, label));
  const used = new Set(policies.map(({ service }) => service));
  return { ...set, policies, services: new Map([...set.services].filter(([name]) => used.has(name))) };
}

/** `Not fine, 2 need a person: 1 failed, 1 late, 9 well of 11 policies`. */
function titleOf(lines: readonly PolicyLine[], items: readonly AttentionItem[], label: string): string {
  const all = counted(lines.length, "policy", "policies");
  const fresh = items.filter(({ acknowledged }) => acknowledged === undefined);
  const unusual = fresh.filter(({ state }) => state === "unusual").length;
  const needy = fresh.filter(mustBeActedOn).length;
  const isBad = needy > 0 || fresh.some(({ state, heals }) => heals && state !== "throttled");
  const isWell = items.length === 0 && lines.every(({ health }) => health === "ok");
  const worst = needy === 0 ? "Not fine" : `Not fine, ${needy === 1 ? "1 needs" : `${needy} need`} a person`;
  const verdict = isBad ? worst : fresh.length < items.length ? "Nothing new is wrong" : "No trouble";
  const down = items.flatMap(({ about, state, name }) => (about === "service" && state === "down" ? [name] : []));
  const costly = items.filter(({ state }) => state === "costly").length;
  const others = items.filter(({ about }) => about !== "policy").length - down.length - costly;
  const downNames = someNames(down, undefined, 3);
  const isTold = lines.some(({ health }) => health === "service-down");
  const words = { ...plainHealths, "service-down": `waiting for ${downNames} (down)` };
  const counts = `${countHealths(lines, words)}${unusual === 0 ? "" : `, ${unusual} unusual`}`;
  const parts = [
    lines.length === 0 ? "No policy" : isWell ? `All well: ${all}` : `${verdict}: ${counts} of ${all}`,
    ...(down.length === 0 || isTold ? [] : [`${downNames} down`]),
    ...(costly === 0 ? [] : [counted(costly, "costly list")]),
    ...(others === 0 ? [] : [counted(others, "other trouble")]),
  ];
  return `${parts.join(", ")}${label === "" ? "" : ` (${label})`}`;
}

/** Where the policy of an item is shown, if `notifications.link` leads to policies. */
function linkOf(
  { about, name, sinceMs }: AttentionItem,
  { policies, notifications }: PolicySet,
  nowMs: number,
): string {
  const { link = "" } = notifications;
  if (about !== "policy" || !link.includes("{policy}")) return "";
  const service = policies.find((policy) => policy.name === name)?.service ?? null;
  const at = new Date(sinceMs ?? nowMs).toISOString();
  return ` ${fillLink(link, { policy: name, service, kind: "digest", at }) ?? ""}`;
}

/** Policies that had a bad end or a missed slot, and are well now. */
function wellAgain({ policies }: Report, lines: readonly PolicyLine[]): string[] {
  const well = new Set(lines.flatMap(({ policy, health }) => (health === "ok" ? [policy.name] : [])));
  const rows = policies.filter(({ policy, now }) => now.bad + now.missed > 0 && well.has(policy));
  if (rows.length === 0) return [];
  const named = rows.map(({ policy, now }) => `${policy} (${now.bad + now.missed})`);
  return [`had trouble, and well again now: ${someNames(named)}`];
}

/** What people have paused: of no use to those who wait for it, however well it is. */
function pausedLines(lines: readonly PolicyLine[], clock: DigestQuestion): string[] {
  const pauses = lines.flatMap(({ pauses }) => pauses).filter(({ cause }) => cause === undefined);
  const texts = [...new Map(pauses.map((one) => [showSubject(one), one]))].map(
    ([subject, { sinceMs, untilMs, actor, note }]) => {
      const until = untilMs === null ? "until a person resumes it" : `until ${plainTime(untilMs, clock)}`;
      return `${subject}: paused since ${plainTime(sinceMs, clock)}, ${until}, by ${actor}: ${note}`;
    },
  );
  return firstOf(texts, partsMax, "more pauses");
}

/** One line for each value of a label, the worst first. */
function groupLines(by: string, lines: readonly PolicyLine[], { policies }: Report): string[] {
  const rows = new Map(policies.map((row) => [row.policy, row.now]));
  const groups = [...Map.groupBy(lines, ({ policy }) => policy.labels?.[by] ?? "")].map(([value, own]) => {
    const now = own.flatMap(({ policy }) => rows.get(policy.name) ?? []);
    const sum = (key: "ended" | "good" | "bad" | "missed") => now.reduce((total, sums) => total + sums[key], 0);
    const needy = own.filter(({ health }) => needsPerson[health]).length;
    const missed = sum("missed") === 0 ? "" : `, ${sum("missed")} missed`;
    const text = `${by}=${value || "(none)"}: ${counted(own.length, "policy", "policies")} (${countHealths(own, plainHealths)}); ${sum("ended")} ended, ${sum("good")} good, ${sum("bad")} bad${missed}`;
    return { text, needy, bad: sum("bad") + sum("missed") };
  });
  const sorted = groups.toSorted((a, b) => b.needy - a.needy || b.bad - a.bad || (a.text < b.text ? -1 : 1));
  const texts = sorted.map(({ text }) => text);
  return firstOf(texts, groupsMax, "more groups");
}

/** The first lines, and how many are left out. */
function firstOf(lines: readonly string[], most: number, what: string): string[] {
  return lines.length <= most ? [...lines] : [...lines.slice(0, most), `and ${lines.length - most} ${what}`];
}

function cutLines(lines: readonly string[]): string[] {
  const shown: string[] = [];
  let bytes = 0;
  for (const [index, line] of lines.entries()) {
    // A link stands behind the limit of a line: cut, it leads nowhere.
    const text = cutText(line, 2 * lineCharactersMax);
    bytes += Buffer.byteLength(text);
    if (bytes > bytesMax) return [...shown, `and ${lines.length - index} more lines`];
    shown.push(text);
  }
  return shown;
}
