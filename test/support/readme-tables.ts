/**
 * The README's tables that are made from the code: types and configuration. `bun run readme` writes them; a test
 * holds that they are as the code has them.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { configVariables } from "../../core/config";
import { typeMapMarkdown } from "../../core/replica/type-map";

const README = new URL("../../README.md", import.meta.url);

const tables: Record<string, () => string> = { types: typeMapMarkdown, configuration: configurationMarkdown };

/** The README with its tables made anew. */
export function readmeWithTables(): { before: string; after: string } {
  const before = readFileSync(README, "utf8");
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

if (import.meta.main) writeFileSync(README, readmeWithTables().after);
