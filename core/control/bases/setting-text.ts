/** Texts that are generated from the table of settings. */
import type { Setting } from "./setting-values";
import type { Interrupts } from "./settings";

/** What a change of a setting does to a running sync. */
export const interruption: Record<Interrupts, string> = {
  nothing: "",
  updates: "A running sync starts over, unless it is a first sync or a rebuild.",
  "every sync": "A running sync starts over.",
};

/** Returns the console's notice after a setting was changed. */
export function savedText({ interrupts }: Setting): string {
  return `Saved. ${interruption[interrupts]}`.trim();
}
