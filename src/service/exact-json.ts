// JSON that keeps whole numbers exact: one beyond 2^53-1 becomes a string of its digits instead of its rounded neighbour.
// Called by answer.ts and count.ts.

/** Parses JSON text, with or without a byte order mark. @throws SyntaxError when it is no JSON. */
export function parseExactJson(text: string): unknown {
  const plain = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  // The reviver is slow; only a run of sixteen digits can be a number that needs it.
  return /\d{16}/.test(plain) ? JSON.parse(plain, keepDigits) : JSON.parse(plain);
}

function keepDigits(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  const source = context?.source ?? "";
  return /^-?\d+$/.test(source) ? source : value;
}
