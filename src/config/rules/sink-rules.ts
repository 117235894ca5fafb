// The rules for sinks: a webhook's URL, keys that go together, and the hosts that `outbound`
// allows, also for heartbeats. Opens no file and no socket. Called by policy-rules.ts and
// cross-rules.ts.

import type { Problem } from "../problem.ts";
import { labelOf } from "../schema-problems.ts";
import type { YamlView } from "../yaml/view.ts";
import type { Path, YamlFile } from "../yaml/yaml-file.ts";
import { problemOfSecretUrl } from "./login-rules.ts";

/** The part of policy-rules.ts's Report that is used here. */
type Report = (path: Path, message: string, options?: { readonly hint?: string; readonly place?: "key" }) => void;

/** Reports the problems of one sink. */
export function checkSink(sink: YamlView, { report }: { readonly report: Report }): void {
  const webhook = sink.at("webhook");
  if (!webhook.isObject) return;
  const url = webhook.at("url");
  const problem = problemOfSecretUrl(url.text(), {
    example: "https://hooks.example.com/syncline",
    insteadOfCredentials: "receivers verify the signature",
    why: "notices name policies and what became of them",
    allowHttp: webhook.at("allowHttp").value === true,
  });
  if (problem !== undefined) report(url.path, `${labelOf(url.path)}: ${problem}`);
  const format = webhook.at("format").text() ?? "cloudevents";
  if (format === "cloudevents" && !webhook.at("secretFile").isPresent)
    report(webhook.path, "webhook needs secretFile: without a signature the receiver cannot tell who sent a notice", {
      place: "key",
      hint: "put whsec_ and 32 random bytes in base64 into a file",
    });
  if (webhook.at("previousSecretFile").isPresent && !webhook.at("secretFile").isPresent)
    report(webhook.at("previousSecretFile").path, "webhook.previousSecretFile needs secretFile", { place: "key" });
}

interface FileView {
  readonly file: YamlFile;
  readonly view: YamlView;
}

/** Webhooks and heartbeats on hosts that no `outbound.hosts` names; none without such a list. */
export function outside(files: readonly FileView[]): Problem[] {
  if (!files.some(({ view }) => view.at("outbound").isPresent)) return [];
  const allowed = files.flatMap(({ view }) =>
    view
      .at("outbound")
      .at("hosts")
      .items()
      .flatMap((host) => host.text() ?? []),
  );
  return files.flatMap(({ file, view }) =>
    calledUrls(view).flatMap(({ who, url }) => {
      const text = url.text();
      if (text === undefined || !URL.canParse(text)) return [];
      const { hostname } = new URL(text);
      if (allowed.some((pattern) => isAllowedHost(hostname, pattern))) return [];
      const hint = "add the host to outbound.hosts, or name another one here";
      return [file.problemAt(url.path, `${who} a host that outbound.hosts does not name`, { hint })];
    }),
  );
}

/**
 * The URLs that sinks and heartbeats call. Services and token endpoints are not limited by
 * `outbound`.
 */
function calledUrls(view: YamlView): { readonly who: string; readonly url: YamlView }[] {
  const sinks = view.at("sinks").entries();
  const policies = view.at("policies").items();
  return [
    ...sinks.map(([name, sink]) => ({ who: `sink "${name}" sends to`, url: sink.at("webhook").at("url") })),
    ...policies.map((policy) => ({
      who: `the heartbeat of policy "${policy.at("name").text() ?? ""}" asks`,
      url: policy.at("heartbeat").at("url"),
    })),
  ];
}

/**
 * Whether a host is the one named, or lies below the domain after `*.`. Both in lower case, as URLs
 * have them.
 */
export function isAllowedHost(hostname: string, pattern: string): boolean {
  const host = hostname.replace(/\.$/, "");
  return pattern.startsWith("*.") ? host.endsWith(pattern.slice(1)) : host === pattern;
}
