// What a service sends as a name, made fit for an outcome, a notice or a terminal. Pure. Called by work/judge-list.ts and telling/item-notices.ts.
import { withoutSecrets } from "./secrets.ts";

/** The text on one line, without known secrets and control characters, cut to so many characters. */
export function toPlainText(text: string, charactersMax: number): string {
  return withoutSecrets(text)
    .replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, " ")
    .slice(0, charactersMax)
    .toWellFormed();
}
