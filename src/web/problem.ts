// Problems as RFC 9457 has them. The API answers them as JSON, the pages as a page (pages/).
import type { Context, MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { ConflictError, type UsageError } from "../core/errors.ts";

/** What is wrong with a part of a request. `pointer`: where, such as `/limit`. */
export interface PartProblem {
  readonly pointer: string;
  readonly detail: string;
}

/** What a problem says. docs/dashboard.md lists the names. */
export interface ProblemDetails {
  readonly status: ContentfulStatusCode;
  readonly name: string;
  readonly title: string;
  readonly detail: string;
  readonly hint?: string;
  readonly errors?: readonly PartProblem[];
}

/** An error that becomes an answer. */
export class WebError extends Error {
  override readonly name = "WebError";
  readonly problem: ProblemDetails;

  constructor(problem: ProblemDetails) {
    super(problem.detail);
    this.problem = problem;
  }
}

type Told = (detail: string, hint?: string) => WebError;

function told(status: ContentfulStatusCode, name: string, title: string): Told {
  return (detail, hint) => new WebError({ status, name, title, detail, ...(hint !== undefined && { hint }) });
}

/** There is nothing of this name. */
export const notFound: Told = told(404, "not-found", "Not found");

/** What was asked is understood, and is not possible in any state. */
const notPossible: Told = told(422, "not-possible", "This cannot be done");

/** What was asked is possible at other times. */
export const conflict: Told = told(409, "conflict", "Not as things are now");

/** What a wrong use of actions/ or queries/ answers. */
export function useProblem(error: UsageError): ProblemDetails {
  return (error instanceof ConflictError ? conflict : notPossible)(error.message).problem;
}

/** The request has no valid token. */
export const unauthenticated = new WebError({
  status: 401,
  name: "unauthenticated",
  title: "Who are you?",
  detail: "this needs a token that is known and has not expired",
  hint: "send Authorization: Bearer TOKEN; `syncline token` makes one",
});

/** The request is wrong in these parts. */
export function badRequest(errors: readonly PartProblem[]): WebError {
  const detail = errors.map(({ pointer, detail: what }) => `${pointer}: ${what}`).join("; ");
  return new WebError({ status: 400, name: "bad-request", title: "This request is wrong", detail, errors });
}

/** Refuses bodies of more bytes. */
export function limitBody(bytesMax: number): MiddlewareHandler {
  const detail = `a body has at most ${bytesMax / 1_024} KiB`;
  const onError = () => {
    throw new WebError({ status: 413, name: "too-large", title: "Too large", detail });
  };
  return bodyLimit({ maxSize: bytesMax, onError });
}

/** Answers a problem as JSON. */
export function answerProblem(c: Context, { name, ...problem }: ProblemDetails, instance: string): Response {
  const body = JSON.stringify({
    type: `urn:syncline:problem:${name}`,
    ...problem,
    instance: `urn:request:${instance}`,
  });
  return c.body(body, problem.status, { "content-type": "application/problem+json" });
}
