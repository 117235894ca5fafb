// What a request carries through the web application.
import type { HttpBindings } from "@hono/node-server";
import type { QueryContext } from "../queries/query-context.ts";
import type { Acting } from "./acts.ts";
import type { Caller } from "./identity.ts";
import type { ProblemDetails } from "./problem.ts";

/**
 * Set by web-app.ts and admission.ts, read by the routes. `query`: what the caller may see.
 * `acting`: how they change something. `problem`: what the answer says is wrong.
 */
export interface WebEnv {
  Bindings: Partial<HttpBindings>;
  Variables: {
    requestId: string;
    caller: Caller | undefined;
    query: QueryContext;
    acting: Acting;
    problem?: ProblemDetails;
  };
}
