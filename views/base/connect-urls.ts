/** Connection URLs, as the drivers read them. */
import type { SqlAccess } from "./connect-clients";

/** @param more parameters that only one driver knows */
export function postgresUrl(
  access: SqlAccess,
  more: Record<string, string> = {},
  scheme = "postgres",
): string {
  const { user, password } = access;
  const login = `${encodeURIComponent(user)}:${encodeURIComponent(password)}`;
  return `${scheme}://${login}@${addressOf(access)}${query({ ...parametersOf(access), ...more })}`;
}

export function jdbcUrl(access: SqlAccess): string {
  const { user, password } = access;
  return `jdbc:postgresql://${addressOf(access)}${query({ user, password, ...parametersOf(access) })}`;
}

/** Is every connection encrypted? */
export function isEncrypted({ sslMode }: SqlAccess): boolean {
  return sslMode !== null && !["disable", "allow", "prefer"].includes(sslMode);
}

function addressOf({ host, port, database }: SqlAccess): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}/${encodeURIComponent(database)}`;
}

function parametersOf({ sslMode, parameters }: SqlAccess): Record<string, string> {
  return { ...parameters, ...(sslMode === null ? {} : { sslmode: sslMode }) };
}

function query(parameters: Record<string, string>): string {
  const parts = Object.entries(parameters).map(
    ([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`,
  );
  return parts.length > 0 ? `?${parts.join("&")}` : "";
}
