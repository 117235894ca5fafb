// The page on which a person shows a token once, or goes to the identity provider; from then on a
// cookie stands for both.
import { html } from "hono/html";
import { page } from "./layout.ts";
import type { Html } from "./marks.ts";

/** The ways in. `next`: where they lead to. */
export function signInPage(options: {
  readonly next: string;
  readonly byToken: boolean;
  readonly byOidc: boolean;
  readonly isWrong?: boolean;
}): Html {
  const { next, byToken, byOidc, isWrong = false } = options;
  const provider = byOidc
    ? html`<p><a class="button" href="/sign-in/oidc?next=${encodeURIComponent(next)}">Sign in with your organization</a></p>`
    : "";
  const none =
    byToken || byOidc ? "" : html`<p>A proxy signs people in here, and this request came without its JWT.</p>`;
  return page(
    { title: "Sign in", isStatic: true },
    html`<section class="narrow"><h1>Sign in</h1>${provider}${none}${byToken ? tokenForm(next, isWrong) : ""}
<p class="quiet">The session lasts eight hours.</p></section>`,
  );
}

function tokenForm(next: string, isWrong: boolean): Html {
  const wrong = isWrong
    ? html`<p class="error" id="wrong" role="alert">This token is not known, or it has expired.</p>`
    : "";
  return html`${wrong}<form method="post" action="/sign-in" class="stack">
<input type="hidden" name="next" value="${next}">
<label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus maxlength="512"${isWrong ? html` aria-invalid="true" aria-describedby="wrong"` : ""}>
<button>Sign in</button>
</form>
<p class="quiet">An operator makes one with <code>syncline token</code>.</p>`;
}

/** Leads to a page of this server. The browser follows by itself. */
export function comeAgainPage(path: string): Html {
  return page({ title: "One moment", isStatic: true }, html`<p><a href="${path}">Go on</a></p>`);
}
