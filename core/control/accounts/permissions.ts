/**
 * Who may do what in an account: the only table of it.
 *
 * The console's pages and the management API both ask `can`, each in one place: `apps/console/access.ts` says which
 * permission a route needs.
 */

/** Members of an account, from the fewest permissions to the most. */
export const roles = ["viewer", "editor", "owner"] as const;

export type Role = (typeof roles)[number];

/** The roles that an owner can give. */
export const givenRoles = ["viewer", "editor"] as const;

export type GivenRole = (typeof givenRoles)[number];

/** What a token of the API may be limited to. */
export const scopes = ["read", "write", "credentials"] as const;

export type TokenScope = (typeof scopes)[number];

/** What an agent's token may do: it has no access to the API. */
export const agentScopes = ["agent:read", "agent:propose"] as const;

export type AgentScope = (typeof agentScopes)[number];

/**
 * `own`: what belongs to the user and not to the account, such as a password. `members`: who belongs to the account.
 */
export type Permission = TokenScope | "own" | "members";

const holders: Record<Permission, readonly Role[]> = {
  own: ["viewer", "editor", "owner"],
  read: ["viewer", "editor", "owner"],
  write: ["editor", "owner"],
  credentials: ["editor", "owner"],
  members: ["owner"],
};

export const roleLabels: Record<Role, { label: string; hint: string }> = {
  viewer: { label: "Viewer", hint: "Sees bases, rows and settings. Changes nothing, and sees no passwords." },
  editor: { label: "Editor", hint: "Also connects bases, changes settings and sees passwords." },
  owner: { label: "Owner", hint: "Also invites and removes members." },
};

export const scopeLabels: Record<TokenScope, { label: string; hint: string }> = {
  read: { label: "Read", hint: "Bases, their state, settings and usage." },
  write: { label: "Write", hint: "Connect, change, sync and delete bases; change alerts and workspaces." },
  credentials: {
    label: "Credentials",
    hint: "Read and rotate database passwords; create and revoke SQL users.",
  },
};

/** Whether a member with this role has the permission. */
export function can(role: Role, permission: Permission): boolean {
  return holders[permission].includes(role);
}

/** What a member is told who lacks the permission. */
export function denial(role: Role, permission: Permission): string {
  const remedy =
    permission === "members"
      ? "Only the owner of the account may do this"
      : "Ask the account's owner for the role editor";
  return permission === "members"
    ? remedy
    : `Your role in this account is ${role}, which does not allow this. ${remedy}`;
}

/** Whether a token with these scopes may use the permission; managing members is writing, too. */
export function isInScope(granted: readonly (TokenScope | AgentScope)[], permission: Permission): boolean {
  if (permission === "own") return true;
  return granted.includes(permission === "members" ? "write" : permission);
}
