// A word in a colour, where colours are wanted: decided by whoever calls, not by what standard output is.
import { styleText } from "node:util";

/** The text in this style. */
export function paint(style: "bold" | "green" | "red" | "yellow", text: string, colours: boolean): string {
  return colours ? styleText(style, text, { validateStream: false }) : text;
}
