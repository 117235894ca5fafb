// How a service is logged in to, from the file as written: token and certificates, with absolute paths. Called by normalise.ts.
import { dirname, resolve } from "node:path";
import { policyDefaults } from "./defaults.ts";
import type { TlsSettings, TokenSource } from "./policy-set.ts";
import type { ServiceInput } from "./schema/service.ts";

/** Where the token is. `file` is the policy file that paths are relative to. */
export function toToken(token: ServiceInput["token"], file: string): TokenSource {
  const at = pathIn(file);
  if (token.file !== undefined) return { kind: "file", path: at(token.file) };
  if (token.env !== undefined) return { kind: "env", variable: token.env };
  if (token.oauth2 === undefined) throw new Error("a token without file, env and oauth2 passed the checks");
  const { tokenUrl, clientId, clientSecretFile, scope, auth, allowHttp } = token.oauth2;
  return {
    kind: "oauth2",
    tokenUrl,
    clientId,
    clientSecretFile: at(clientSecretFile),
    scope,
    auth: auth ?? policyDefaults.tokenAuth,
    allowHttp: allowHttp ?? policyDefaults.tokenAllowHttp,
  };
}

/** The certificates, if any are named. */
export function toTls(tls: ServiceInput["tls"], file: string): TlsSettings | undefined {
  if (tls === undefined) return undefined;
  const at = pathIn(file);
  const path = (name: string | undefined) => (name === undefined ? undefined : at(name));
  return {
    caFile: path(tls.caFile),
    certFile: path(tls.certFile),
    keyFile: path(tls.keyFile),
    keyPassphraseFile: path(tls.keyPassphraseFile),
    serverName: tls.serverName,
  };
}

function pathIn(file: string): (path: string) => string {
  return (path) => resolve(dirname(file), path);
}
