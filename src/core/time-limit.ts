// A time limit for work that does not give way, such as a regular expression that goes back and forth over a text. Called by expression.ts.
// Starts a watching thread each time (some 0.1 ms), so only what may take long is worth it. Does not limit memory.
import { createContext, Script } from "node:vm";

/** Each piece that took too long weighs so much, each other one takes one away: after three in a row the next twenty or so are left out. */
const slowWeighs = 20;
const weightMax = 3 * slowWeighs;

const context = createContext({});
const script = new Script("work()");

/**
 * Makes a limit, in milliseconds each, for pieces of work of one kind. The work is cut off in the middle, so it must not leave anything half done.
 * The function that it answers @throws RangeError when a piece takes too long, or when too many before it did; and whatever the work throws.
 */
export function createTimeLimit(limitMs: number): <T>(work: () => T) => T {
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
