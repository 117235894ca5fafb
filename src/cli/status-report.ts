// What `syncline status` prints: a line a policy, then services, processes and their policies,
// lists and sinks; or all of it as JSON. Pure.
import { formatRoughly } from "../core/duration.ts";
import { showInstant, showNear, toIso } from "../core/instant.ts";
import { counted } from "../core/plain-text.ts";
import { isGood, weightOf } from "../model/outcome.ts";
import {
  countHealths,
  type DetailedLine,
  needsPerson,
  noteOf,
  type PolicyLine,
  shortSchedule,
  toAcknowledged,
} from "../queries/policy-lines.ts";
import { shortHash } from "../queries/policy-set.ts";
import {
  describeBreaker,
  describeMissingRoles,
  describeThrottle,
  knownInFlight,
  showFeed,
  showPresence,
} from "../queries/service-words.ts";
import { describeDigest, hasFailed, type SinkState } from "../queries/sinks.ts";
import { describeRejected, type RunningConfig, type Status, type TroubledFeed } from "../queries/status.ts";
import { foreignOwner } from "../store/redis.ts";
import type { Screen } from "./command-io.ts";
import { alarming, paint, showStatus, toTable } from "./table.ts";

const feedsShownMax = 20;

/** What is known: the installation, all lines, and those to show with the slot of each. */
export interface FullStatus {
  readonly status: Status;
  readonly lines: readonly PolicyLine[];
  readonly shown: readonly DetailedLine[];
  readonly isWell: boolean;
}

/** The report for machines: everything. */
export function statusToJson({ status, lines, shown, isWell }: FullStatus): string {
  const { nowMs, services, sinks, digests, feeds, processes, owners, config, pauses } = status;
  const { kept, ...running } = config;
  return JSON.stringify({
    v: 1,
    at: toIso(nowMs),
    ok: isWell,
    counts: Object.fromEntries([...Map.groupBy(lines, ({ health }) => health)].map(([key, all]) => [key, all.length])),
    policies: shown.map((line) => lineToJson(line, nowMs)),
    services,
    processes,
    config: { kept: kept ?? null, ...running },
    quarantined: pauses.filter(({ cause }) => cause === "quarantine"),
    sinks,
    digests: digests.map(({ atMs, ...digest }) => ({ ...digest, at: toIso(atMs) })),
    feeds,
    owners,
  });
}

function lineToJson(line: DetailedLine, nowMs: number): object {
  const { policy, health, worst, usualMs, nextMs, pauses, slot, late, acknowledged, unusual, openCount } = line;
  const { name, service, labels = {}, timezone } = policy;
  return {
    policy: name,
    service,
    labels,
    owner: policy.owner ?? null,
    state: health,
    needsPerson: needsPerson[health],
    acknowledged: toAcknowledged(acknowledged),
    schedule: shortSchedule(policy),
    timezone,
    last: worst === undefined ? null : lastToJson(worst),
    usualMs: usualMs ?? null,
    unusual: unusual === undefined ? null : { target: unusual.target, findings: unusual.last.findings },
    next: toIso(nextMs),
    late: late === undefined ? null : { deadline: toIso(late.atMs), since: toIso(late.sinceMs), why: late.why },
    openConflicts: openCount ?? null,
    pauses,
    slot: slot === undefined ? null : { ...slot, slotMs: undefined, slot: toIso(slot.slotMs) },
    note: noteOf(line, nowMs),
  };
}

function lastToJson({
  target,
  last,
  weight,
  inARow,
  sinceMs,
  lastSuccessMs,
}: NonNullable<PolicyLine["worst"]>): object {
  const { slotMs, finishedMs, ...rest } = last;
  return {
    target,
    ...rest,
    slot: toIso(slotMs),
    finished: toIso(finishedMs),
    weight: weight === "success" ? "good" : (weight ?? null),
    inARow,
    since: toIso(sinceMs),
    lastGood: toIso(lastSuccessMs),
  };
}

/** The report for people, in blocks. */
export function statusToText({ status, lines, shown }: FullStatus, screen: Screen): string[] {
  const { nowMs, services, sinks, digests, feeds, processes, owners, config } = status;
  const blocks = [policiesToText(lines, shown, nowMs, screen), `\n${servicesTable(status, screen)}`];
  if (services.length === 0) blocks.pop();
  blocks.push(`\nalive: ${showPresence(processes)}`);
  blocks.push(...describeMissingRoles(processes).map((line) => alarming(line, screen.colours)));
  if (owners.others.length > 0)
    blocks.push(alarming(foreignOwner([owners.holder ?? "", ...owners.others]), screen.colours));
  blocks.push(configToText(config, screen));
  blocks.push(...config.rejected.map((one) => alarming(describeRejected(one, config), screen.colours)));
  if (feeds.length > 0) blocks.push(`\n${feedsTable(feeds, screen)}`);
  if (sinks.length > 0) blocks.push(`\n${sinksTable(sinks, screen)}`);
  for (const { sink, refused } of sinks)
    if (refused !== undefined)
      blocks.push(alarming(`${sink} did not take its last notice: ${refused.reason}`, screen.colours));
  if (digests.length > 0) blocks.push("");
  blocks.push(
    ...digests.map((one) => (hasFailed(one) ? alarming(describeDigest(one), screen.colours) : describeDigest(one))),
  );
  return blocks;
}

