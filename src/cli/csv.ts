// CSV that a spreadsheet may open: quoted by RFC 4180, and no cell that it would take for a formula. Pure. Called by feed-export.ts.

/** One line of cells, without a line break at its end. What is neither text, number nor flag is written as JSON; nothing as an empty cell. */
export function csvLine(cells: readonly unknown[]): string {
  return cells.map(csvCell).join(",");
}

function csvCell(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  // Spreadsheets run what begins like this, also behind white space; an apostrophe makes it a text. Source: OWASP, CSV Injection
  const safe = /^[\s\0]*[=+\-@＝＋－＠]|^[\t\r\n]/.test(text) ? `'${text}` : text;
  return /[",;\r\n\t]|^\s|\s$/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
