// JSON that keeps whole numbers exact: one beyond 2^53-1 becomes a string of its digits instead of its rounded neighbour.
// Called by answer.ts and count.ts.

/** Parses JSON text, with or without a byte order mark. @throws SyntaxError when it is no JSON. */
export function parseExactJson(text: string): unknown {
  const plain = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  // The reviver is slow; only a run of sixteen digits can be a number that needs it.
  return /\d{16}/.test(plain) ? JSON.parse(plain, keepDigits) : JSON.parse(plain);
}

/** Tells whether JSON text opens more than `levels` lists and objects inside each other. Counts brackets outside of strings; the text need not be right. */
export function isNestedDeeper(text: string, levels: number): boolean {
  let depth = 0;
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}]/gs)) {
    if (token === "[" || token === "{") depth += 1;
    else if (token === "]" || token === "}") depth -= 1;
    if (depth > levels) return true;
  }
  return false;
}

function keepDigits(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  const source = context?.source ?? "";
  return /^-?\d+$/.test(source) ? source : value;
}