function policiesToText(
  lines: readonly PolicyLine[],
  shown: readonly DetailedLine[],
  nowMs: number,
  screen: Screen,
): string {
  const rows = shown.map((line) => toRow(line, nowMs, screen.colours));
  const isNoted = rows.some((row) => row.at(-1) !== "");
  const heading = ["state", "policy", "last", "ended", "next", "usual", "schedule", ...(isNoted ? ["note"] : [])];
  const more = lines.length - shown.length;
  return [
    `${counted(lines.length, "policy", "policies")}: ${countHealths(lines) || "none"}`,
    ...(rows.length === 0 ? [] : [toTable(heading, rows, screen, { leaveOut: ["schedule", "usual"] })]),
    ...(more > 0 ? [`and ${more} more, none of them worse: --limit shows more, --json all`] : []),
  ].join("\n");
}

function toRow(line: DetailedLine, nowMs: number, colours: boolean): string[] {
  const { policy, health, worst, usualMs, nextMs } = line;
  const state = paint(needsPerson[health] ? "red" : health === "ok" ? "green" : "gray", health, colours);
  const isOfRow = worst !== undefined && (worst.weight === "bad" || isGood[worst.last.status]);
  const isRow = isOfRow && worst.inARow > 1 && weightOf(worst.last) === worst.weight;
  const last = worst === undefined ? "" : `${showStatus(worst.last, colours)}${isRow ? ` ×${worst.inARow}` : ""}`;
  return [
    state,
    policy.name,
    last,
    worst === undefined ? "" : `${formatRoughly(Math.max(1_000, nowMs - worst.last.finishedMs), Math.floor)} ago`,
    nextMs === undefined ? "" : showNear(nextMs, policy.timezone, nowMs),
    usualMs === undefined ? "" : formatRoughly(usualMs, Math.round),
    shortSchedule(policy),
    [noteOf(line, nowMs), ...(needsPerson[health] && policy.owner !== undefined ? [`owner: ${policy.owner}`] : [])]
      .filter((text) => text !== "")
      .join("; "),
  ];
}

function servicesTable({ services, countedServices, nowMs }: Status, screen: Screen): string {
  const rows = services.map((one) => [
    one.service,
    describeBreaker(one, nowMs),
    describeThrottle(one, nowMs),
    `${knownInFlight(one, countedServices) ?? "not counted"}`,
  ]);
  return toTable(["service", "breaker", "throttles", "in flight"], rows, screen);
}

/** Which policies the processes run: one line while it is the same, else a table. */
function configToText({ kept, replicas, differs }: RunningConfig, screen: Screen): string {
  const [first] = replicas;
  if (first === undefined)
    return kept === undefined
      ? "config: no process has run policies here"
      : `config: ${shortHash(kept.hash)}, taken ${showInstant(kept.atMs)} by ${kept.by}; no process runs it now`;
  const newestMs = Math.max(...replicas.map(({ sinceMs }) => sinceMs));
  const path = first.path === null ? "" : `\n  from ${first.path}`;
  if (replicas.every(({ hash }) => hash === first.hash))
    return `config: ${shortHash(first.hash)}, in force on ${counted(replicas.length, "process", "processes")} since ${showInstant(newestMs)}${path}`;
  const rows = replicas.map((one) => [
    one.where,
    one.roles.join(", "),
    shortHash(one.hash),
    showInstant(one.sinceMs),
    one.rejected === null ? "" : "rejects newer files",
  ]);
  const line = "the processes run different policies";
  return [
    differs ? alarming(`${line} for more than 5 minutes: restart those that run old ones`, screen.colours) : line,
    toTable(["process", "roles", "config", "since", ""], rows, screen),
  ].join("\n");
}

function feedsTable(feeds: readonly TroubledFeed[], screen: Screen): string {
  const rows = feeds.slice(0, feedsShownMax).map(({ feed, what }) => [showFeed(feed), what]);
  const more = feeds.length > feedsShownMax ? `\nand ${feeds.length - feedsShownMax} more; --json has all of them` : "";
  return `${toTable(["list", "costs more than it needs, or is not read"], rows, screen)}${more}`;
}

function sinksTable(sinks: readonly SinkState[], screen: Screen): string {
  const rows = sinks.map((state) => [state.sink, ...backlogCells(state)]);
  return toTable(["sink", ...backlogHeading], rows, screen);
}

/** The columns of `backlogCells`. */
export const backlogHeading = ["waiting", "the first since", "failed", "dropped"];

/** What waits for a sink, and what it did not take. */
export function backlogCells({ waiting, oldestMs, failed, dropped }: SinkState): string[] {
  return [`${waiting}`, oldestMs === undefined ? "" : showInstant(oldestMs), `${failed}`, `${dropped}`];
}
