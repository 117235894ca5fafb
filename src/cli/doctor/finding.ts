// A finding of `syncline doctor`, one line each, and how a failed exchange becomes one. The checks
// beside this file make them, doctor-command.ts shows them. Pure.
import type { ServiceError } from "../../service/client.ts";

/** All checks, in the order in which they are shown. */
export const checkNames = [
  "redis",
  "replicas",
  "service",
  "token",
  "identity",
  "sync jobs",
  "deleted",
  "masks",
  "triggers",
  "mapping",
  "zones",
  "calendars",
  "next slots",
  "chains",
  "pauses",
  "breakers",
  "feeds",
  "sinks",
  "sign-in",
  "doctor",
] as const;

/** How bad it is. Only a problem changes the exit code. */
export type Level = "ok" | "warning" | "problem";

/** One finding. `subject`: a service, repository, sync job or policy; empty for the whole. */
export interface Finding {
  readonly check: (typeof checkNames)[number];
  readonly subject: string;
  readonly level: Level;
  /** What is so, in words. Never holds a secret. */
  readonly what: string;
  /** What to do; only of warnings and problems. */
  readonly cure?: string;
}

/** Makes the findings of one check about one subject. */
export function findingFor(check: Finding["check"], subject = "") {
  return {
    ok: (what: string): Finding => ({ check, subject, level: "ok", what }),
    warning: (what: string, cure: string): Finding => ({ check, subject, level: "warning", what, cure }),
    problem: (what: string, cure: string): Finding => ({ check, subject, level: "problem", what, cure }),
  };
}

const linesMax = 20;

/** Problems, then warnings, then what is fine; within each as before. */
export function worstFirst(findings: readonly Finding[]): readonly Finding[] {
  return (["problem", "warning", "ok"] as const).flatMap((level) => findings.filter((one) => one.level === level));
}

/** The findings; of many the worst ones, and one line for the rest. */
export function withinLines(findings: readonly Finding[]): readonly Finding[] {
  const ordered = worstFirst(findings);
  const rest = ordered.slice(linesMax);
  const [first] = rest;
  if (first === undefined) return findings;
  const { check, level } = first;
  const isOne = rest.every(({ cure }) => cure === first.cure);
  const cure = isOne ? first.cure : "mend these first: the next look shows those that are left";
  const more = {
    check,
    subject: "",
    level,
    what: `and ${rest.length} more like these`,
    ...(cure !== undefined && { cure }),
  };
  return [...ordered.slice(0, linesMax), more];
}

const lookupCodes = /^(ENOTFOUND|EAI_|EDNS|ENODATA|ESERVFAIL|ETIMEDOUT \(lookup\))/;
const socketCodes = /^(ECONN|EHOST|ENET|EADDR|EPIPE|ETIMEDOUT)/;

const stageCure = {
  DNS: "check the host in baseUrl, and that this pod or machine may ask DNS",
  TCP: "check host and port in baseUrl, that the service runs, and that a firewall or NetworkPolicy lets it through",
  TLS: "check tls.caFile, the service's certificate and tls.serverName; docs/security.md",
} as const;

/** The step of connecting that failed, by the code of an error of kind `unreachable`. */
export function stageOf(code: string): keyof typeof stageCure {
  if (lookupCodes.test(code)) return "DNS";
  if (/secureConnect/.test(code)) return "TLS";
  return socketCodes.test(code) ? "TCP" : "TLS";
}

/** The finding for a failed first exchange with a service. */
export function describeFailure(subject: string, error: ServiceError, baseUrl: string): Finding {
  const { kind, code, status } = error;
  const what = shortOf(error);
  const { problem } = findingFor("service", subject);
  if (kind === "unreachable" && code !== undefined) {
    const stage = stageOf(code);
    return problem(`${stage} failed at ${new URL(baseUrl).host}: ${what}`, stageCure[stage]);
  }
  if (kind === "unreachable" || kind === "unauthorized" || kind === "forbidden") {
    const cure =
      status === undefined
        ? "check where the token comes from (services.*.token), and that this process may read it"
        : "the token was sent and refused: has it expired, and is it one for this service and repository?";
    return findingFor("token", subject).problem(what, cure);
  }
  if (kind === "cancelled") return problem("it did not answer in time", "take longer with --within");
  if (kind === "server" || kind === "answer-lost" || kind === "throttled")
    return problem(what, "it answers, but not as documented: ask its operators");
  return problem(what, "is baseUrl the root of a Synchronization Management Service, and the repository right?");
}

/** What happened, without the name of the operation. */
export function shortOf(error: ServiceError): string {
  const prefix = `${error.operation} (${error.method} ${error.path}): `;
  return error.message.startsWith(prefix) ? error.message.slice(prefix.length) : error.message;
}
