/**
 * Generates the tables of the docs that describe code: types, configuration, settings, formulas, retention and errors. `bun run readme`
 * writes them; `test/unit/readme.test.ts` checks that they are current.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { configVariables } from "../../core/config";
import { interruption } from "../../core/control/bases/change-effect";
import { type Setting, settingList } from "../../core/control/bases/setting-values";
import { retention, retentionText } from "../../core/control/retention/retention";
import { type ErrorCode, errorCodes, httpStatus, type NextStep, nextStep } from "../../core/errors";
import { translatedFunctions } from "../../core/proxy/reads/formula-functions";
import { typeMap } from "../../core/replica/type-map";

const tables: Record<string, () => string> = {
  types: typeMapMarkdown,
  configuration: configurationMarkdown,
  settings: settingsMarkdown,
  formulas: formulasMarkdown,
  retention: retentionMarkdown,
  errors: errorsMarkdown,
};

/** The names of the generated tables, by page. */
export const pagesWithTables: Record<string, string[]> = {
  "docs/configuration.md": ["configuration"],
  "docs/errors.md": ["errors"],
  "docs/operations.md": ["retention"],
  "docs/proxy.md": ["formulas"],
  "docs/syncing.md": ["settings"],
  "docs/types.md": ["types"],
};

/** Returns a page as it is, and with its tables generated from the code. */
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

/** The settings as a table. */
export function settingsMarkdown(): string {
  const rows = settingList.map((setting) => {
    const { name, effect, docs, interrupts } = setting;
    const more = docs ? `[More](${docs}).` : "";
    const text = [effect, interruption[interrupts], more].filter(Boolean).join(" ");
    return `| \`${name}\` | ${defaultOf(setting)} | ${text} |`;
  });
  return ["| setting | default | effect |", "|---|---|---|", ...rows].join("\n");
}

function defaultOf(setting: Setting): string {
  if (setting.type === "boolean") return setting.default ? "on" : "off";
  return setting.type === "integer" ? String(setting.default) : "none";
}

/** A row per table of the control plane. */
function retentionMarkdown(): string {
  const rows = Object.entries(retention).map(([table, rule]) => `| \`${table}\` | ${retentionText(rule)} |`);
  return ["| table | how long a row is kept, or what limits their number |", "|---|---|", ...rows].join("\n");
}

/** What a sync does that meets an error. */
const afterwards: Record<NextStep, string> = {
  retry: "tries again",
  wait: "waits",
  restart_table: "reads the table again",
  check_schema: "reads the schema again",
  needs_attention: "waits for you, and tries again every few minutes",
  stop: "ends",
};

/** The cause of an error, and its remedy: the first sentence of its text, and the others. */
export function causeAndRemedy(code: ErrorCode): [string, string] {
  const [, cause = "", remedy = ""] = /^(.+?\.)(?: (.+))?$/.exec(errorCodes[code])!;
  return [cause, remedy];
}

/** A row per error code. */
function errorsMarkdown(): string {
  const rows = (Object.keys(errorCodes) as ErrorCode[]).map((code) => {
    const [cause, remedy] = causeAndRemedy(code);
    return `| \`${code}\` | ${httpStatus[code]} | ${cause} | ${remedy} | ${afterwards[nextStep[code]]} |`;
  });
  return ["| code | status | cause | remedy | a sync |", "|---|---|---|---|---|", ...rows].join("\n");
}

/** A row per function, by name. */
function formulasMarkdown(): string {
  const rows = Object.entries(translatedFunctions)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, { form, only }]) => `| ${form} | ${only ?? ""} |`);
  return ["| function | only |", "|---|---|", ...rows].join("\n");
}

/** A row per field type, by label. */
export function typeMapMarkdown(): string {
  const rows = Object.values(typeMap)
    .sort(
      (a, b) => Number(a === typeMap.unknown) - Number(b === typeMap.unknown) || (a.label < b.label ? -1 : 1),
    )
    .map(({ label, column, note, instead }) => {
      const other = instead ? `; \`${instead.column}\` ${instead.shown}` : "";
      return `| ${label} | \`${column}\`${other} | ${note} |\n`;
    });
  return `| Airtable field type | Column type | Stored value |\n| --- | --- | --- |\n${rows.join("")}`;
}

function fileOf(page: string): URL {
  return new URL(`../../${page}`, import.meta.url);
}

if (import.meta.main) {
  for (const page of Object.keys(pagesWithTables)) writeFileSync(fileOf(page), withTables(page).after);
}
