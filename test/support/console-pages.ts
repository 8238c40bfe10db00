/**
 * Every page of the console and an address of it, for tests and benches that open all of them. A unit test compares the
 * list with the console's routes, so that a new page cannot be forgotten.
 */
import { loadDocs } from "../../apps/console/docs/site";

/** What the addresses name; `ConsoleScene` makes it. */
export interface PageIds {
  base: string;
  table: string;
  record: string;
  token: string;
  agent: string;
  connection: string;
  sqlUser: string;
  webhook: string;
  workspace: string;
  changeSet: string;
  member: string;
  statusToken: string;
  invitation: string;
  resetToken: string;
  /** A draft that has a key, a base and a destination. */
  draft: string;
}

export interface PageVisit {
  /** The route that answers. */
  route: string;
  path: string;
  isVisitor: boolean;
  isFragment: boolean;
}

type Address = string | ((ids: PageIds) => string | string[]);

/** Pages for visitors. */
const PUBLIC: Record<string, Address> = {
  "/": "/",
  "/docs": "/docs",
  "/llms.txt": "/llms.txt",
  "/skills/basetide/SKILL.md": "/skills/basetide/SKILL.md",
  "/docs/search": "/docs/search?q=webhook",
  "/docs/api": "/docs/api",
  "/docs/files/*": "/docs/files/monitoring",
  "/docs/*": () => loadDocs().groups.flatMap(({ entries }) => entries.map(({ href }) => href)),
  "/sign-in": "/sign-in",
  "/sign-in/code": "/sign-in/code",
  "/forgot-password": "/forgot-password",
  "/reset-password": ({ resetToken }) => `/reset-password?token=${resetToken}`,
  "/signup": "/signup",
  "/verify-email": "/verify-email?token=x",
  "/invitation": ({ invitation }) => `/invitation?token=${invitation}`,
  "/status/:token": ({ statusToken }) => `/status/${statusToken}`,
};

/** Pages of the account and of the operator. */
const ACCOUNT: Record<string, Address> = {
  "/account": "/account",
  "/account/sign-in/two-factor": "/account/sign-in/two-factor",
  "/account/members": "/account/members",
  "/account/members/:id/remove": ({ member }) => `/account/members/${member}/remove`,
  "/account/tokens": "/account/tokens",
  "/account/connections": "/account/connections",
  "/account/connections/:id/revoke": ({ connection }) => `/account/connections/${connection}/revoke`,
  "/account/tokens/:id/revoke": ({ token }) => `/account/tokens/${token}/revoke`,
  "/account/agents": "/account/agents",
  "/account/agents/:id": ({ agent }) => `/account/agents/${agent}`,
  "/account/agents/:id/token": ({ agent }) => `/account/agents/${agent}/token`,
  "/account/agents/:id/revoke": ({ agent }) => `/account/agents/${agent}/revoke`,
  "/account/proposals": "/account/proposals",
  "/account/status": "/account/status",
  "/account/activity": "/account/activity",
  "/account/alerts": "/account/alerts",
  "/account/alerts/webhooks/:id": ({ webhook }) => `/account/alerts/webhooks/${webhook}`,
  "/account/alerts/webhooks/:id/delete": ({ webhook }) => `/account/alerts/webhooks/${webhook}/delete`,
  "/account/workspaces": "/account/workspaces",
  "/account/workspaces/:id": ({ workspace }) => `/account/workspaces/${workspace}`,
  "/account/workspaces/:id/delete": ({ workspace }) => `/account/workspaces/${workspace}/delete`,
  "/requests": "/requests",
  "/search": "/search?q=products",
  "/operator": "/operator",
  "/operator/requests": "/operator/requests",
  "/operator/clusters": "/operator/clusters",
  "/operator/bases/:id": ({ base }) => `/operator/bases/${base}`,
  "/operator/accounts": "/operator/accounts",
};

const ONBOARDING: Record<string, Address> = {
  "/new": "/new",
  "/new/:id/key": ({ draft }) => `/new/${draft}/key`,
  "/new/:id/base": ({ draft }) => `/new/${draft}/base`,
  "/new/:id/destination": ({ draft }) => `/new/${draft}/destination`,
  "/new/:id/start": ({ draft }) => `/new/${draft}/start`,
  "/new/:id/selection": ({ draft }) => `/new/${draft}/selection`,
};

