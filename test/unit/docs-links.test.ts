/** The pages: every link leads somewhere, every page can be reached from the README, every command exists. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { expect, test } from "vitest";
import { repoFiles, repoRoot } from "../support/source-files";

const pages = repoFiles().filter((path) => path.endsWith(".md"));
const read = (path: string) => readFileSync(join(repoRoot, path), "utf8");

/** Without code: links there are examples. */
function prose(markdown: string): string {
  return markdown.replace(/^(`{3,}).*?^\1/gms, "").replace(/`[^`\n]*`/g, "code");
}

/** The targets of the page's links, outside of the web. */
function linksOf(markdown: string): string[] {
  const targets = [...prose(markdown).matchAll(/\]\(([^)\s]+)(?:\s+"[^"]*")?\)/g)].map(
    ([, target]) => target!,
  );
  return targets.filter((target) => !/^[a-z][a-z0-9+.-]*:/i.test(target));
}

/** The anchors of a page's headings, as GitHub creates them. */
function anchorsOf(markdown: string): Set<string> {
  const anchors = new Set<string>();
  const headings = markdown.replace(/^(`{3,}).*?^\1/gms, "").matchAll(/^#{1,6}\s+(.+?)\s*#*$/gm);
  for (const [, heading = ""] of headings) {
    const text = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").replace(/[`*]/g, "");
    const slug = text
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\p{M}\s_-]/gu, "")
      .replace(/\s/g, "-");
    let anchor = slug;
    for (let count = 1; anchors.has(anchor); count++) anchor = `${slug}-${count}`;
    anchors.add(anchor);
  }
  return anchors;
}

/** The error of a link on the page `from`; undefined: none. */
function faultOf(from: string, link: string): string | undefined {
  const [path = "", anchor] = link.split("#");
  const target = path === "" ? from : normalize(join(dirname(from), decodeURIComponent(path)));
  if (target.startsWith("..") || !existsSync(join(repoRoot, target))) return `${from}: ${link} leads nowhere`;
  if (anchor === undefined) return undefined;
  const isThere = target.endsWith(".md") && anchorsOf(read(target)).has(anchor);
  return isThere ? undefined : `${from}: ${link} names a section that is not there`;
}

test.each(pages)("every link of %s leads to an existing file and section", (page) => {
  expect(linksOf(read(page)).flatMap((link) => faultOf(page, link) ?? [])).toEqual([]);
});

test("every page can be reached from the README, which names each one except decisions", () => {
  const named = new Set(linksOf(read("README.md")).map((link) => normalize(link.split("#")[0]!)));
  const decisions = new Set(
    linksOf(read("docs/adr/README.md")).map((link) => normalize(join("docs/adr", link.split("#")[0]!))),
  );
  expect(pages.filter((page) => page !== "README.md" && !named.has(page) && !decisions.has(page))).toEqual(
    [],
  );
});

test("every `bun run` on a page is a script of package.json, and every bench exists", () => {
  const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
  const benches = read("test/bench/main.ts");
  const wrong = pages.flatMap((page) => {
    const given = [...read(page).matchAll(/\bbun(?:@[\d.]+)? run ([a-z]+)(?: ([a-z][a-z-]*))?/g)];
    return given
      .filter(([, script = "", name]) => {
        const isBench = script === "bench" && name !== undefined;
        return !scripts[script] || (isBench && !benches.includes(`import("./${name}")`));
      })
      .map(([command]) => `${page}: ${command}`);
  });
  expect(wrong).toEqual([]);
});

test("headings become the anchors that links name, and broken links are reported", () => {
  const page = "# One `two`: three\n\n## A, b\n\n## A, b\n\n```sh\n# none\n```\n";
  expect([...anchorsOf(page)]).toEqual(["one-two-three", "a-b", "a-b-1"]);
  expect(linksOf("[a](b.md) `[c](d.md)` [e](https://f.example)")).toEqual(["b.md"]);
  expect(faultOf("README.md", "docs/none.md")).toMatch(/leads nowhere/);
  expect(faultOf("README.md", "docs/sql.md#none")).toMatch(/not there/);
  expect(faultOf("docs/sql.md", "#history")).toBeUndefined();
});

test("every promise of the threat model names existing tests", () => {
  const rows = read("docs/security.md")
    .split("\n")
    .filter((line) => line.includes(".test.ts`"));
  const named = rows.flatMap((row) => [...row.matchAll(/`((?:unit|integration|security)\/[^`]+\.ts)`/g)]);
  expect(rows.length).toBeGreaterThan(40);
  expect(named.map(([, path]) => path!).filter((path) => !existsSync(join(repoRoot, "test", path)))).toEqual(
    [],
  );
});
