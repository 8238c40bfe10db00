/**
 * Are two connections to one Postgres server? Asked of the servers, as two addresses may be one server. Providers deny
 * some functions to some roles, so each is asked on its own and may go without an answer.
 */
import type { Sql } from "postgres";

export interface ServerIdentity {
  /** Of the data directory; a standby has its primary's. */
  system: string | undefined;
  /** When the server was started, to the microsecond. */
  startedAt: string | undefined;
}

/** SQLSTATEs of what a role may not call, or a server does not have. */
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

/** False where neither tells enough of itself. */
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
