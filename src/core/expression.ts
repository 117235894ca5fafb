// CEL expressions: the single door to the CEL library. Used by config (checking), feeds (mapping) and work (expectations).
// An expression sees only the variables it is given; its size and depth are limited, it cannot loop and has no way out.
import { Environment } from "@marcbachmann/cel-js";

const limits = {
  maxAstNodes: 500,
  maxDepth: 32,
  maxListElements: 200,
  maxMapEntries: 50,
  maxCallArguments: 8,
};

const environments = {
  /** One item of a list, as the service sent it. */
  item: createEnvironment().registerVariable("item", "dyn"),
  /** A whole list: its length and, where they were read, its items. */
  list: createEnvironment().registerVariable("count", "dyn").registerVariable("items", "list"),
};

/** What an expression speaks of: `item` (one item of a list) or `list` (`count` and `items`). */
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
  return result.valid ? undefined : firstLine(result.error);
}

/**
 * Parses an expression.
 * @throws RangeError that says what is wrong, in one line.
 */
export function parseExpression(text: string, scope: ExpressionScope): Expression {
  const problem = checkExpression(text, scope);
  if (problem !== undefined) throw new RangeError(problem);
  const parsed = environments[scope].parse(text);
  return {
    text,
    uses: (variable) => new RegExp(`(?<![\\w.])${variable}(?!\\w)`).test(text),
    evaluate: (variables) => parsed({ ...variables }),
  };
}

/** The first line of an error's message: CEL adds the source below it. */
export function firstLine(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.split("\n", 1)[0] ?? "";
}
