/**
 * Checks whether two connections lead to the same Postgres server, by asking the servers: two addresses may be one
 * server. Providers deny some functions to some roles, so each function is called separately and may have no
 * answer.
 */
import type { Sql } from "postgres";

export interface ServerIdentity {
  /** Of the data directory; a standby has its primary's. */
  system: string | undefined;
  /** When the server was started, to the microsecond. */
  startedAt: string | undefined;
}

/** SQLSTATEs for functions that the role may not call, or that the server does not have. */
const WITHHELD = ["42501", "42883", "0A000"];

export async function serverIdentity(sql: Sql): Promise<ServerIdentity> {
  return {
    system: await answerTo(
      sql,
      "select system_identifier::text as answer from pg_catalog.pg_control_system()",
    ),
    startedAt: await answerTo(
      sql,
      "select extract(epoch from pg_catalog.pg_postmaster_start_time())::text as answer",
    ),
  };
}

/** Returns false also if the servers reveal too little. */
export function isSameServer(one: ServerIdentity, other: ServerIdentity): boolean {
  const isSame = (name: keyof ServerIdentity) => one[name] !== undefined && one[name] === other[name];
  return isSame("system") || isSame("startedAt");
}

async function answerTo(sql: Sql, query: string): Promise<string | undefined> {
  try {
    const [row] = await sql.unsafe<{ answer: string }[]>(query);
    return row?.answer;
  } catch (error) {
    if (WITHHELD.includes(String((error as { code?: unknown }).code))) return undefined;
    throw error;
  }
}
