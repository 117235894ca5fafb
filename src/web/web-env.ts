// What a request carries through the web application.
import type { HttpBindings } from "@hono/node-server";
import type { QueryContext } from "../queries/query-context.ts";
import type { Caller } from "./access.ts";

/** Set by web-app.ts, read by the routes. `query`: what the caller may see. */
export interface WebEnv {
  Bindings: Partial<HttpBindings>;
  Variables: { requestId: string; caller: Caller | undefined; query: QueryContext };
}
