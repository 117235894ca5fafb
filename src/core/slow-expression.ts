// Which expressions may take long over what a service sends: those with a regular expression that can go back and forth over a text, and
// loops inside loops. Pure; called by expression.ts, which knows where the parsed expression comes from.

/** The functions that evaluate an expression for each item. */
export const loopNames: readonly string[] = ["all", "exists", "exists_one", "map", "filter"];

/** Whether evaluating it may take more than a time that grows with what it is given. `node`: a parsed expression, `op` and `args` all the way down. */
export function mayTakeLong(node: unknown, isInLoop = false): boolean {
  if (Array.isArray(node)) return node.some((part) => mayTakeLong(part, isInLoop));
  if (typeof node !== "object" || node === null || !("op" in node && "args" in node)) return false;
  const { op, args } = node;
  if ((op !== "call" && op !== "rcall") || !Array.isArray(args)) return mayTakeLong(args, isInLoop);
  const [name, ...parts]: readonly unknown[] = args;
  if (name === "matches" && !isPlainPattern(parts.flat(1).at(-1))) return true;
  const isLoop = op === "rcall" && loopNames.some((loop) => loop === name);
  if (isLoop && isInLoop) return true;
  return isLoop ? mayTakeLong(parts[0], isInLoop) || mayTakeLong(parts.slice(1), true) : mayTakeLong(parts, isInLoop);
}

/** A pattern that is written out and repeats one thing at the most, which is no group. */
function isPlainPattern(node: unknown): boolean {
  if (typeof node !== "object" || node === null || !("op" in node && "args" in node)) return false;
  const { op, args } = node;
  if (op !== "value" || typeof args !== "string") return false;
  return args.replaceAll(/[^*+{?]/g, "").length <= 1 && !/\)[*+{?]/.test(args);
}
