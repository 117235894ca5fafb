// The rules for services, sinks and `notifications`: what a URL may hold, and which keys go
// together. Opens no file and no socket: policies are also checked where the secrets are not.
import { isLoopback } from "../../core/loopback.ts";
import { dailyCron } from "../policy-set.ts";
import type { Path, ReportProblem } from "../problem.ts";
import type { PolicyFileDraft } from "../schema/policy-file.ts";
import { labelOf } from "../schema-problems.ts";
import { exactlyOne, problemOfUrl, type RuleContext } from "./policy-rules.ts";

type ServiceDraft = NonNullable<PolicyFileDraft["services"]>[string];
type SinkDraft = NonNullable<PolicyFileDraft["sinks"]>[string];

/** Applies the rules to one service. */
export function checkService(service: ServiceDraft, path: Path, { checks, report }: RuleContext): void {
  const { baseUrl, token, mapping = {} } = service;
  if (baseUrl !== undefined) reportAt(problemOfBaseUrl(baseUrl), [...path, "baseUrl"], report);
  if (token !== undefined) exactlyOne(token, ["file", "env", "oauth2"], [...path, "token"], report);
  if (token?.oauth2 !== undefined) {
    const problem = problemOfSecretUrl(token.oauth2.tokenUrl, {
      example: "https://login.example.com/oauth2/token",
      insteadOfCredentials: "use clientId and clientSecretFile",
      why: "the client's secret goes there",
      allowHttp: token.oauth2.allowHttp === true,
    });
    reportAt(problem, [...path, "token", "oauth2", "tokenUrl"], report);
  }
  checkTls(service, path, report);
  for (const [kind, { sample: _, ...texts }] of Object.entries<Record<string, unknown>>(mapping)) {
    for (const [key, text] of Object.entries(texts)) {
      const problem = typeof text === "string" ? checks.expression(text, "item") : undefined;
      reportAt(problem, [...path, "mapping", kind, key], report);
    }
  }
}

function reportAt(problem: string | undefined, path: Path, report: ReportProblem): void {
  if (problem !== undefined) report(path, `${labelOf(path)}: ${problem}`);
}

function problemOfBaseUrl(text: string): string | undefined {
  const problem = problemOfUrl(text, "https://sync.example.com", ": use token");
  return problem ?? (/[?#]/.test(text) ? "must not have a query or a fragment" : undefined);
}

/** The words for a URL that gets a secret. `why`: why it has to be https. */
interface SecretUrlWords {
  readonly example: string;
  readonly insteadOfCredentials: string;
  readonly why: string;
  readonly allowHttp: boolean;
}

/** What is wrong with a URL that must be https, or http to this machine. Never quotes it. */
function problemOfSecretUrl(text: string, words: SecretUrlWords): string | undefined {
  const problem = problemOfUrl(text, words.example, `: ${words.insteadOfCredentials}`);
  if (problem !== undefined) return problem;
  if (text.includes("#")) return "must not have a fragment";
  const { protocol, hostname } = new URL(text);
  if (protocol === "https:" || isLoopback(hostname) || words.allowHttp) return undefined;
  return `must start with https://, for ${words.why} (allowHttp: true lets it go over http)`;
}

function checkTls({ tls, baseUrl = "" }: ServiceDraft, path: Path, report: ReportProblem): void {
  if (tls === undefined) return;
  const at = [...path, "tls"];
  const needs = (key: keyof typeof tls, other: keyof typeof tls) => {
    if (tls[key] !== undefined && tls[other] === undefined)
      report([...at, key], `tls.${key} needs ${other}`, { place: "key" });
  };
  if (Object.keys(tls).length === 0) report(at, "tls is empty: name caFile, or certFile and keyFile, or remove it");
  needs("certFile", "keyFile");
  needs("keyFile", "certFile");
  needs("keyPassphraseFile", "keyFile");
  if (!/^http:/i.test(baseUrl)) return;
  report(at, "tls does nothing here: baseUrl is http", { place: "key", hint: "use https, or remove tls" });
}

/** Applies the rules to one sink. */
export function checkSink(sink: SinkDraft, path: Path, report: ReportProblem): void {
  exactlyOne(sink, ["webhook", "file", "email"], path, report);
  const { webhook, email } = sink;
  for (const [key, other] of [
    ["user", "passwordFile"],
    ["passwordFile", "user"],
  ] as const) {
    if (email?.[key] !== undefined && email[other] === undefined)
      report([...path, "email", key], `email.${key} needs ${other}`, { place: "key" });
  }
  if (webhook === undefined) return;
  const at = [...path, "webhook"];
  const problem = problemOfSecretUrl(webhook.url, {
    example: "https://hooks.example.com/syncline",
    insteadOfCredentials: "receivers verify the signature",
    why: "notices name policies and what became of them",
    allowHttp: webhook.allowHttp === true,
  });
  reportAt(problem, [...at, "url"], report);
  if (webhook.secretFile !== undefined) return;
  if ((webhook.format ?? "cloudevents") === "cloudevents")
    report(at, "webhook needs secretFile: without a signature the receiver cannot tell who sent a notice", {
      place: "key",
      hint: "put whsec_ and 32 random bytes in base64 into a file",
    });
  if (webhook.previousSecretFile !== undefined)
    report([...at, "previousSecretFile"], "webhook.previousSecretFile needs secretFile", { place: "key" });
}

/** Reports mute timing without a length, and weekdays of digests that are none. */
export function checkNotifications(
  { muteTiming, digests = {} }: NonNullable<PolicyFileDraft["notifications"]>,
  { checks, report }: RuleContext,
): void {
  for (const [name, { on }] of Object.entries(digests)) {
    const problem = checks.cron(dailyCron("00:00", on), "UTC");
    reportAt(problem, ["notifications", "digests", name, "on"], report);
  }
  if (muteTiming === undefined || muteTiming.from !== muteTiming.to) return;
  const hint = "remove muteTiming, or set `to` to the time when muting ends";
  report(["notifications", "muteTiming", "to"], "notifications.muteTiming: from and to are the same time", { hint });
}
