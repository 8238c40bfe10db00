/**
 * Which permission each route of the console needs. `page-kit.tsx` checks it for pages, `bearer-auth.ts` for the API;
 * tests walk all routes with each role and each scope.
 *
 * A1. A route without a rule needs `read` if it only reads, else `write`: a new route is never open to more than that.
 */
import {
  type AgentScope,
  type CurrentUser,
  can,
  denial,
  isInScope,
  type Permission,
  type Role,
  scopeLabels,
  type TokenScope,
} from "../../core/control/accounts";
import { BasetideError } from "../../core/errors";
import type { May } from "../../views/components";

type Rule = [method: "GET" | "POST" | "ANY", route: RegExp, permission: Permission];

/** The first that matches decides. */
const pageRules: Rule[] = [
  // The user's own password, sessions and alerts, and the account that the session shows.
  ["POST", /^\/account\/(password|sessions\/.*|switch|alerts|sign-in\/.*)$/, "own"],
  ["POST", /^\/invitation$/, "own"],
  // Members may leave; the route itself allows only the owner to remove others.
  ["ANY", /^\/account\/members\/:id\/remove$/, "own"],
  ["POST", /^\/account\/(members|invitations)(\/.*)?$/, "members"],
  // What an agent changes without a person is the owner's decision.
  ["POST", /^\/account\/agents\/:id\/rules$/, "members"],
  ["ANY", /^\/account\/agents\/:id\/token$/, "credentials"],
  // The operator's pages have a check of their own.
  ["ANY", /^\/operator(\/.*)?$/, "own"],
  ["ANY", /^\/bases\/:id\/(connect|ready|sql-users)(\/.*)?$/, "credentials"],
  ["ANY", /^\/new(\/.*)?$/, "write"],
  ["ANY", /^\/oauth2\/authorize$/, "credentials"],
  ["POST", /^\/account\/connections\/.*$/, "credentials"],
  ["GET", /^\/bases\/:id\/delete$/, "write"],
  // It costs calls to the source.
  ["GET", /^\/bases\/:id\/selection$/, "write"],
  // The result of a query is read, whatever the method.
  ["POST", /^\/bases\/:id\/sql(\/(csv|rows))?$/, "read"],
  ["POST", /^\/bases\/:id\/sql\/history\/clear$/, "own"],
];

const apiRules: Rule[] = [
  ["POST", /^\/api\/v1\/agents\/:id\/rules$/, "members"],
  ["ANY", /^\/api\/v1\/(bases\/:id\/(credentials|sql-users)|agents|connections)(\/.*)?$/, "credentials"],
  ["POST", /^\/api\/v1\/members\/.*$/, "members"],
];

/** @param route the pattern, with `:id` for an id */
export function permissionFor(method: string, route: string): Permission {
  const isRead = method === "GET" || method === "HEAD";
  const asked = isRead ? "GET" : "POST";
  const rules = route.startsWith("/api/") ? apiRules : pageRules;
  const rule = rules.find(([of, pattern]) => (of === "ANY" || of === asked) && pattern.test(route));
  return rule?.[2] ?? (isRead ? "read" : "write");
}

/** Pages that only ask for a confirmation: a link to one is as good as its form. */
const CONFIRMATION = /\/(delete|revoke|rotate|sync)$/;

/** Returns what pages offer to a member with this role: what the rules of the routes allow. */
export function offersTo(role: Role): May {
  return (method, path) => {
    const route = routeOf(path);
    if (method === "GET" && CONFIRMATION.test(route) && !can(role, permissionFor("POST", route)))
      return false;
    return can(role, permissionFor(method, route));
  };
}

/** The pattern of a path's route, as far as the rules distinguish routes. */
export function routeOf(path: string): string {
  return path
    .replace(/[?#].*$/s, "")
    .replace(/^\/bases\/[^/]+/, "/bases/:id")
    .replace(/^(\/account\/agents)\/[^/]+/, "$1/:id")
    .replace(/^(\/account\/members)\/[^/]+\/remove$/, "$1/:id/remove");
}

/** @throws BasetideError `forbidden` if the user's role in the account does not allow the route */
export function requireRole(
  { account: { role } }: Pick<CurrentUser, "account">,
  permission: Permission,
): void {
  if (!can(role, permission)) throw new BasetideError("forbidden", denial(role, permission));
}

/** @throws BasetideError `forbidden` with the scope that is missing, or the role of the token's creator */
export function requireScope(
  token: { scopes: readonly (TokenScope | AgentScope)[]; role: CurrentUser["account"]["role"] },
  permission: Permission,
): void {
  if (token.scopes.some((scope) => scope.startsWith("agent:")))
    throw new BasetideError("forbidden", "This is the token of an agent, which works at /mcp only");
  if (!isInScope(token.scopes, permission)) {
    const missing = permission === "members" ? "write" : permission;
    const label = scopeLabels[missing as TokenScope].label.toLowerCase();
    throw new BasetideError(
      "forbidden",
      `This token does not have the scope ${label}. Create one that has, under API in the console`,
    );
  }
  if (can(token.role, permission)) return;
  throw new BasetideError(
    "forbidden",
    permission === "members"
      ? "Only a token of the account's owner may remove members"
      : `This token's creator has the role ${token.role}, which does not allow this`,
  );
}
