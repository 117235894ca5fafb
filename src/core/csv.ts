// Writes lines of CSV for spreadsheets. Called by `feed` and by the API.

/** One CSV line. A missing cell is empty; lists and objects are written as JSON. */
export function csvLine(cells: readonly unknown[]): string {
  return cells.map(csvCell).join(",");
}

function csvCell(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  // Spreadsheets run cells that begin like this, also after white space; an apostrophe makes them
  // text. Source: OWASP, CSV Injection
  const safe = /^[\s\0]*[=+\-@＝＋－＠]|^[\t\r\n]/.test(text) ? `'${text}` : text;
  return /[",;\r\n\t]|^\s|\s$/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
