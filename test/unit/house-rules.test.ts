// The rules of the house that no linter knows (CONTRIBUTING.md), checked by a scan of the text.
import { readdirSync, readFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { describe, expect, it } from "vitest";

const root = resolve(import.meta.dirname, "../..");

const filesOf = (folder: string) =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => /\.m?ts$|\.mjs$/.test(name) && !name.includes("node_modules"))
    .map((name) => `${folder}/${name.replaceAll("\\", "/")}`)
    .map((name) => ({ name, text: readFileSync(join(root, name), "utf8") }));
const files = filesOf("src");

/** Words that name no actor. */
const vague = /\b(whoever|nobody|somebody|anybody)\b/i;

/** The code without its comments; strings stay, as far as they hold no " //". */
const withoutComments = (text: string) => text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/(^|\s)\/\/.*$/gm, "$1");

const filesWith = (pattern: RegExp, exceptIn: string[] = []) =>
  files
    .filter(({ name, text }) => !exceptIn.includes(name) && pattern.test(withoutComments(text)))
    .map(({ name }) => name);

/**
 * `file:line` of every export whose line before is not the end of a docstring. Overloads share one.
 */
function undocumentedExports({ name, text }: { name: string; text: string }): string[] {
  const lines = text.split("\n");
  const named = /^export (?:declare )?(?:abstract )?(?:async )?(?:function\*?|const|let|class|interface|type) (\w+)/;
  const seen = new Set<string>();
  return lines.flatMap((line, index) => {
    const exported = named.exec(line)?.[1];
    if (exported === undefined || seen.has(exported)) return [];
    seen.add(exported);
    return lines[index - 1]?.trimEnd().endsWith("*/") ? [] : [`${name}:${index + 1} ${exported}`];
  });
}

describe("every file of src/", () => {
  it("is found at all", () => {
    expect(files.length).toBeGreaterThan(5);
  });

  it("opens with a comment that says what it is", () => {
    const bare = files.filter(({ text }) => !/^(#!.*\n)?(\/\/ \S|\/\*)/.test(text));
    expect(bare.map(({ name }) => name)).toEqual([]);
  });

  it("has a docstring on every export", () => {
    expect(files.flatMap(undocumentedExports)).toEqual([]);
  });

  it("is no barrel and has a name that says something", () => {
    const empty = /^(index|utils?|common|helpers?|misc)\.ts$/;
    expect(files.map(({ name }) => name).filter((name) => empty.test(basename(name)))).toEqual([]);
  });

  it("names an actor: the worker, a replica, the operator", () => {
    expect(files.filter(({ text }) => vague.test(text)).map(({ name }) => name)).toEqual([]);
  });

  it("leaves nothing for later", () => {
    const later = files.filter(({ text }) => /\b(TODO|FIXME|XXX|HACK)\b/.test(text));
    expect(later.map(({ name }) => name)).toEqual([]);
  });
});

describe("comments", () => {
  it("have at most 100 columns", () => {
    // Pictures, tables and what has no space to break at stay as they are.
    const isFixed = (line: string) => /[─▶│└┌┐▼◀├]|\S {2,}\S|\S{80}|biome-ignore/.test(line);
    const isWide = (line: string) => /^\s*(\/\/|\/?\*)/.test(line) && line.length > 100 && !isFixed(line);
    const wide = ["src", "test", "scripts"]
      .flatMap(filesOf)
      .flatMap(({ name, text }) =>
        text.split("\n").flatMap((line, index) => (isWide(line) ? [`${name}:${index + 1}`] : [])),
      );
    expect(wide).toEqual([]);
  });
});

describe("the title of every test", () => {
  // The second form is that of `it.each(table)("title", …)`.
  const titled = /(?:\b(?:it|test|describe)(?:\.\w+)*(?:<[^>]*>)?|\))\(\s*("(?:[^"\\\n]|\\.)*"|`[^`]*`)/g;
  const titles = filesOf("test")
    .filter(({ name }) => name.endsWith(".test.ts"))
    .flatMap(({ name, text }) =>
      [...text.matchAll(titled)].map(([, title = ""]) => ({ name, title: title.slice(1, -1) })),
    );

  it("has at most 80 characters", () => {
    expect(titles.length).toBeGreaterThan(1000);
    expect(titles.filter(({ title }) => title.length > 80)).toEqual([]);
  });

  it("names an actor", () => {
    expect(titles.filter(({ title }) => vague.test(title))).toEqual([]);
  });
});

describe("the single doors that are no imports", () => {
  it("time and timers are in core/clock.ts only", () => {
    const time = /\bDate\.now\b|\bnew Date\(\)|\bperformance\.now\b|\bset(Timeout|Interval)\(|["']node:timers/;
    expect(filesWith(time, ["src/core/clock.ts"])).toEqual([]);
  });

  it("process.env is in config/settings.ts only", () => {
    expect(filesWith(/\bprocess\.env\b|\benv\b[^;]*["']node:process["']/, ["src/config/settings.ts"])).toEqual([]);
  });

  it("process.exit is in main.ts only", () => {
    expect(filesWith(/\bprocess\.exit\b/, ["src/main.ts"])).toEqual([]);
  });
});
