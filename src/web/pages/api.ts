// The page that lists the API, drawn from its description.
import { html } from "hono/html";
import { describeApi } from "../api/openapi.ts";
import type { Html } from "./marks.ts";
import { table } from "./parts.ts";

/** Shows each operation: how it is asked, and what it is for. */
export function apiPage(): Html {
  const rows = Object.entries(describeApi().paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId, summary, parameters }]) => [
      html`<code>${method.toUpperCase()} ${path}</code>`,
      summary,
      parameters
        .filter(({ in: where }) => where !== "path")
        .map(({ name, required }) => `${name}${required ? " (needed)" : ""}`)
        .join(", "),
      operationId,
    ]),
  );
  const columns = [["operation", "wide"], ["what it gives or does", "wide"], ["parameters", "wide"], "name"] as const;
  return html`<h1>API</h1><p>A token goes into <code>Authorization: Bearer</code>. <a href="/api/v1/openapi.json">openapi.json</a> has all of it, for generators of clients.</p>${table("Operations", columns, rows)}`;
}
