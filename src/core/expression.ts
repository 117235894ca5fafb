// CEL expressions: the single door to the CEL library. Used by config (checking), feeds (mapping) and work (expectations).
// An expression sees only the variables it is given; its size, depth and time are limited, it cannot loop and has no way out.
import { Environment } from "@marcbachmann/cel-js";
import { loopNames, mayTakeLong } from "./slow-expression.ts";
import { createTimeLimit } from "./time-limit.ts";

const limits = {
  maxAstNodes: 500,
  maxDepth: 32,
  maxListElements: 200,
  maxMapEntries: 50,
  maxCallArguments: 8,
};

/** How long one evaluation may take, where it may take long at all. */
const timeLimitsMs = { item: 250, list: 2_000 } as const;

const environments = {
  /** One item of a list, as the service sent it. */
  item: createEnvironment().registerVariable("item", "dyn"),
  /** A whole list: its length, where they were read its items, and what the last poll of it saw. */
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

/**
 * What an expression speaks of: `item` (one item of a list) or `list`: `count`, `items`, `new` and `modified` since the last poll, and
 * `previous` with `count` and `at` of that poll, null at the first.
 */
export type ExpressionScope = keyof typeof environments;

/** A parsed expression. Call it with the variables of its scope; it throws when a field is missing or types do not fit. */
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

/** Says in one line what is wrong with an expression, or nothing when it parses and its types fit. */
export function checkExpression(text: string, scope: ExpressionScope): string | undefined {
  const result = environments[scope].check(text);
  if (!result.valid) return firstLine(result.error);
  const again = scope === "list" ? listInsideLoop(environments.list.parse(text).ast, false) : undefined;
  if (again !== undefined)
    return `\`${again}\` inside all, exists, filter or map looks at every item for every item, which takes minutes over a long list`;
  if (scope !== "list" || !fails(text, firstPoll) || fails(text, laterPoll)) return undefined;
  return "`previous` is null at the first poll: write `previous == null || …`";
}

/** The lists that may be long. */
const longLists = ["items", "new", "modified"];

/** The list, if any, that is gone through for each item of a list; its size may be asked. */
function listInsideLoop(node: unknown, isInside: boolean): string | undefined {
  if (Array.isArray(node)) {
    for (const part of node) {
      const found = listInsideLoop(part, isInside);
      if (found !== undefined) return found;
    }
  }
  if (typeof node !== "object" || node === null || !("op" in node && "args" in node)) return undefined;
  const { op, args } = node;
  if (op === "id") return isInside ? longLists.find((name) => name === args) : undefined;
  if ((op !== "call" && op !== "rcall") || !Array.isArray(args)) return listInsideLoop(args, isInside);
  const [name, ...parts]: readonly unknown[] = args;
  if (name === "size" && isName(parts.flat(1)[0])) return undefined;
  if (op !== "rcall" || !loopNames.some((loop) => loop === name)) return listInsideLoop(parts, isInside);
  return listInsideLoop(parts[0], isInside) ?? listInsideLoop(parts.slice(1), true);
}

function isName(node: unknown): boolean {
  return typeof node === "object" && node !== null && "op" in node && node.op === "id";
}

function fails(text: string, variables: Readonly<Record<string, unknown>>): boolean {
  try {
    environments.list.parse(text)({ ...variables });
    return false;
  } catch {
    return true;
  }
}

/**
 * Parses an expression.
 * @throws RangeError that says what is wrong, in one line.
 */
export function parseExpression(text: string, scope: ExpressionScope): Expression {
  const problem = checkExpression(text, scope);
  if (problem !== undefined) throw new RangeError(problem);
  const parsed = environments[scope].parse(text);
  const limited = createTimeLimit(timeLimitsMs[scope]);
  return {
    text,
    uses: (variable) => new RegExp(`(?<![\\w.])${variable}(?!\\w)`).test(text),
    evaluate: mayTakeLong(parsed.ast)
      ? (variables) => limited(() => parsed({ ...variables }))
      : (variables) => parsed({ ...variables }),
  };
}

/** The first line of an error's message: CEL adds the source below it. */
export function firstLine(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.split("\n", 1)[0] ?? "";
}
