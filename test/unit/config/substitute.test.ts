import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { substitute } from "../../../src/config/yaml/yaml-file.ts";
import { fileWith, loadText } from "./policy-fixture.ts";

const variables = { HOST: "a.example", EMPTY: "", NESTED: `\${HOST}` };

describe("variables in a value", () => {
  it.each([
    [`https://\${HOST}/x`, "https://a.example/x"],
    [`\${HOST}\${HOST}`, "a.examplea.example"],
    [`\${NOPE:-b.example}`, "b.example"],
    [`\${EMPTY:-filled}`, "filled"],
    [`\${HOST:-unused}`, "a.example"],
    [`$\${HOST} costs $5`, `\${HOST} costs $5`],
    [`\${NESTED}`, `\${HOST}`],
    ["$HOST", "$HOST"],
  ])("%s becomes %s", (text, expected) => {
    expect(substitute(text, variables)).toEqual({ ok: true, text: expected });
  });

  it.each([
    [`\${NOPE}`, "the environment variable NOPE is not set"],
    [`\${EMPTY}`, "the environment variable EMPTY is not set"],
    [`\${toString}`, "the environment variable toString is not set"],
    [`\${A B}`, "this is not a variable"],
    [`\${HOST`, "this is not a variable"],
    [`\${}`, "this is not a variable"],
  ])("%s is refused", (text, message) => {
    expect(substitute(text, variables)).toMatchObject({ ok: false, reference: text, message });
  });

  it(`never throws and leaves a text without \${ as it is`, () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const result = substitute(text, variables);
        if (!text.includes(`\${`)) expect(result).toEqual({ ok: true, text });
      }),
    );
  });
});

describe("variables in a file", () => {
  it("that are not set are problems at their place, without others for the value", async () => {
    const loaded = await loadText(
      fileWith(`  - { name: a, service: main, repository: 'x-\${NOPE}', poll: { list: masks } }`),
    );
    expect(loaded).toMatchObject({
      problems: [{ line: 5, column: 46, width: 7, message: "the environment variable NOPE is not set" }],
    });
  });

  it("cannot add keys: a value is put in after YAML is read", async () => {
    const loaded = await loadText(
      fileWith(`  - { name: a, service: main, repository: "\${SANDBOX_URL:-x}, b: 1", poll: { list: masks } }`),
    );
    expect(loaded.ok && loaded.set.policies[0]?.repository).toBe("http://127.0.0.1:8080, b: 1");
  });
});
