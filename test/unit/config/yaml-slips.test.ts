import { describe, expect, it } from "vitest";
import { didYouMean, nearestWord } from "../../../src/core/nearest-word.ts";
import { fileWith, loadText } from "./policy-fixture.ts";

/** "line hint" of the first problem of a text. */
async function firstHint(text: string): Promise<string> {
  const loaded = await loadText(text);
  if (loaded.ok) return "no problem";
  const [first] = loaded.problems;
  return `${first?.line} ${first?.hint}`;
}

const policy = (keys: string) => fileWith(`  - name: a\n    service: main\n    poll: { list: masks }\n${keys}`);

describe("a slip in YAML gets a hint", () => {
  const quoteCron = '8 put the cron expression in quotes: cron: "* * * * *"';
  const cases: readonly (readonly [string, string, string])[] = [
    ["an unquoted * * * * *", policy("    schedule: { cron: * * * * * }"), quoteCron],
    ["an unquoted */5 in a block", policy("    schedule:\n      cron: */5 * * * *"), quoteCron.replace("8", "9")],
    [
      "an unquoted * * in a list",
      policy("    schedule:\n      cron:\n        - * * * * *"),
      quoteCron.replace("8", "10"),
    ],
    [
      "another value that starts with *",
      policy("    repository: *hr"),
      "8 a value that starts with * must be in quotes",
    ],
    [
      "a variable in braces",
      policy(`    follow: { until: \${X} }`),
      `8 inside { } or [ ] put a value with $\{NAME} in quotes: "$\{NAME}"`,
    ],
    ["a tab", policy("\trepository: HR"), "8 indent with spaces, not with tabs"],
    ["a colon in a text", policy("    repository: a: b"), "8 put a value that holds a colon and a space in quotes"],
    ["an @", policy("    repository: @hr"), "8 a value that starts with @, ` or % must be in quotes"],
    [
      "a ! in an expression",
      fileWith("  - name: a\n    service: main\n    poll:\n      list: masks\n      expect: !items"),
      "9 put quotes around a value that starts with !",
    ],
    ["a number as a repository", policy("    repository: 0815"), "8 put it in quotes"],
    ["a truth value as a repository", policy("    repository: true"), "8 put it in quotes"],
    ["a duration without a unit", policy("    schedule: { every: 10 }"), "8 add the unit: 10s, 10m or 10h"],
    [
      "a number in quotes",
      fileWith('  - { name: a, service: main, run: { syncJobs: ["42"] } }'),
      "5 write the number without quotes; a variable gives a text, never a number",
    ],
    ["a colon without a space in a block", policy("    repository:HR"), "8 put a space after the colon"],
    [
      "a colon without a space after a dash",
      fileWith("  - name:a\n    service: main\n    poll: { list: masks }"),
      "5 put a space after the colon",
    ],
    [
      "such a colon below a key",
      policy("    schedule:\n      every:10m"),
      "9 put a space after the colon, and such keys on lines of their own or in { }",
    ],
    [
      "such a colon beside a key",
      policy("    schedule: every:10m"),
      "8 put a space after the colon, and such keys on lines of their own or in { }",
    ],
    ["two words for one key", policy("    catch up:"), "8 did you mean catchUp?"],
    ["such a colon in braces", policy("    schedule: { every:10m }"), "8 put a space after the colon"],
    [
      "a comma in a text in braces",
      fileWith("  - { name: a, service: main, poll: { list: masks }, owner: HR, ext. 4711 }"),
      "5 put a value that holds a comma in quotes",
    ],
    [
      "one sync job without brackets",
      fileWith("  - { name: a, service: main, run: { syncJobs: 42 } }"),
      "5 a list is written [a, b]",
    ],
  ];

  const block = (keys: string) => fileWith(`  - name: a\n    service: main\n${keys}\n    poll: { list: masks }`);
  it.each([
    [
      "a [ that is never closed",
      `${block("    repository: HR").replace("policies:", "policies: [")}\n`,
      "4 this [ is never closed",
    ],
    ["a [ closed by }", block("    schedule: { cron: [a }"), "7 this [ is never closed"],
    ["a { that is never closed", block("    schedule: { every: 1h"), "7 this { is never closed"],
    ["a key indented by one less", block("   repository: HR"), "7 indented by 3, its neighbours by 4"],
    ["a key indented by one more", block("     repository: HR"), "7 indented by 5, its neighbours by 4"],
    ["a tab", block("\trepository: HR"), "7 YAML: Tabs are not allowed as indentation"],
  ])("%s is one problem", async (_, text, problem) => {
    const loaded = await loadText(text);
    const told = loaded.ok ? [] : loaded.problems.map(({ line, message }) => `${line} ${message}`);
    expect(told).toHaveLength(1);
    expect(told[0]).toContain(problem);
  });

  it.each(cases)("%s", async (_, text, hint) => {
    expect(await firstHint(text)).toBe(hint);
  });

  it("and yes, no, on, off are texts, not truth values", async () => {
    const loaded = await loadText(policy("    repository: no"));
    expect(loaded.ok && loaded.set.policies[0]?.repository).toBe("no");
  });
});

describe("a misspelt word", () => {
  it.each([
    ["timezon", "timezone"],
    ["Follow", "follow"],
    ["mian", "main"],
    ["cronn", "cron"],
  ])("%s is near to %s", (word, meant) => {
    expect(nearestWord(word, ["cron", "follow", "main", "schedule", "timezone"])).toBe(meant);
  });

  it("that is near to nothing gets the list instead", () => {
    expect(didYouMean("xyz", ["main", "other"])).toBe("there is main, other");
    expect(didYouMean("x".repeat(100), ["main"])).toBe("there is main");
    expect(didYouMean("xyz", [])).toBeUndefined();
  });
});
