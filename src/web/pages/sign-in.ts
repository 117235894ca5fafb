// The page on which a person shows a token once; from then on a cookie stands for it.
import { html } from "hono/html";
import { page } from "./layout.ts";
import type { Html } from "./marks.ts";

/** The form. `next`: where it leads to. */
export function signInPage({ next, isWrong }: { readonly next: string; readonly isWrong: boolean }): Html {
  const wrong = isWrong
    ? html`<p class="error" id="wrong" role="alert">This token is not known, or it has expired.</p>`
    : "";
  return page(
    { title: "Sign in", isStatic: true },
    html`<section class="narrow"><h1>Sign in</h1>${wrong}
<form method="post" action="/sign-in" class="stack">
<input type="hidden" name="next" value="${next}">
<label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required maxlength="512"${isWrong ? html` aria-invalid="true" aria-describedby="wrong"` : ""}>
<button>Sign in</button>
</form>
<p class="quiet">An operator makes one with <code>syncline token</code>. The session lasts eight hours.</p></section>`,
  );
}
