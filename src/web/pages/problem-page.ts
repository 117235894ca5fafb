// A problem as a page.
import { html } from "hono/html";
import type { Problem } from "../problem.ts";
import { page } from "./layout.ts";
import type { Html } from "./marks.ts";

/** Shows what is wrong, and what to do. */
export function problemPage({ status, title, detail, hint }: Problem, requestId: string): Html {
  const more = hint === undefined ? "" : html`<p>${hint}</p>`;
  return page(
    { title, isStatic: true },
    html`<section class="narrow"><p class="quiet">${status}</p><h1>${title}</h1><p>${detail}.</p>${more}<p><a href="/">To the first page</a></p><p class="quiet">Request ${requestId}</p></section>`,
  );
}
