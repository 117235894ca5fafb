// Whether the sandbox's first fault has a request in its hands: only then was one surely sent.
import { expect } from "vitest";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";
import { often } from "./processes.ts";

/** Waits until the first fault has struck. */
export function untilStruck({ baseUrl, token }: Pick<Sandbox, "baseUrl" | "token">): PromiseLike<void> {
  const struck = async () => {
    const answer = await fetch(`${baseUrl}/_sandbox/faults`, { headers: { authorization: `Bearer ${token}` } });
    const { value } = (await answer.json()) as { value: { struck: number }[] };
    return value[0]?.struck ?? 0;
  };
  return expect.poll(struck, often).toBeGreaterThan(0);
}
