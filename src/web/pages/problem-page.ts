// A problem as a page.
import { html } from "hono/html";
import type { Problem } from "../problem.ts";
import { page } from "./layout.ts";
import type { Html } from "./marks.ts";

/** Shows what is wrong, and what to do. */
export function problemPage({ status, name, title, detail, hint }: Problem, requestId: string): Html {
  const more = hint === undefined ? "" : html`<p>${hint}</p>`;
  const isSignIn = name === "no-grant" || name === "sign-in-failed";
  const on = isSignIn ? html`<a href="/sign-in">Sign in again</a>` : html`<a href="/">To the first page</a>`;
  return page(
    { title, isStatic: true },
    html`<section class="narrow"><p class="quiet">${status}</p><h1>${title}</h1><p>${detail}.</p>${more}<p>${on}</p><p class="quiet">Request ${requestId}</p></section>`,
  );
}
