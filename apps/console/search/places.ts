/** The pages, actions and settings that the search knows besides an account's own things. */
import { can, type Permission, type Role } from "../../../core/control/accounts";
import { settingList, settingSections } from "../../../core/control/bases";
import { basePlaces } from "../../../views/base/pages";
import type { SearchItem } from "../../../views/search/results";

type Place = Omit<SearchItem, "kind">;

export interface BaseContext {
  id: string;
  name: string;
}

/** Of the account. */
const accountPages: Place[] = [
  { text: "Bases", href: "/bases" },
  { text: "Usage", href: "/account/workspaces", aliases: "workspaces calls budget quota" },
  { text: "Alerts", href: "/account/alerts", aliases: "notifications webhook e-mail" },
  { text: "Team", href: "/account/members", aliases: "members users" },
  { text: "Activity", href: "/account/activity", aliases: "audit log team" },
  { text: "Agents", href: "/account/agents", aliases: "ai mcp claude model context protocol" },
  { text: "Proposals", href: "/account/proposals", aliases: "agents approve changes" },
  { text: "API tokens", href: "/account/tokens", aliases: "management" },
  { text: "Status page", href: "/account/status", aliases: "public" },
  { text: "Settings", href: "/account", aliases: "account profile" },
  { text: "Requests to the operator", href: "/requests", aliases: "help support" },
  { text: "Docs", href: "/docs", aliases: "help documentation" },
  { text: "API reference", href: "/docs/api", aliases: "openapi docs" },
];

/** Each leads to its form: nothing happens before that is sent. Members without the permission do not see it. */
type Action = Place & { needs: Permission };

const accountActions: Action[] = [
  { text: "Connect a base", href: "/new", aliases: "add new create", needs: "write" },
  { text: "Create token", href: "/account/tokens#new", aliases: "api new", needs: "write" },
  { text: "Create agent", href: "/account/agents#new", aliases: "ai mcp new connect", needs: "write" },
  { text: "Invite a member", href: "/account/members#invite", aliases: "team user add", needs: "members" },
  { text: "Add a webhook", href: "/account/alerts#new-webhook", aliases: "alerts new", needs: "write" },
];

const accountSettings: Place[] = [
  { text: "Change password", href: "/account#change-password", aliases: "sign-in" },
  { text: "Active sessions", href: "/account#sessions", aliases: "sign out devices browsers" },
  { text: "E-mail alerts", href: "/account/alerts#mail", aliases: "notifications" },
];

const otherBaseSettings = [
  ["call-budget", "Call budget", "workspace cap"],
  ["key", "API key", "replace airtable"],
  ["end", "Delete this base", "remove"],
] as const;

export function pageItems(base: BaseContext | undefined, isOperator: boolean): SearchItem[] {
  const own: Place[] = base
    ? basePlaces.map(({ text, longText, suffix }) => ({
        text: longText ?? text,
        ...of(base),
        href: `/bases/${base.id}${suffix}`,
      }))
    : [];
  const operator: Place[] = isOperator
    ? [{ text: "Operator", href: "/operator", aliases: "fleet admin" }]
    : [];
  return [...own, ...accountPages, ...operator].map((place) => ({ ...place, kind: "page" }));
}

export function actionItems(base: BaseContext | undefined, role: Role): SearchItem[] {
  const path = `/bases/${base?.id}`;
  const own: Omit<Action, "about" | "context">[] = [
    { text: "Resync", href: `${path}/sync`, aliases: "sync now refresh read again", needs: "write" },
    { text: "Write a query", href: `${path}/sql`, aliases: "sql run new", needs: "read" },
    {
      text: "Connect a client",
      href: `${path}/connect`,
      aliases: "psql url password sql user",
      needs: "credentials",
    },
  ];
  const actions = [...(base ? own.map((action) => ({ ...action, ...of(base) })) : []), ...accountActions];
  return actions
    .filter(({ needs }) => can(role, needs))
    .map(({ needs: _, ...place }) => ({ ...place, kind: "action" }));
}

/** Those of the base if there is one; otherwise each leads to what the docs say about it. */
export function settingItems(base: BaseContext | undefined): SearchItem[] {
  const own = settingList.flatMap(({ name, label, section, docs }): Place[] => {
    if (!section) return [];
    const aliases = `${settingSections[section]} ${name}`;
    if (base) {
      return [{ text: label, ...of(base), aliases, href: `/bases/${base.id}/settings#${name}` }];
    }
    const href = `/docs/${(docs ?? "syncing.md#settings").replace(".md", "")}`;
    return [{ text: label, about: "Docs", aliases, href }];
  });
  const others = base
    ? otherBaseSettings.map(([anchor, text, aliases]) => ({
        text,
        ...of(base),
        aliases,
        href: `/bases/${base.id}/settings#${anchor}`,
      }))
    : [];
  return [...own, ...others, ...accountSettings].map((place) => ({ ...place, kind: "setting" }));
}

/** Says whose it is, and lets a query name it. */
function of({ name }: BaseContext): Pick<Place, "about" | "context"> {
  return { about: name, context: name };
}
