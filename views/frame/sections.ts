/** The sections of an account, to which the sidebar and the shortcuts lead. */
import type { IconName } from "../components/icon";

/** The sections of the console, by the name that a page gives as `active`. */
export type NavItem =
  | "search"
  | "bases"
  | "usage"
  | "alerts"
  | "members"
  | "agents"
  | "api"
  | "settings"
  | "help"
  | "operator";

/** In the order of the sidebar. `key`: that of the shortcut that leads there, after `g`. */
export const sections: { name: NavItem & IconName; href: string; text: string; key?: string }[] = [
  { name: "bases", href: "/bases", text: "Bases", key: "b" },
  { name: "usage", href: "/account/workspaces", text: "Usage", key: "u" },
  { name: "alerts", href: "/account/alerts", text: "Alerts", key: "a" },
  { name: "members", href: "/account/members", text: "Team", key: "t" },
  { name: "agents", href: "/account/agents", text: "Agents" },
  { name: "api", href: "/account/tokens", text: "API", key: "p" },
  { name: "settings", href: "/account", text: "Settings", key: "s" },
];
