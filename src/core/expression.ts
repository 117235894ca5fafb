// CEL expressions: the single door to the CEL library. An expression sees only its variables; its
// size, depth and time are limited.

import { createContext, Script } from "node:vm";
import { Environment } from "@marcbachmann/cel-js";
import { firstLine } from "./errors.ts";

/** After three slow evaluations in a row the next twenty or so are refused. */
const slowWeighs = 20;

const weightMax = 3 * slowWeighs;

const context = createContext({});

const script = new Script("work()");

/** The functions that evaluate an expression for each item. */
const loopNames: readonly string[] = ["all", "exists", "exists_one", "map", "filter"];

const limits = {
  maxAstNodes: 500,
  maxDepth: 32,
  maxListElements: 200,
  maxMapEntries: 50,
  maxCallArguments: 8,
};

/** How long one evaluation may take; only for expressions that may take long. */
const timeLimitsMs = { item: 250, list: 2_000 } as const;

const environments = {
  /** One item of a list, as the service sent it. */
  item: createEnvironment().registerVariable("item", "dyn"),
  /** A whole list: its length, its items where they were read, and what the last poll saw. */
  list: createEnvironment()
    .registerVariable("count", "int")
    .registerVariable("items", "list")
    .registerVariable("new", "list")
    .registerVariable("modified", "list")
    .registerVariable("previous", "dyn"),
};

/** The variables of `list` at the first poll of an empty list, and at a later one. */
const firstPoll = { count: 0n, items: [], new: [], modified: [], previous: null };
const laterPoll = { ...firstPoll, previous: { count: 0n, at: new Date(0) } };

/** What an expression is over: one item of a list, or a whole list. */
type ExpressionScope = keyof typeof environments;

/** A parsed expression. `evaluate` throws when a field is missing or a type does not fit. */
export interface Expression {
  readonly text: string;
  /** True when the expression names this variable. */
  readonly uses: (variable: string) => boolean;
  readonly evaluate: (variables: Readonly<Record<string, unknown>>) => unknown;
}

function createEnvironment(): Environment {
  return new Environment({
    unlistedVariablesAreDyn: false,
    homogeneousAggregateLiterals: false,
    enableOptionalTypes: true,
    limits,
  });
}

/** Returns one line on what is wrong with an expression; undefined when nothing is. */
export function checkExpression(text: string, scope: ExpressionScope): string | undefined {
  const result = environments[scope].check(text);
  if (!result.valid) return firstLine(result.error);
  const again = scope === "list" ? listInsideLoop(environments.list.parse(text).ast) : undefined;
  if (again !== undefined)
    return `\`${again}\` inside all, exists, filter or map looks at every item for every item, which takes minutes over a long list`;
  if (scope !== "list" || !fails(text, firstPoll) || fails(text, laterPoll)) return undefined;
  return "`previous` is null at the first poll: write `previous == null || …`";
}

/** The lists that may be long. */
const longLists: readonly unknown[] = ["items", "new", "modified"];

/** A part of a parsed expression. `isInside`: it is evaluated for each item of a list. */
interface Part {
  readonly op: unknown;
  readonly args: unknown;
  readonly isInside: boolean;
  /** The function whose argument it is. */
  readonly callee: unknown;
}

/** Every part of a parsed expression. */
function* partsOf(node: unknown, isInside = false, callee?: unknown): Generator<Part> {
  if (Array.isArray(node)) for (const one of node) yield* partsOf(one, isInside, callee);
  if (typeof node !== "object" || node === null || !("op" in node && "args" in node)) return;
  const { op, args } = node;
  yield { op, args, isInside, callee };
  if ((op !== "call" && op !== "rcall") || !Array.isArray(args)) {
    yield* partsOf(args, isInside);
    return;
  }
  const [name, receiver, ...rest]: readonly unknown[] = args;
  yield* partsOf(receiver, isInside, name);
  yield* partsOf(rest, isInside || isLoop(node), name);
}

/** Whether it is a call that evaluates an expression for each item. */
function isLoop({ op, args }: Pick<Part, "op" | "args">): boolean {
  return op === "rcall" && Array.isArray(args) && loopNames.includes(String(args[0]));
}

/** Finds a list that is looped over for each item of another list. Its size may be used. */
function listInsideLoop(ast: unknown): string | undefined {
  const found = partsOf(ast).find(
    ({ op, args, isInside, callee }) => op === "id" && isInside && longLists.includes(args) && callee !== "size",
  );
  return found === undefined ? undefined : String(found.args);
}

function fails(text: string, variables: Readonly<Record<string, unknown>>): boolean {
  try {
    environments.list.parse(text)({ ...variables });
    return false;
  } catch {
    return true;
  }
}

/** Parses an expression. @throws RangeError with one line on what is wrong. */
export function parseExpression(text: string, scope: ExpressionScope): Expression {
  const problem = checkExpression(text, scope);
  if (problem !== undefined) throw new RangeError(problem);
  const parsed = environments[scope].parse(text);
  const limited = createTimeLimit(timeLimitsMs[scope]);
  return {
    text,
    uses: (variable) => partsOf(parsed.ast).some(({ op, args }) => op === "id" && args === variable),
    evaluate: mayTakeLong(parsed.ast)
      ? (variables) => limited(() => parsed({ ...variables }))
      : (variables) => parsed({ ...variables }),
  };
}

/** Whether an evaluation may take more than linear time. */
function mayTakeLong(ast: unknown): boolean {
  return partsOf(ast).some((part) => {
    const { args, isInside } = part;
    if (Array.isArray(args) && args[0] === "matches" && !isPlainPattern(args.slice(1).flat(1).at(-1))) return true;
    return isLoop(part) && isInside;
  });
}

/** A literal pattern with at most one repetition, and none of a group. */
function isPlainPattern(node: unknown): boolean {
  if (typeof node !== "object" || node === null || !("op" in node && "args" in node)) return false;
  const { op, args } = node;
  if (op !== "value" || typeof args !== "string") return false;
  return args.replaceAll(/[^*+{?]/g, "").length <= 1 && !/\)[*+{?]/.test(args);
}

/**
 * Makes a time limit for pieces of work, which it cuts off in the middle. The returned function
 * @throws RangeError when a piece takes too long, or too many before it did.
 */
function createTimeLimit(limitMs: number): <T>(work: () => T) => T {
  let weight = 0;
  return (work) => {
    weight = Math.max(0, weight - 1);
    if (weight > weightMax - slowWeighs)
      throw new RangeError("it took too long several times, and is left out for a while");
    let result: { readonly of: ReturnType<typeof work> } | undefined;
    context["work"] = () => {
      result = { of: work() };
    };
    try {
      script.runInContext(context, { timeout: limitMs });
    } catch (error) {
      if (!isTimeout(error)) throw error;
      weight += slowWeighs;
    } finally {
      context["work"] = undefined;
    }
    if (result === undefined) throw new RangeError(`it took longer than ${limitMs} ms`);
    return result.of;
  };
}

function isTimeout(error: unknown): boolean {
  return (
    typeof error === "object" && error !== null && "code" in error && error.code === "ERR_SCRIPT_EXECUTION_TIMEOUT"
  );
}
