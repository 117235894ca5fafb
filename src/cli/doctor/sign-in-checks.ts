// The checks of `syncline doctor` about signing in: the --web-auth file, the client's secret, and
// whether each identity provider names its addresses and keys. Called by doctor-command.ts.
import { authFile } from "../../app/create-web.ts";
import { parseAuthFile } from "../../config/auth-file.ts";
import type { Variables } from "../../config/yaml/yaml-file.ts";
import { systemClock } from "../../core/clock.ts";
import { errorText } from "../../core/errors.ts";
import { silentLog } from "../../core/event-log.ts";
import { type Finding, findingsOf } from "./finding.ts";

/** Checks what a --web-auth file needs. @throws UsageError when the file cannot be used. */
export async function checkSignIn(path: string, variables: Variables): Promise<readonly Finding[]> {
  const file = authFile(path, variables);
  const { jwt, oidc, caFile } = parseAuthFile(path, await file.read(), variables);
  const { Issuer } = await import("../../web/issuer.ts");
  const fetch = file.createFetch(caFile);
  const look = async (url: string, keysUrl?: string): Promise<Finding> => {
    const { ok, problem } = findingsOf("sign-in", url);
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
  const { ok, problem } = findingsOf("sign-in");
  return read().then(
    () => ok("the client's secret can be read"),
    (error: unknown) => problem(errorText(error), "mount the secret that holds it"),
  );
}
