/**
 * The tables of README and docs that are made from the code: types, configuration, and settings. `bun run readme` writes
 * them; a test holds that they are as the code has them.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { configVariables } from "../../core/config";
import { settingsMarkdown } from "../../core/control/bases/setting-text";
import { typeMapMarkdown } from "../../core/replica/type-map";

const tables: Record<string, () => string> = {
  types: typeMapMarkdown,
  configuration: configurationMarkdown,
  settings: settingsMarkdown,
};

/** The pages that have such tables, and which. */
export const pagesWithTables: Record<string, string[]> = {
  "README.md": ["types", "configuration"],
  "docs/syncing.md": ["settings"],
};

/** A page as it is, and with its tables made from the code. */
export function withTables(page: string): { before: string; after: string } {
  const before = readFileSync(fileOf(page), "utf8");
  const after = before.replace(
    /(<!-- table:(\w+) -->\n)[\s\S]*?(<!-- \/table -->)/g,
    (whole, open: string, name: string, close: string) =>
      tables[name] ? `${open}${tables[name]().trim()}\n${close}` : whole,
  );
  return { before, after };
}

function configurationMarkdown(): string {
  const rows = Object.entries(configVariables).map(([name, variable]) => {
    const shown = "shown" in variable ? variable.shown : `\`${variable.check.parse(undefined)}\``;
    return `| \`${name}\` | ${shown} | ${variable.meaning} |`;
  });
  return ["| variable | default | meaning |", "|---|---|---|", ...rows].join("\n");
}

function fileOf(page: string): URL {
  return new URL(`../../${page}`, import.meta.url);
}

if (import.meta.main) {
  for (const page of Object.keys(pagesWithTables)) writeFileSync(fileOf(page), withTables(page).after);
}