const BASES: Record<string, Address> = {
  "/bases": "/bases",
  "/bases/:id": ({ base }) => `/bases/${base}`,
  "/bases/:id/changes": ({ base }) => `/bases/${base}/changes`,
  "/bases/:id/writes": ({ base }) => `/bases/${base}/writes`,
  "/bases/:id/changes/:set": ({ base, changeSet }) => `/bases/${base}/changes/${changeSet}`,
  "/bases/:id/freshness": ({ base }) =>
    ["1h", "24h", "30d"].map((range) => `/bases/${base}/freshness?range=${range}`),
  "/bases/:id/runs": ({ base }) => `/bases/${base}/runs`,
  "/bases/:id/issues": ({ base }) => `/bases/${base}/issues`,
  "/bases/:id/schema-changes": ({ base }) => `/bases/${base}/schema-changes`,
  "/bases/:id/issues/records": ({ base, table }) =>
    `/bases/${base}/issues/records?table=${table}&field=price&reason=not+a+number`,
  "/bases/:id/settings": ({ base }) => `/bases/${base}/settings`,
  "/bases/:id/selection": ({ base }) => `/bases/${base}/selection`,
  "/bases/:id/settings/:name": ({ base }) => `/bases/${base}/settings/lookups_as_text?value=on`,
  "/bases/:id/delete": ({ base }) => `/bases/${base}/delete`,
  "/bases/:id/sync": ({ base }) => `/bases/${base}/sync`,
  "/bases/:id/attachment-links/revoke": ({ base }) => `/bases/${base}/attachment-links/revoke`,
  "/bases/:id/schema": ({ base, table }) =>
    ["", `?table=${table}`, "?as=sql", "?as=mermaid", "?as=dbt", "?as=types"].map(
      (view) => `/bases/${base}/schema${view}`,
    ),
  "/bases/:id/names": ({ base, table }) => `/bases/${base}/names?table=${table}`,
  "/bases/:id/sql": ({ base }) => `/bases/${base}/sql`,
  "/bases/:id/connect": ({ base, sqlUser }) =>
    ["", `?user=${sqlUser}`].map((query) => `/bases/${base}/connect${query}`),
  "/bases/:id/sql-users/:user/rotate": ({ base, sqlUser }) => `/bases/${base}/sql-users/${sqlUser}/rotate`,
  "/bases/:id/sql-users/:user/revoke": ({ base, sqlUser }) => `/bases/${base}/sql-users/${sqlUser}/revoke`,
  "/bases/:id/ready": ({ base }) => `/bases/${base}/ready`,
  "/bases/:id/proxy": ({ base }) => `/bases/${base}/proxy`,
  "/bases/:id/data/:table": ({ base, table }) => `/bases/${base}/data/${table}`,
  "/bases/:id/data/:table/:record": ({ base, table, record }) => `/bases/${base}/data/${table}/${record}`,
};

/** Parts of pages, which htmx requests. */
const FRAGMENTS: Record<string, Address> = {
  "/bases/:id/live": ({ base }) => `/bases/${base}/live`,
  "/bases/:id/sql/history": ({ base }) => `/bases/${base}/sql/history`,
  "/bases/:id/settings/indexes/columns": ({ base, table }) =>
    `/bases/${base}/settings/indexes/columns?table=${table}`,
};

/** Routes that answer with something else than a page: data, files, redirects. */
export const notPages = [
  "/openapi",
  "/healthz",
  "/readyz",
  "/metrics",
  "/mcp",
  "/.well-known/oauth-protected-resource",
  "/.well-known/oauth-protected-resource/mcp",
  "/.well-known/oauth-authorization-server",
  "/oauth2/authorize",
  "/attachments/:baseId/:tableId/:recordId/:fieldId/:attachmentId",
  "/assets/:file",
  "/downloads/basetide-redirect.mjs",
  "/sign-in/with/:provider",
  "/auth/callback/:provider",
  "/account/sign-in/services/:provider/link",
  "/new/:id",
  "/bases/:id/schema.sql",
  "/bases/:id/dbt-sources.yml",
  "/bases/:id/er-diagram.mmd",
  "/bases/:id/types/:lang/:file",
  "/bases/:id/sql/names",
  "/bases/:id/data",
  "/bases/:id/data/:table/download",
  "/bases/:id/data/:table/filters",
  "/bases/:id/thumbnails/:table/:record/:field/:attachment",
];

const groups = [PUBLIC, ACCOUNT, ONBOARDING, BASES, FRAGMENTS];

/** The routes of all pages. */
export const pageRoutes = groups.flatMap((group) => Object.keys(group));

/** Every page, with an address. */
export function pageVisits(ids: PageIds): PageVisit[] {
  return groups.flatMap((group) =>
    Object.entries(group).flatMap(([route, address]) => {
      const paths = typeof address === "string" ? address : address(ids);
      const kind = { isVisitor: group === PUBLIC, isFragment: group === FRAGMENTS };
      return [paths].flat().map((path) => ({ route, path, ...kind }));
    }),
  );
}
