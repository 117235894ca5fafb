// The rules for URLs and certificates of services: what a URL may hold, and which TLS keys go
// together. Opens no file, since policies are also checked where the secrets are not. Called by
// policy-rules.ts.

import type { YamlView } from "../yaml/view.ts";
import type { Path } from "../yaml/yaml-file.ts";

/** The part of policy-rules.ts's Report that is used here. */
type Report = (path: Path, message: string, options?: { readonly hint?: string; readonly place?: "key" }) => void;

/** What is wrong with a service's base URL; undefined when nothing is. Never quotes it. */
export function problemOfUrl(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  if (!URL.canParse(text)) return "this is no URL, such as https://sync.example.com";
  const url = new URL(text);
  if (url.protocol !== "https:" && url.protocol !== "http:") return "must start with https:// or http://";
  if (url.username !== "" || url.password !== "") return "must not hold credentials: use token";
  if (/[?#]/.test(text)) return "must not have a query or a fragment";
  return undefined;
}

/**
 * What is wrong with a token URL; undefined when nothing is. Never quotes it: a query may hold a
 * secret.
 */
export function problemOfTokenUrl(text: string | undefined, allowHttp: boolean): string | undefined {
  return problemOfSecretUrl(text, {
    example: "https://login.example.com/oauth2/token",
    insteadOfCredentials: "use clientId and clientSecretFile",
    why: "the client's secret goes there",
    allowHttp,
  });
}

/** The words for a URL that gets a secret. */
interface SecretUrlWords {
  readonly example: string;
  readonly insteadOfCredentials: string;
  /** Why it has to be https. */
  readonly why: string;
  readonly allowHttp: boolean;
}

/**
 * What is wrong with a URL that must be https, or http to this machine; undefined when nothing is.
 * Never quotes it: it may hold a secret.
 */
export function problemOfSecretUrl(text: string | undefined, words: SecretUrlWords): string | undefined {
  if (text === undefined) return undefined;
  if (!URL.canParse(text)) return `this is no URL, such as ${words.example}`;
  const url = new URL(text);
  if (url.username !== "" || url.password !== "") return `must not hold credentials: ${words.insteadOfCredentials}`;
  if (text.includes("#")) return "must not have a fragment";
  const isHere = url.hostname === "localhost" || url.hostname === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(url.hostname);
  if (url.protocol === "https:" || (url.protocol === "http:" && (isHere || words.allowHttp))) return undefined;
  return `must start with https://, for ${words.why} (allowHttp: true lets it go over http)`;
}

/** Reports TLS keys that do not go together, or with the service's address. */
export function checkTls(service: YamlView, { report }: { readonly report: Report }): void {
  const tls = service.at("tls");
  if (!tls.isObject) return;
  const has = (key: string) => tls.at(key).isPresent;
  const needs = (key: string, other: string) => {
    if (has(key) && !has(other)) report(tls.at(key).path, `tls.${key} needs ${other}`, { place: "key" });
  };
  if (tls.entries().length === 0) report(tls.path, "tls is empty: name caFile, or certFile and keyFile, or remove it");
  needs("certFile", "keyFile");
  needs("keyFile", "certFile");
  needs("keyPassphraseFile", "keyFile");
  const baseUrl = service.at("baseUrl").text();
  if (baseUrl !== undefined && /^http:/i.test(baseUrl)) {
    const hint = "use https, or remove tls";
    report(tls.path, "tls does nothing here: baseUrl is http", { place: "key", hint });
  }
}
