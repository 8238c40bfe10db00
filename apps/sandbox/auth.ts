/**
 * Access tokens: their users, what they may do (scopes), and where (bases, and the role in each).
 */
import { malformedToken, notPermitted, permissionsOrModelNotFound, unauthenticated } from "./errors";
import type { User } from "./model";
import { DEFAULT_USER } from "./store";

/** Roles in ascending order; each includes the rights of those before it. */
const LEVELS = ["none", "read", "comment", "edit", "create"] as const;
export type PermissionLevel = (typeof LEVELS)[number];

const ALL_SCOPES = [
  "data.records:read",
  "data.records:write",
  "data.recordComments:read",
  "data.recordComments:write",
  "schema.bases:read",
  "schema.bases:write",
  "webhook:manage",
  "user.email:read",
] as const;
export type Scope = (typeof ALL_SCOPES)[number];

export interface AccessKey {
  token: string;
  /** The part of the token before the dot; safe to log. */
  tokenId: string;
  user: User;
  scopes: ReadonlySet<string>;
  /** Role by base id, or one role for every base. */
  bases: PermissionLevel | Record<string, PermissionLevel>;
  isOAuth: boolean;
}

export interface KeyOptions {
  /** Generated if absent. */
  token?: string;
  user?: User;
  /** All scopes if absent. */
  scopes?: string[];
  /** `create` everywhere if absent. */
  bases?: PermissionLevel | Record<string, PermissionLevel>;
  /** An OAuth token: whoami also returns its scopes. */
  isOAuth?: boolean;
}

/** The key that every sandbox accepts. It is of no use anywhere else. */
export const DEFAULT_KEY = `patSandboxDefault.${"0".repeat(64)}`;

export class Keys {
  readonly #byToken = new Map<string, AccessKey>();

  constructor() {
    this.reset();
  }

  reset(): void {
    this.#byToken.clear();
    this.create({ token: DEFAULT_KEY });
  }

  create(options: KeyOptions = {}): AccessKey {
    const token = options.token ?? `pat${randomText(14)}.${randomText(64)}`;
    const key: AccessKey = {
      token,
      tokenId: token.split(".")[0]!,
      user: options.user ?? DEFAULT_USER,
      scopes: new Set(options.scopes ?? ALL_SCOPES),
      bases: options.bases ?? "create",
      isOAuth: options.isOAuth ?? false,
    };
    this.#byToken.set(token, key);
    return key;
  }

  /** @returns whether the key existed */
  revoke(token: string): boolean {
    return this.#byToken.delete(token);
  }

  list(): AccessKey[] {
    return [...this.#byToken.values()];
  }

  /**
   * Returns the key of an `Authorization` header.
   *
   * @throws ApiError 401
   */
  authenticate(header: string | null): AccessKey {
    const token = header?.startsWith("Bearer ") ? header.slice(7).trim() : "";
    const key = this.#byToken.get(token);
    if (key) return key;
    // A PAT has exactly one dot; without it, the client sent only the token's id.
    throw token.startsWith("pat") && token.split(".").length !== 2 ? malformedToken() : unauthenticated();
  }
}

export function permissionLevel(key: AccessKey, baseId: string): PermissionLevel {
  return typeof key.bases === "string" ? key.bases : (key.bases[baseId] ?? "none");
}

/**
 * @throws ApiError 403: `…_OR_MODEL_NOT_FOUND` for a missing scope or a base that is not attached, and
 *   `INVALID_PERMISSIONS` for a role that is too low
 */
export function authorize(key: AccessKey, scope: Scope, baseId: string, level: PermissionLevel): void {
  if (!key.scopes.has(scope)) throw permissionsOrModelNotFound();
  const has = permissionLevel(key, baseId);
  if (has === "none") throw permissionsOrModelNotFound();
  if (!isAtLeast(has, level)) throw notPermitted();
}

export function isAtLeast(has: PermissionLevel, level: PermissionLevel): boolean {
  return LEVELS.indexOf(has) >= LEVELS.indexOf(level);
}

function randomText(length: number): string {
  const bytes = crypto.getRandomValues(new Uint8Array(length));
  return Array.from(bytes, (byte) => (byte % 36).toString(36)).join("");
}
