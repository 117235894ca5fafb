// The checks of `syncline doctor` about sinks and heartbeats: receivers reachable, secrets
// readable, files writable, nothing stuck. Sends nothing: it only opens and closes connections.
// Loading checks `outbound.hosts`. Called by doctor-command.ts.
import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { dirname } from "node:path";
import type { FileSinkSettings, PolicySet, SinkSettings, WebhookSettings } from "../../config/policy-set.ts";
import { formatDuration } from "../../core/duration.ts";
import { readSigningKeys } from "../../notify/webhook.ts";
import { reachHost } from "../../service/reach.ts";
import { isStuck, type SinkState } from "../sink-states.ts";
import { stageOf } from "./failure-words.ts";
import { type Finding, withinLines } from "./finding.ts";

const atOnce = 4;
const heartbeatsMax = 50;

/** Checks each sink, and each host of a heartbeat. */
export async function checkSinks(
  { sinks, policies }: Pick<PolicySet, "sinks" | "policies">,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const heartbeats = Map.groupBy(
    policies.flatMap(({ name, heartbeat }) => (heartbeat === undefined ? [] : [{ name, url: heartbeat.url }])),
    ({ url }) => new URL(url).origin,
  );
  const looks = [
    ...[...sinks.values()].map((sink) => () => checkSink(sink, signal)),
    ...[...heartbeats.values()].slice(0, heartbeatsMax).map((group) => () => checkHeartbeat(group, signal)),
  ];
  const found: (readonly Finding[])[] = looks.map(() => []);
  const left = [...looks.entries()];
  const workOff = async () => {
    for (let next = left.shift(); next !== undefined && !signal.aborted; next = left.shift())
      found[next[0]] = await next[1]();
  };
  await Promise.all(Array.from({ length: atOnce }, workOff));
  return found.flat();
}

/** What waits and what failed, of sinks that a worker has run. */
export function judgeSinkStates(states: readonly SinkState[], nowMs: number): readonly Finding[] {
  return states.flatMap((state): Finding[] => {
    const { sink, waiting, failed, dropped, oldestMs } = state;
    const found = { check: "sinks", subject: sink, level: "warning" } as const;
    const findings: Finding[] = [];
    if (isStuck(state, nowMs))
      findings.push({
        ...found,
        what: `${waiting} notices wait, the first for ${formatDuration(Math.floor((nowMs - (oldestMs ?? nowMs)) / 60_000) * 60_000)}`,
        cure: "the log says why: sink.failing; docs/runbooks/sink-stuck.md",
      });
    if (failed > 0)
      findings.push({
        ...found,
        what: `${failed} notices are in its failed list${dropped > 0 ? `, ${dropped} were dropped` : ""}`,
        cure: `\`syncline failed list\` shows them, \`syncline failed replay --sink ${sink}\` sends them again`,
      });
    return findings;
  });
}

async function checkSink({ name, to }: SinkSettings, signal: AbortSignal): Promise<readonly Finding[]> {
  const problems = to.kind === "file" ? await checkFile(name, to) : await checkWebhook(name, to, signal);
  if (problems.length > 0) return problems;
  const what =
    to.kind === "file" ? `${to.path} can be written` : `${new URL(to.url).host} can be reached; nothing was sent`;
  return [{ check: "sinks", subject: name, level: "ok", what }];
}

async function checkWebhook(subject: string, to: WebhookSettings, signal: AbortSignal): Promise<Finding[]> {
  const found = { check: "sinks", subject, level: "problem" } as const;
  const findings: Finding[] = [];
  const keys = await readSigningKeys(to);
  if ("reason" in keys)
    findings.push({
      ...found,
      what: keys.reason,
      cure: "mount the secret that holds it (docs/notifications.md says how to make one)",
    });
  const failure = await connect(to.url, signal);
  if (failure !== undefined)
    findings.push({
      ...found,
      what: failure,
      cure: "check url, that the receiver runs, and that a firewall or networkPolicy.sinksTo lets it through",
    });
  return findings;
}

async function checkHeartbeat(group: readonly { readonly name: string; readonly url: string }[], signal: AbortSignal) {
  const [first = { name: "", url: "" }, ...more] = group;
  const subject = more.length === 0 ? first.name : `${first.name} and ${more.length} more`;
  const failure = await connect(first.url, signal);
  if (failure === undefined) {
    const what = `the host of its heartbeat, ${new URL(first.url).host}, can be reached; nothing was sent`;
    return withinLines([{ check: "sinks", subject, level: "ok", what }]);
  }
  const cure = "check heartbeat.url, and that a firewall or networkPolicy.sinksTo lets it through";
  return withinLines([{ check: "sinks", subject, level: "problem", what: `heartbeat: ${failure}`, cure }]);
}

/**
 * What is wrong on the way to a URL's host. Only the host is named, since the rest may be a secret.
 */
async function connect(url: string, signal: AbortSignal): Promise<string | undefined> {
  const failure = await reachHost(url, signal);
  if (failure === undefined) return undefined;
  const hint = failure.hint === undefined ? "" : `: ${failure.hint}`;
  return `${stageOf(failure.code)} failed at ${new URL(url).host} (${failure.code})${hint}`;
}

async function checkFile(subject: string, { path }: FileSinkSettings): Promise<Finding[]> {
  const found = { check: "sinks", subject, level: "problem" } as const;
  const folder = dirname(path);
  const cure = "let path be in a folder that exists and that this user may write to; in the chart: sinks.volume";
  const ofFolder = await codeOf(access(folder, constants.W_OK | constants.X_OK));
  if (ofFolder !== undefined) return [{ ...found, what: `the folder ${folder} cannot be written (${ofFolder})`, cure }];
  const ofFile = await codeOf(access(path, constants.R_OK | constants.W_OK));
  if (ofFile === undefined || ofFile === "ENOENT") return [];
  return [
    { ...found, what: `${path} cannot be written (${ofFile})`, cure: "give the file to this user, or remove it" },
  ];
}

async function codeOf(work: Promise<void>): Promise<string | undefined> {
  return work.then(
    () => undefined,
    (error: unknown) => (error instanceof Error && "code" in error ? String(error.code) : "unreadable"),
  );
}
