// The checks of `syncline doctor` about sinks, heartbeats and identity providers: reachable,
// secrets readable, files writable. They only open and close connections. ../sinks.ts calls one
// before a trial.

import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { dirname } from "node:path";
import { parseAuthFile } from "../../config/auth-file.ts";
import type { FileSinkSettings, PolicySet, SinkSettings, WebhookSettings } from "../../config/policy-set.ts";
import type { Variables } from "../../config/settings.ts";
import { fewAtATime } from "../../core/batcher.ts";
import { systemClock } from "../../core/clock.ts";
import { errorCode, errorText } from "../../core/errors.ts";
import { silentLog } from "../../core/event-log.ts";
import { tryEmail } from "../../notify/email.ts";
import { readSigningKeys } from "../../notify/webhook.ts";
import { reachHost } from "../../service/ping.ts";
import { type Finding, findingFor, stageOf } from "./finding.ts";

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
  const note = async (look: (typeof looks)[number], index: number) => {
    found[index] = await look();
  };
  await fewAtATime(looks, atOnce, note, signal);
  if (heartbeats.size <= heartbeatsMax) return found.flat();
  const cut = `only ${heartbeatsMax} of ${heartbeats.size} hosts were tried`;
  const cure = "try the others with --config on a part of the files";
  return [...found.flat(), findingFor("sinks", "heartbeats").warning(cut, cure)];
}

/** Looks whether a sink could take a notice: its host, secret, or file. */
export async function checkSink({ name, to }: SinkSettings, signal: AbortSignal): Promise<readonly Finding[]> {
  const { ok, problem } = findingFor("sinks", name);
  if (to.kind === "email") {
    const failure = await tryEmail(to);
    if (failure === undefined) return [ok(`${to.host}:${to.port} lets Syncline in; nothing was sent`)];
    return [problem(`${to.host}:${to.port}: ${failure}`, "check the keys of email, and the way to the server")];
  }
  const problems = to.kind === "file" ? await checkFile(name, to) : await checkWebhook(name, to, signal);
  if (problems.length > 0) return problems;
  const what =
    to.kind === "file" ? `${to.path} can be written` : `${new URL(to.url).host} can be reached; nothing was sent`;
  return [ok(what)];
}

async function checkWebhook(subject: string, to: WebhookSettings, signal: AbortSignal): Promise<Finding[]> {
  const { problem } = findingFor("sinks", subject);
  const findings: Finding[] = [];
  const keys = await readSigningKeys(to);
  if ("reason" in keys)
    findings.push(problem(keys.reason, "mount the secret that holds it (docs/notifications.md says how to make one)"));
  const failure = await connect(to.url, signal);
  const cure = "check url, that the receiver runs, and that a firewall or networkPolicy.sinksTo lets it through";
  if (failure !== undefined) findings.push(problem(failure, cure));
  return findings;
}

async function checkHeartbeat(group: readonly { readonly name: string; readonly url: string }[], signal: AbortSignal) {
  const [first = { name: "", url: "" }, ...more] = group;
  const { ok, problem } = findingFor("sinks", more.length === 0 ? first.name : `${first.name} and ${more.length} more`);
  const failure = await connect(first.url, signal);
  if (failure === undefined)
    return [ok(`the host of its heartbeat, ${new URL(first.url).host}, can be reached; nothing was sent`)];
  const cure = "check heartbeat.url, and that a firewall or networkPolicy.sinksTo lets it through";
  return [problem(`heartbeat: ${failure}`, cure)];
}

/** What is wrong on the way to a URL's host. The rest of the URL may be a secret. */
async function connect(url: string, signal: AbortSignal): Promise<string | undefined> {
  const failure = await reachHost(url, signal);
  if (failure === undefined) return undefined;
  const hint = failure.hint === undefined ? "" : `: ${failure.hint}`;
  return `${stageOf(failure.code)} failed at ${new URL(url).host} (${failure.code})${hint}`;
}

async function checkFile(subject: string, { path }: FileSinkSettings): Promise<Finding[]> {
  const { problem } = findingFor("sinks", subject);
  const folder = dirname(path);
  const cure = "let path be in a folder that exists and that this user may write to; in the chart: sinks.volume";
  const ofFolder = await codeOf(access(folder, constants.W_OK | constants.X_OK));
  if (ofFolder !== undefined) return [problem(`the folder ${folder} cannot be written (${ofFolder})`, cure)];
  const ofFile = await codeOf(access(path, constants.R_OK | constants.W_OK));
  if (ofFile === undefined || ofFile === "ENOENT") return [];
  return [problem(`${path} cannot be written (${ofFile})`, "give the file to this user, or remove it")];
}

async function codeOf(work: Promise<void>): Promise<string | undefined> {
  return work.then(
    () => undefined,
    (error: unknown) => errorCode(error, "unreadable"),
  );
}

/** Checks what a --web-auth file needs. @throws UsageError when the file cannot be used. */
export async function checkSignIn(path: string, variables: Variables): Promise<readonly Finding[]> {
  const { authFile } = await import("../../app/create-web.ts");
  const file = authFile(path, variables);
  const { jwt, oidc, caFile } = parseAuthFile(path, await file.read(), variables);
  const { Issuer } = await import("../../web/issuer.ts");
  const fetch = file.createFetch(caFile);
  const look = async (url: string, keysUrl?: string): Promise<Finding> => {
    const { ok, problem } = findingFor("sign-in", url);
    let why = "";
    const warn = (_: string, fields: { readonly message?: unknown } = {}) => {
      why = String(fields.message);
    };
    const issuer = new Issuer(url, keysUrl, { fetch, clock: systemClock, log: { ...silentLog, warn } });
    const cure = "check issuer (and keysUrl, caFile) in the --web-auth file, and that this machine may reach it";
    return issuer.readKeys().then(
      () => ok("the identity provider names its addresses and keys"),
      () => problem(why, cure),
    );
  };
  const { clientSecretFile } = oidc ?? {};
  const secret = clientSecretFile === undefined ? [] : [checkSecret(() => file.readSecret(clientSecretFile))];
  const isOther = jwt !== undefined && (jwt.issuer !== oidc?.issuer || jwt.keysUrl !== undefined);
  return Promise.all([
    ...(oidc === undefined ? [] : [look(oidc.issuer)]),
    ...(isOther ? [look(jwt.issuer, jwt.keysUrl)] : []),
    ...secret,
  ]);
}

async function checkSecret(read: () => Promise<string>): Promise<Finding> {
  const { ok, problem } = findingFor("sign-in");
  return read().then(
    () => ok("the client's secret can be read"),
    (error: unknown) => problem(errorText(error), "mount the secret that holds it"),
  );
}
