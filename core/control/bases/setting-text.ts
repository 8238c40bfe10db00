/** Texts that are generated from the table of settings: the notice after a change, and the table in the docs. */
import { type Setting, settingList } from "./setting-values";
import type { Interrupts } from "./settings";

const interruption: Record<Interrupts, string> = {
  nothing: "",
  updates: "A running sync starts over, unless it is a first sync or a rebuild.",
  "every sync": "A running sync starts over.",
};

/** Returns the console's notice after a setting was changed. */
export function savedText({ interrupts }: Setting): string {
  return `Saved. ${interruption[interrupts]}`.trim();
}

/** The settings as a table in Markdown, for a page in `docs/`. */
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
