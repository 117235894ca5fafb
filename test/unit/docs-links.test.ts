// Links between pages: each leads to a file that is there, and to a heading that it has.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { describe, expect, it } from "vitest";

const root = resolve(import.meta.dirname, "../..");
const pages = [
  ...readdirSync(root).filter((name) => name.endsWith(".md")),
  ...["docs", "helm"].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".md"))
      .map((name) => join(folder, name)),
  ),
];
const read = (page: string) => readFileSync(join(root, page), "utf8");
const withoutCode = (text: string) => text.replace(/^```[\s\S]*?^```/gm, "").replace(/`[^`\n]*`/g, "");

/** The anchors of a page's headings, as code hosts make them. */
function anchorsOf(page: string): Set<string> {
  const headings = [
    ...read(page)
      .replace(/^```[\s\S]*?^```/gm, "")
      .matchAll(/^#+ (.+)$/gm),
  ];
  return new Set(
    headings.map(([, text = ""]) =>
      text
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );
}

describe("the pages", () => {
  it.each(pages)("%s links to what is there", (page) => {
    const links = [...withoutCode(read(page)).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = ""]) => link);
    const broken = links.filter((link) => {
      if (/^[a-z]+:/.test(link)) return false;
      const [path = "", anchor] = link.split("#");
      const target = path === "" ? page : relative(root, resolve(root, dirname(page), path));
      if (!existsSync(join(root, target))) return true;
      return anchor !== undefined && target.endsWith(".md") && !anchorsOf(target).has(anchor);
    });
    expect(broken).toEqual([]);
  });

  it("are linked: README's table, the runbooks' list, the decisions' folder", () => {
    const table = read("README.md").split("## Pages")[1] ?? "";
    const single = pages.filter((page) => page !== "README.md" && !/^docs\/(runbooks|decisions)\//.test(page));
    expect(single.filter((page) => !table.includes(`](${page})`))).toEqual([]);
    expect(table).toContain("](docs/runbooks/README.md)");
  });
});
