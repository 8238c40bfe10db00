/** The pages of a base: the end of the path, the name, and the key of the shortcut that leads there (after `b`). */

export type BasePlace =
  | "overview"
  | "data"
  | "sql"
  | "schema"
  | "proxy"
  | "freshness"
  | "runs"
  | "issues"
  | "settings"
  | "connect";

export interface BasePage {
  place: BasePlace;
  suffix: string;
  text: string;
  /** Its name in a list that also has pages of the account. */
  longText?: string;
  key: string;
}

/** In the order of the tabs. */
export const baseTabs: BasePage[] = [
  { place: "overview", suffix: "", text: "Overview", key: "o" },
  { place: "data", suffix: "/data", text: "Data", key: "d" },
  { place: "sql", suffix: "/sql", text: "SQL", longText: "SQL editor", key: "q" },
  { place: "schema", suffix: "/schema", text: "Schema", key: "s" },
  { place: "proxy", suffix: "/proxy", text: "Proxy", key: "p" },
  { place: "freshness", suffix: "/freshness", text: "Freshness", key: "f" },
  { place: "runs", suffix: "/runs", text: "Runs", key: "r" },
  { place: "issues", suffix: "/issues", text: "Issues", key: "i" },
  { place: "settings", suffix: "/settings", text: "Settings", longText: "Settings of this base", key: "t" },
];

/** Connect has a button in place of a tab. */
export const basePlaces: BasePage[] = [
  ...baseTabs,
  { place: "connect", suffix: "/connect", text: "Connect", key: "c" },
];
