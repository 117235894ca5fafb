// Explains a failed exchange with a service to the person who installs Syncline: which step failed,
// and what to do. Pure.
import type { ServiceError } from "../../service/client.ts";
import type { Finding } from "./finding.ts";

/** The steps of connecting to a service. */
type Stage = "DNS" | "TCP" | "TLS";

const lookupCodes = /^(ENOTFOUND|EAI_|EDNS|ENODATA|ESERVFAIL|ETIMEDOUT \(lookup\))/;
const socketCodes = /^(ECONN|EHOST|ENET|EADDR|EPIPE|ETIMEDOUT)/;

const stageCure: Readonly<Record<Stage, string>> = {
  DNS: "check the host in baseUrl, and that this pod or machine may ask DNS",
  TCP: "check host and port in baseUrl, that the service runs, and that a firewall or NetworkPolicy lets it through",
  TLS: "check tls.caFile, the service's certificate and tls.serverName; docs/security.md",
};

/** The step that failed, by the code of an error of kind `unreachable`. */
export function stageOf(code: string): Stage {
  if (lookupCodes.test(code)) return "DNS";
  if (/secureConnect/.test(code)) return "TLS";
  return socketCodes.test(code) ? "TCP" : "TLS";
}

/** The finding for a failed first exchange with a service. */
export function tellFailure(subject: string, error: ServiceError): Finding {
  const { kind, code, status } = error;
  const finding = { subject, level: "problem", what: shortOf(error) } as const;
  if (kind === "unreachable" && code !== undefined) {
    const stage = stageOf(code);
    return { ...finding, check: "service", what: `${stage} failed: ${shortOf(error)}`, cure: stageCure[stage] };
  }
  if (kind === "unreachable" || kind === "unauthorized" || kind === "forbidden") {
    const cure =
      status === undefined
        ? "check where the token comes from (services.*.token), and that this process may read it"
        : "the token was sent and refused: has it expired, and is it one for this service and repository?";
    return { ...finding, check: "token", cure };
  }
  if (kind === "cancelled")
    return { ...finding, check: "service", what: "it did not answer in time", cure: "take longer with --within" };
  if (kind === "server" || kind === "unknown" || kind === "throttled")
    return { ...finding, check: "service", cure: "it answers, but not as documented: ask its operators" };
  return {
    ...finding,
    check: "service",
    cure: "is baseUrl the root of a Synchronization Management Service, and the repository right?",
  };
}

/** What happened, without the name of the operation. */
export function shortOf(error: ServiceError): string {
  const prefix = `${error.operation} (${error.method} ${error.path}): `;
  return error.message.startsWith(prefix) ? error.message.slice(prefix.length) : error.message;
}
