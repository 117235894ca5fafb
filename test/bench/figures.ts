// The figures of a benchmark for the table of all.ts: each benchmark notes them beside what it
// prints. Alone, it notes nothing.
import { appendFileSync } from "node:fs";

/** One figure. Those with the same `what` stand in one row of the table. */
export interface Figure {
  readonly what: string;
  readonly unit: string;
  readonly wants: "more" | "less";
  /** Whose it is: `syncline`, or the peer's name. */
  readonly by: string;
  readonly value: number;
  /** Of Syncline's: the worst value that is still good; or so many times that of a peer. */
  readonly goal?: number | { readonly times: number; readonly of: string };
}

/** Names the file that the figures go to. */
export const figuresVariable = "SYNCLINE_BENCH_FIGURES";

/** Notes a figure, of Syncline unless told. */
export function noteFigure({ by = "syncline", ...figure }: Omit<Figure, "by"> & { readonly by?: string }): void {
  const file = process.env[figuresVariable];
  if (file !== undefined) appendFileSync(file, `${JSON.stringify({ ...figure, by })}\n`);
}
