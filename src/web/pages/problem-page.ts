// A problem as a page.
import { html } from "hono/html";
import type { ProblemDetails } from "../problem.ts";
import { type Frame, page } from "./layout.ts";
import type { Html } from "./marks.ts";

/** Shows what is wrong, and what to do. `who`: who asked, as far as that is known. */
export function problemPage(
  { status, name, title, detail, hint }: ProblemDetails,
  requestId: string,
  who: Pick<Frame, "caller" | "canSignOut">,
): Html {
  const more = hint === undefined ? "" : html`<p>${sentence(hint)}</p>`;
  const isSignIn = name === "no-grant" || name === "sign-in-failed";
  const on = isSignIn ? html`<a href="/sign-in">Sign in again</a>` : html`<a href="/">To the first page</a>`;
  return page(
    { ...who, title, isStatic: true },
    html`<section class="narrow"><p class="quiet">${status}</p><h1>${title}</h1><p>${sentence(detail)}</p>${more}<p>${on}</p><p class="quiet">Request ${requestId}</p></section>`,
  );
}

/** With its first letter large, unless that begins a name or an address, and an end. */
function sentence(words: string): string {
  return `${words.replace(/^[a-z]+ /, (first) => first.charAt(0).toUpperCase() + first.slice(1))}${/[.!?]$/.test(words) ? "" : "."}`;
}
